package membercluster

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/members/lifecycle"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
)

func TestTheAuditSaysWhoseTheRightsOfAMemberClusterBecome(t *testing.T) {
	a := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "fleet-system", Name: "a"}
	aAsUser := rbacv1.Subject{Kind: rbacv1.UserKind, Name: "system:serviceaccount:fleet-system:a"}
	b := rbacv1.Subject{Kind: rbacv1.UserKind, Name: "b"}
	ready := func(generation int64) clusterv1beta1.MemberClusterStatus {
		return clusterv1beta1.MemberClusterStatus{
			Conditions: []metav1.Condition{{
				Type: clusterv1beta1.ConditionReadyToJoin, Status: metav1.ConditionTrue, ObservedGeneration: generation,
			}},
		}
	}
	for _, c := range []struct {
		name   string
		had    []rbacv1.Subject
		before clusterv1beta1.MemberClusterStatus
		want   string
	}{
		{"of a new record they are granted", nil, clusterv1beta1.MemberClusterStatus{}, "Granted"},
		{"deleted by mistake they come back", nil, ready(3), ""},
		{"deleted before the record was changed they are granted", nil, ready(2), "Granted"},
		{"of another they are taken over", []rbacv1.Subject{b}, ready(2), "Displaced"},
		{"the same one written in another way is the same", []rbacv1.Subject{aAsUser}, ready(2), ""},
		{"of several somebody loses them", []rbacv1.Subject{a, b}, ready(3), "Displaced"},
	} {
		o := observed{
			Observed: lifecycle.Observed{Member: membernamespace.Member{Name: "web", UID: "u"}}, identity: a, before: c.before, generation: 3,
		}
		got := ""
		if fact := rightsFact(o, c.had); fact != nil {
			got = string(fact.Spec.Reason)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
