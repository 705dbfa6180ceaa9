package work

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery"
)

// TestAWorkOfAnotherMemberIsNotApplied plays a hub that an attacker has tricked into writing
// another member's Work into this member's namespace.
func TestAWorkOfAnotherMemberIsNotApplied(t *testing.T) {
	r := newRig(t)
	for _, other := range []string{"another", "clusters/" + r.name} {
		suffix := strings.ReplaceAll(other, "/", "-")
		work := &placement.Work{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: r.name + "-" + suffix, Labels: delivery.RecipientLabels(other, 0)},
		}
		work.Spec.Workload.Manifests = r.manifests(configMap(suffix, "a: b"))
		r.check(r.Create(context.Background(), work))
		said := r.until(work, placement.ConditionApplied, "WorkOfAnotherMember")
		if want := "labelled for " + map[bool]string{true: "Cluster " + other,
			false: "MemberCluster " + other}[strings.Contains(other, "/")]; !strings.Contains(said.Message, want) {
			t.Errorf("it says %q, want %q", said.Message, want)
		}
		if _, err := r.configMap(suffix); !apierrors.IsNotFound(err) || len(work.Finalizers) > 0 {
			t.Errorf("it was applied: %v, %v", err, work.Finalizers)
		}
		before := work.DeepCopy()
		work.Labels = delivery.RecipientLabels(r.name, 0)
		r.check(r.Patch(context.Background(), work, client.MergeFrom(before)))
		r.applied(work)
	}
}
