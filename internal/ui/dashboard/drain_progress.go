package dashboard

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// shownProgress is the progress of a drain in the annotation of its member.
type shownProgress struct {
	Moved, Total int
	// Seen is the last sign of life of the draining process, and Running reports whether it is recent.
	Seen    time.Time
	Running bool
}

// drainShownOn returns the progress of the drain of a member, by any user and process; nil without
// one.
func drainShownOn(member client.Object, now time.Time) *shownProgress {
	p := membership.DrainOf(member)
	if p == nil {
		return nil
	}
	return &shownProgress{Moved: p.Moved, Total: p.Total, Seen: p.Seen.Time, Running: p.Running(now)}
}

// whyNow returns a function for the present problem of a member with an age in its text. The
// process of a drain may die without a word, and a quarantine gets older. For any other object,
// whyNow returns nil.
func whyNow(o client.Object) func() string {
	if reason, _, _ := membership.QuarantineShown(o); reason == "" && membership.DrainOf(o) == nil {
		return nil
	}
	kept := withProblem(o)
	return func() string { return view.Because(kept) }
}

// withProblem returns a copy of a member with only the data of its problem. All members may be in
// quarantine, and the cache keeps each copy.
func withProblem(o client.Object) client.Object {
	kept := metav1.ObjectMeta{Annotations: view.Marks(o), DeletionTimestamp: o.GetDeletionTimestamp()}
	switch o := o.(type) {
	case *fleet.Cluster:
		return &fleet.Cluster{ObjectMeta: kept, Spec: fleet.ClusterSpec{Paused: o.Spec.Paused}, Status: fleet.ClusterStatus{
			Conditions: o.Status.Conditions, AgentState: o.Status.AgentState, Agent: fleet.AgentStatus{LastSeen: o.Status.Agent.LastSeen},
		}}
	case *clusterv1beta1.MemberCluster:
		return &clusterv1beta1.MemberCluster{ObjectMeta: kept, Spec: clusterv1beta1.MemberClusterSpec{Taints: o.Spec.Taints},
			Status: clusterv1beta1.MemberClusterStatus{Conditions: o.Status.Conditions}}
	}
	return o
}
