package kube

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func rights(uid types.UID, version string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	meta := metav1.ObjectMeta{Namespace: "web", Name: "agent", UID: uid, ResourceVersion: version}
	rules := []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}}}
	return &rbacv1.Role{ObjectMeta: meta, Rules: rules}, RoleBinding(meta, "Role", "agent", AccountSubject("web", "agent"))
}

func server(objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build()
}

func TestWhichStatesOfObjectsAreTheSame(t *testing.T) {
	shown := func(desired string, objects ...client.Object) Verified {
		role, binding := rights("", "")
		seen, have, err := Shown(t.Context(), server(objects...), desired, role, binding)
		if err != nil || len(have) != len(objects) {
			t.Fatalf("%d objects are shown of %d: %v", len(have), len(objects), err)
		}
		return seen
	}
	role, binding := rights("1", "5")
	written, _ := rights("1", "6")
	replaced, _ := rights("2", "5")
	verified := shown("rules", role, binding)
	for name, row := range map[string]struct {
		seen        Verified
		same, alike bool
	}{
		"nothing has changed":                       {shown("rules", role, binding), true, true},
		"the same objects, as they were written":    {verified.At(role, binding), true, true},
		"an object was written":                     {shown("rules", written, binding), false, true},
		"an object was replaced":                    {shown("rules", replaced, binding), false, true},
		"an object was deleted":                     {shown("rules", role), false, true},
		"the desired content is another one":        {shown("more rules", role, binding), false, false},
		"a controller that has verified nothing":    {Verified{}, false, false},
		"objects that nobody has created until now": {shown("rules"), false, true},
	} {
		if row.seen == verified != row.same || row.seen.SameDesired(verified) != row.alike {
			t.Errorf("%s: same %t, same desired content %t", name, row.seen == verified, row.seen.SameDesired(verified))
		}
	}
}

func TestWhichRightsAreAsDesired(t *testing.T) {
	role, binding := rights("", "")
	edited := func(change func(*rbacv1.Role, *rbacv1.RoleBinding)) []client.Object {
		role, binding := rights("1", "5")
		change(role, binding)
		return []client.Object{role, binding}
	}
	for name, row := range map[string]struct {
		objects     []client.Object
		found, same bool
	}{
		"rights as they were written": {edited(func(*rbacv1.Role, *rbacv1.RoleBinding) {}), true, true},
		"other labels are no other rights": {edited(func(r *rbacv1.Role, b *rbacv1.RoleBinding) {
			r.Labels = map[string]string{"a": "b"}
			b.Labels = r.Labels
		}), true, true},
		"wider rights": {edited(func(r *rbacv1.Role, b *rbacv1.RoleBinding) {
			r.Rules[0].Verbs = []string{"*"}
			b.Subjects = append(b.Subjects, AccountSubject("web", "other"))
		}), true, false},
		"no rights at all": {edited(func(r *rbacv1.Role, b *rbacv1.RoleBinding) { r.Rules, b.Subjects = nil, nil }), true, false},
		"missing rights":   {nil, false, false},
	} {
		for _, desired := range []client.Object{role, binding} {
			_, found, same, err := ReadRight(t.Context(), server(row.objects...), desired)
			if err != nil || found != row.found || same != row.same {
				t.Errorf("%s: %T found %t, as desired %t, %v", name, desired, found, same, err)
			}
		}
	}
	if _, _, _, err := ReadRight(t.Context(), server(), &rbacv1.ClusterRole{}); err == nil {
		t.Error("a ClusterRole was read as a right of a namespace")
	}
}
