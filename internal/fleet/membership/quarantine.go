package membership

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// Quarantined reports whether a Cluster or MemberCluster keeps only its heartbeat. Resources on the
// member stay, and nothing is delivered, changed or removed.
func Quarantined(member metav1.Object) bool {
	value, set := member.GetAnnotations()[fleet.AnnotationQuarantined]
	return set && value != strconv.FormatBool(false)
}

// QuarantinedBy names the user and the reason of a quarantine: " by alice (odd traffic)"; empty
// without either.
func QuarantinedBy(member metav1.Object) (text string) {
	if user := member.GetAnnotations()[fleet.AnnotationQuarantinedBy]; user != "" {
		text = " by " + user
	}
	return text + because(member, fleet.AnnotationQuarantineReason)
}

// EndQuarantine returns the command to end the quarantine of a Cluster or MemberCluster.
func EndQuarantine(member metav1.Object) string {
	return "muster quarantine " + strings.TrimPrefix(member.GetNamespace()+"/"+member.GetName(), "/") + " --undo"
}

// QuarantineShown returns the reason and the message of the condition Quarantined of a member, and
// since when it is True. All are zero without the condition.
func QuarantineShown(member client.Object) (reason, message string, since time.Time) {
	switch o := member.(type) {
	case *fleet.Cluster:
		if is := kube.FindCondition(o.Status.Conditions, fleet.ConditionQuarantined); is != nil {
			since, _ = time.Parse(time.RFC3339, is.LastTransitionTime) // the hub writes it
			return is.Reason, is.Message, since
		}
	case *clusterv1beta1.MemberCluster:
		if is := meta.FindStatusCondition(o.Status.Conditions, clusterv1beta1.ConditionQuarantined); is != nil {
			return is.Reason, is.Message, is.LastTransitionTime.Time
		}
	}
	return "", "", time.Time{}
}
