package view

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// memberMarks are the annotations of a member that a table shows.
var memberMarks = []string{
	fleet.AnnotationCordoned, fleet.AnnotationDrained, fleet.AnnotationDrainProgress, fleet.AnnotationPaused, fleet.AnnotationTaints,
	fleet.AnnotationLost, fleet.AnnotationQuarantined, fleet.AnnotationQuarantinedBy, fleet.AnnotationQuarantineReason,
	fleet.AnnotationDisplayName,
}

// maxMark bounds the bytes of each annotation in Marks.
const maxMark = 1024

// Marks returns the annotations of a member that a table shows; nil without any. Its problem is the
// same with only these.
func Marks(member metav1.Object) map[string]string {
	var marks map[string]string
	for _, key := range memberMarks {
		if value, set := member.GetAnnotations()[key]; set {
			if marks == nil {
				marks = map[string]string{}
			}
			marks[key] = kube.Clip(value, maxMark)
		}
	}
	return marks
}

// quarantined reports whether the hub shows a member as quarantined.
func quarantined(record client.Object) bool {
	reason, _, _ := membership.QuarantineShown(record)
	return reason != ""
}

func memberState(record client.Object, status membership.Status) string {
	switch {
	case record.GetDeletionTimestamp() != nil:
		return StateLeaving
	case quarantined(record) && (status.Ready || status.Agent == membership.AgentOnline || status.Agent == membership.AgentUnhealthy):
		return StateQuarantined
	case status.Ready:
		return StateReady
	case status.Agent == membership.AgentUnknown:
		return StateNew
	case status.Agent == membership.AgentOnline:
		return StateNotReady
	}
	return string(status.Agent)
}

// whyOfMember is Why for a member; it adds a quarantine, pause, cordon, drain or taint by a
// user.
func whyOfMember(record client.Object, status membership.Status, message string, now time.Time) string {
	var causes []string
	if reason, explanation, since := membership.QuarantineShown(record); reason != "" {
		cause := fmt.Sprintf("quarantined for %s%s: only heartbeats", Since(since, now), membership.QuarantinedBy(record))
		if reason == reasons.Quarantining {
			cause = explanation
		}
		causes = append(causes, cause)
		if status.Reason == reasons.Quarantined {
			message = ""
		}
	} else if membership.Quarantined(record) {
		causes = append(causes, "quarantined: not yet confirmed by the hub")
	}
	if membership.Paused(record) {
		causes = append(causes, "paused: nothing changes")
	}
	if membership.Cordoned(record) {
		causes = append(causes, "cordoned: no new deliveries")
	}
	if progress := membership.DrainOf(record); progress != nil {
		causes = append(causes, progress.Text(now, Since(progress.Seen.Time, now)))
	}
	for _, taint := range membership.Taints(record) {
		causes = append(causes, "tainted: "+membership.TaintText(taint))
	}
	if membership.KeepsUnknown(record) {
		causes = append(causes, "keeps deliveries that the restored hub does not know")
	}
	if why := Why(status.Ready, message); why != Nothing {
		causes = append(causes, why)
	}
	return Or(strings.Join(causes, "; "))
}

// MemberNamespace returns the namespace of a member's deliveries; "" before it exists.
func MemberNamespace(o client.Object) string {
	switch o := o.(type) {
	case *fleet.Cluster:
		return membership.DeliveryNamespace(o)
	case *clusterv1beta1.MemberCluster:
		return membership.Namespace(o)
	}
	return ""
}
