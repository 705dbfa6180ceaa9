package membercluster

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/members/lifecycle"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
)

// leaver returns the inputs to decide how a deleted MemberCluster leaves.
func leaver(o observed, timeout time.Duration) lifecycle.Leaver {
	return lifecycle.Leaver{
		Observed: o.Observed, Timeout: timeout, Leftovers: o.leftovers, Emptying: o.emptying(), Definition: o.worksDefinition,
		Kept: o.validation.message,
	}
}

func (r *reconciliation) Leaver(timeout time.Duration) lifecycle.Leaver {
	l := leaver(r.o, timeout)
	l.Begins, l.KeptRetry = r.o.validation.since(r.Clock.Now()), validationRetry
	return l
}

// Forget drops the controller's data about a member namespace.
func (r *reconciliation) Forget(namespace string) {
	r.renewer.Forget(namespace)
	r.verified.Forget(namespace)
	r.health.Forget(namespace)
	r.written.Forget(types.NamespacedName{Name: namespace})
	r.created.Forget(types.NamespacedName{Name: namespace})
	r.reconnectRights.Forget(namespace)
}

func (r *reconciliation) AskToLeave(ctx context.Context) error {
	if len(r.o.works) > 0 {
		return r.deleteWorks(ctx)
	}
	asked := membernamespace.Join(period(r.mc), r.o.Hub, r.o.Term)
	asked.State, asked.LeavePolicy, asked.UninstallAgent = clusterv1beta1.ClusterStateLeave, r.o.LeavePolicy, r.o.Uninstall
	if r.o.Report != nil {
		asked.Credential = r.o.Report.Spec.Credential
	}
	return r.ask(ctx, &r.o, asked)
}

func (r *reconciliation) Kept(reason, message string) client.Object {
	after := r.mc.DeepCopy()
	meta.SetStatusCondition(&after.Status.Conditions, metav1.Condition{
		Type: clusterv1beta1.ConditionReadyToJoin, Status: metav1.ConditionFalse, Reason: reason, Message: kube.Clip(message, maxMessage),
		ObservedGeneration: r.mc.Generation, LastTransitionTime: metav1.NewTime(r.Clock.Now()),
	})
	return after
}

func (r *reconciliation) Access() client.Object {
	return membernamespace.Rights{Member: r.o.Member}.Binding()
}
