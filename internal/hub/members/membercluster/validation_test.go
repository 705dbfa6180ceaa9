package membercluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
)

func TestValidationModeDecidesWhetherExportedServicesKeepAMember(t *testing.T) {
	with := func(mode string) *clusterv1beta1.MemberCluster {
		mc := &clusterv1beta1.MemberCluster{}
		if mode != "absent" {
			mc.Spec.DeleteOptions = &clusterv1beta1.DeleteOptions{ValidationMode: mode}
		}
		return mc
	}
	leaves := func(o *observed) {
		o.Deleted, o.NamespaceState = now.Add(-time.Minute), membernamespace.NamespaceOurs
		o.Report.Spec.State = clusterv1beta1.ClusterStateJoin
	}
	validated := func(status metav1.ConditionStatus) func(*observed) {
		return func(o *observed) { o.validation.before = &metav1.Condition{Status: status} }
	}
	for name, row := range map[string]struct {
		mc   *clusterv1beta1.MemberCluster
		seen observed
		want bool
	}{
		"Strict":                            {with("Strict"), joined(leaves), true},
		"Strict without deleteOptions":      {with("absent"), joined(leaves), true},
		"Skip":                              {with("Skip"), joined(leaves), false},
		"a member that is not deleted":      {with("Strict"), joined(), false},
		"a member that was kept so far":     {with("Strict"), joined(leaves, validated(metav1.ConditionFalse)), true},
		"a member that was kept and leaves": {with("Strict"), joined(leaves, validated(metav1.ConditionTrue)), false},
		"a member whose agent was asked to leave": {with("Strict"), joined(leaves, func(o *observed) {
			o.Report.Spec.State = clusterv1beta1.ClusterStateLeave
		}), false},
		"a member without a namespace": {with("Strict"), joined(leaves, func(o *observed) {
			o.NamespaceState = membernamespace.NamespaceAbsent
		}), false},
	} {
		if got := row.seen.validates(row.mc); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestOnlyServicesThatStayOrCannotBeReadKeepAMember(t *testing.T) {
	export := func(name string, deleted bool) metav1.PartialObjectMetadata {
		o := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if deleted {
			o.DeletionTimestamp = &metav1.Time{Time: now}
		}
		return o
	}
	for name, row := range map[string]struct {
		exports []metav1.PartialObjectMetadata
		err     error
		reason  string
		says    []string
	}{
		"none":              {nil, nil, "", nil},
		"one that is going": {[]metav1.PartialObjectMetadata{export("web", true)}, nil, "", nil},
		"two, and one goes": {
			[]metav1.PartialObjectMetadata{export("web", false), export("db", true)}, nil, reasons.ServicesExported,
			[]string{"exports 1 services (web)", `"validationMode":"Skip"`, "patch membercluster edge"},
		},
		"an unreadable answer": {nil, errors.New("no right"), reasons.ServicesUnreadable, []string{"no right", `"validationMode":"Skip"`}},
	} {
		var v exportCheck
		v.keep(row.exports, "edge", row.err)
		if v.reason != row.reason {
			t.Errorf("%s: %q", name, v.reason)
		}
		for _, want := range row.says {
			if !strings.Contains(v.message, want) {
				t.Errorf("%s: it says %q", name, v.message)
			}
		}
	}
}

func TestAKeptMemberHasTheWholeWaitForItsAgentAfterwards(t *testing.T) {
	long := func(o *observed) { o.Deleted = now.Add(-time.Hour) }
	for name, row := range map[string]struct {
		before *metav1.Condition
		want   time.Time
	}{
		"a member that nothing kept":  {nil, time.Time{}},
		"one that was kept until now": {&metav1.Condition{Status: metav1.ConditionFalse}, now},
		"one that was kept before": {
			&metav1.Condition{Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-time.Minute))}, now.Add(-time.Minute),
		},
	} {
		o := joined(long)
		o.validation.before = row.before
		if got := o.validation.since(now); !got.Equal(row.want) {
			t.Errorf("%s: %s", name, got)
		}
		l := leaver(o, 15*time.Minute)
		l.Begins = o.validation.since(now)
		if forced := l.Depart(now).Unanswered != ""; forced != row.want.IsZero() {
			t.Errorf("%s: forced %t", name, forced)
		}
	}
}
