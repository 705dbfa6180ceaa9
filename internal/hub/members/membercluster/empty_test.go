package membercluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
)

func TestAMemberWithKubeFleetsAgentIsEmptiedByItsWorks(t *testing.T) {
	leaves := func(o *observed) {
		deleted(o)
		o.LeavePolicy = clusterv1beta1.LeaveDelete
		o.Report.Spec.State = clusterv1beta1.ClusterStateJoin
	}
	for name, row := range map[string]struct {
		seen observed
		want bool
	}{
		"a member that leaves":                  {joined(leaves), true},
		"a member that stays":                   {joined(leaves, func(o *observed) { o.Deleted = time.Time{} }), false},
		"a member that keeps what it has":       {joined(leaves, func(o *observed) { o.LeavePolicy = clusterv1beta1.LeaveOrphan }), false},
		"a member that never joined":            {joined(leaves, neverSeen), false},
		"a member without a report":             {joined(leaves, func(o *observed) { o.Report = nil }), false},
		"a member whose namespace is another's": {joined(leaves, func(o *observed) { o.NamespaceState = membernamespace.NamespaceTaken }), false},
		"a member that was asked to leave already": {
			joined(leaves, func(o *observed) { o.Report.Spec.State = clusterv1beta1.ClusterStateLeave }), false},
		"a member with Muster's agent, which says so": {
			joined(leaves, func(o *observed) { o.Report.Status.AgentVersion = "v1.0.0" }), false},
		"a member with Muster's agent, which has not reported yet": {
			joined(leaves, func(o *observed) { o.Liveness.Source = liveness.InLease }), false},
		"a lost member, whose agent may be back in time": {
			joined(leaves, func(o *observed) { o.Liveness.State = liveness.Lost }), true},
	} {
		if got := row.seen.emptiedByWorks(); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestAMemberThatIsEmptiedNamesTheWorks(t *testing.T) {
	o := joined(deleted)
	if got := o.emptying(); got != "" {
		t.Errorf("without Works it says %q", got)
	}
	for _, name := range []string{"d-work", "b-work", "a-work", "c-work"} {
		o.works = append(o.works, &placement.Work{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	const want = "leaving: waiting for the member agent to remove the objects of 4 Works (a-work, b-work, c-work and 1 more), " +
		"at most until 2026-01-02T03:18:05Z (14m0s)"
	if got := joinedCondition(o, leaver(o, 15*time.Minute).Depart(now)); got.message != want || got.reason != reasons.Leaving {
		t.Errorf("it says %+v, want %q", got, want)
	}
}
