package kube

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestWhatIsSomebodyElsesIsForeign(t *testing.T) {
	role := func(change ...func(*metav1.ObjectMeta)) *rbacv1.Role {
		r := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{
			Labels:          map[string]string{fleet.LabelManaged: "true"},
			Annotations:     map[string]string{"request": "clusters/one"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Cluster", Name: "one", UID: "1"}},
		}}
		for _, c := range change {
			c(&r.ObjectMeta)
		}
		return r
	}
	uid := func(uid string) func(*metav1.ObjectMeta) {
		return func(m *metav1.ObjectMeta) { m.UID = types.UID(uid) }
	}
	for name, c := range map[string]struct {
		have, desired *rbacv1.Role
		foreign       bool
	}{
		"made earlier for the same owner":            {role(), role(), false},
		"without the label":                          {role(func(m *metav1.ObjectMeta) { m.Labels, m.OwnerReferences = nil, nil }), role(), true},
		"without the label, owned by the very owner": {role(func(m *metav1.ObjectMeta) { m.Labels = nil }), role(), false},
		"owned by another": {role(func(m *metav1.ObjectMeta) { m.OwnerReferences[0].Name, m.OwnerReferences[0].UID = "two", "2" }),
			role(), true},
		"owned by nobody":                        {role(func(m *metav1.ObjectMeta) { m.OwnerReferences = nil }), role(), true},
		"owned by an earlier owner of that name": {role(func(m *metav1.ObjectMeta) { m.OwnerReferences[0].UID = "0" }), role(), false},
		"made for another request": {role(func(m *metav1.ObjectMeta) { m.Annotations["request"], m.OwnerReferences = "clusters/two", nil }),
			role(func(m *metav1.ObjectMeta) { m.OwnerReferences = nil }), true},
		"made by an earlier hub, with fewer annotations": {role(func(m *metav1.ObjectMeta) { m.Annotations = nil }), role(), false},
		"the very object, whoever owns it":               {role(uid("1"), func(m *metav1.ObjectMeta) { m.Labels = nil }), role(uid("1")), false},
		"another object of that name":                    {role(uid("2")), role(uid("1")), true},
	} {
		if why := foreign(c.have, c.desired); (why != "") != c.foreign {
			t.Errorf("%s: %q", name, why)
		}
	}
}

func TestWhatAnEarlierOwnerOfTheNameControlsIsItsOwn(t *testing.T) {
	owned := func(kind, name, uid string, controls bool) *rbacv1.Role {
		return &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{
				OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: name, UID: types.UID(uid), Controller: &controls}},
			},
		}
	}
	for what, c := range map[string]struct {
		have *rbacv1.Role
		want bool
	}{
		"of the same owner":                       {owned("Cluster", "one", "1", true), false},
		"of an earlier one":                       {owned("Cluster", "one", "0", true), true},
		"of another one":                          {owned("Cluster", "two", "0", true), false},
		"of an earlier one that does not control": {owned("Cluster", "one", "0", false), false},
		"of nobody":                               {&rbacv1.Role{}, false},
	} {
		if got := isOfEarlierOwner(c.have, owned("Cluster", "one", "1", true)); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}
