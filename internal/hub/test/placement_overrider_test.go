package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// overrider is a tenant who may write overrides and envelopes in one namespace, and update its
// ConfigMaps.
type overrider struct {
	fixture
	namespace, name string
	may             *rbacv1.Role
}

// overrider returns a tenant with further rights.
func (f fixture) overrider(namespace string, further ...rbacv1.PolicyRule) *overrider {
	f.t.Helper()
	as, role := f.userWith(namespace, "tenant", append([]rbacv1.PolicyRule{
		{APIGroups: []string{placement.GroupVersion.Group}, Resources: []string{"resourceoverrides", "resourceenvelopes"}, Verbs: []string{"*"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "create", "update"}},
		{APIGroups: []string{""}, Resources: []string{"resourcequotas"}, Verbs: []string{"get", "list"}},
	}, further...)...)
	n := &overrider{fixture: f, namespace: namespace, name: "system:serviceaccount:" + namespace + ":tenant", may: role}
	n.Client = as
	n.eventually("the hub's cluster knows of the tenant's rights", func() error {
		return n.List(context.Background(), &placement.ResourceOverrideList{}, client.InNamespace(namespace))
	})
	return n
}

// guarded is a shop with what its owners do not let tenants change: a quota and a RoleBinding.
func (f fixture) guarded() string {
	f.t.Helper()
	shop := f.shop()
	f.check(f.Create(context.Background(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "limits"}, Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{"pods": resource.MustParse("3")},
		},
	}))
	f.check(f.Create(context.Background(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "team"}, RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view",
		},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "team"}},
	}))
	return shop
}

// untilOverridden waits until the condition Overridden of a placement is as it should be.
func (f fixture) untilOverridden(crp *placement.ClusterResourcePlacement, status metav1.ConditionStatus, reason, words string) {
	f.t.Helper()
	f.untilSays(crp, "Overridden", status, words)
	if c := meta.FindStatusCondition(crp.Status.Conditions, "ClusterResourcePlacementOverridden"); c.Reason != reason {
		f.t.Errorf("Overridden has the reason %s, want %s", c.Reason, reason)
	}
}

const (
	patchSettings = `
resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: settings}]
policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, jsonPatchOverrides: [{op: replace, path: /data/a, value: "2"}]}]}
`
	deleteQuota = `
resourceSelectors: [{group: "", version: v1, kind: ResourceQuota, name: limits}]
policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, overrideType: Delete}]}
`
	patchSubjects = `
resourceSelectors: [{group: rbac.authorization.k8s.io, version: v1, kind: RoleBinding, name: team}]
policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, jsonPatchOverrides: [{op: replace, path: /subjects/0/name, ` +
		`value: mallory}]}]}
`
	patchRole = `
resourceSelectors: [{group: rbac.authorization.k8s.io, version: v1, kind: RoleBinding, name: team}]
policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, jsonPatchOverrides: [{op: replace, path: /roleRef/name, value: ` +
		`cluster-admin}]}]}
`
)

// TestATenantsOverrideDoesOnMembersOnlyWhatTheTenantMayDoOnTheHub lets a tenant try to lift a quota
// and to have rights, by overrides of what a platform team places.
func TestATenantsOverrideDoesOnMembersOnlyWhatTheTenantMayDoOnTheHub(t *testing.T) {
	f := newFixture(t)
	shop, m := f.guarded(), f.joined("overrider", "env=prod")
	bindings := rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"update"}}
	n := f.overrider(shop, bindings)
	for _, c := range []struct{ name, spec, lacks string }{
		{"lift-quota", deleteQuota, "may not delete resourcequotas limits in namespace " + shop},
		{"give-rights", patchSubjects, "may not bind clusterroles.rbac.authorization.k8s.io view in namespace " + shop},
		{"take-rights", patchRole, "may not bind clusterroles.rbac.authorization.k8s.io in namespace " + shop},
	} {
		n.override(shop, c.name, c.spec)
		crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
		f.untilOn(crp, m)
		f.untilOverridden(crp, metav1.ConditionFalse, "OverrideNotPermitted",
			"ResourceOverride "+shop+"/"+c.name+": "+n.name+", who last changed it, "+c.lacks)
		if !strings.Contains(crp.Status.Message, "ignored: ") {
			t.Errorf("the message is %q", crp.Status.Message)
		}
		placed := manifests(t, f.works(crp)[0])
		binding := placed["RoleBinding team"]
		if placed["ResourceQuota limits"] == nil || binding == nil {
			t.Fatalf("with %s the member has %v", c.name, placed)
		}
		role, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
		subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
		if role != "view" || subjects[0].(map[string]any)["name"] != "team" {
			t.Errorf("with %s the member binds %s to %v", c.name, role, subjects)
		}
		m.apply(crp.Name+"-work", "")
		f.untilSays(crp, "Available", metav1.ConditionTrue, "") // a tenant does not hide how the placement is
		f.dispose(crp)
		f.check(f.Delete(context.Background(), &placement.ResourceOverride{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: c.name}}))
	}
	n.override(shop, "settings", patchSettings)
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilSetting(crp, map[*registered]string{m: "2"}, "data", "a")
	f.untilOverridden(crp, metav1.ConditionTrue, "OverriddenSucceeded", "")
}

// TestAnOverrideWhoseAuthorLosesTheRightTakesNothingAway takes the right to update ConfigMaps away
// from the author, and gives it back.
func TestAnOverrideWhoseAuthorLosesTheRightTakesNothingAway(t *testing.T) {
	f := newAlone(t, "")
	shop, m := f.shop(), f.joined("loses", "env=prod")
	n := f.overrider(shop)
	n.override(shop, "settings", patchSettings)
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilSetting(crp, map[*registered]string{m: "2"}, "data", "a")
	m.apply(crp.Name+"-work", "")
	f.untilSays(crp, "Available", metav1.ConditionTrue, "")

	all := n.may.Rules
	n.may.Rules = all[:1]
	f.check(f.Update(context.Background(), n.may))
	f.restartHub() // an answer is good for a minute
	f.untilOverridden(crp, metav1.ConditionFalse, "OverrideNotPermitted", "may not update configmaps settings in namespace "+shop)
	f.untilOverridden(crp, metav1.ConditionFalse, "OverrideNotPermitted", "placed objects stay as they are")
	before := f.works(crp)[0]
	f.check(f.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "more"}}))
	late := f.joined("loses-late", "env=prod")
	f.eventually("the late member is picked", func() error {
		if s := f.statusOf(crp, late); len(s.Conditions) == 0 {
			return fmt.Errorf("the status is %+v", crp.Status.PlacementStatuses)
		}
		return nil
	})
	if works := f.works(crp); len(works) != 1 || works[0].Generation != before.Generation || f.setting(crp, m, "data", "a") != "2" {
		t.Errorf("the Works are changed: %+v", works)
	}

	n.may.Rules = all
	f.check(f.Update(context.Background(), n.may))
	f.restartHub()
	f.untilSetting(crp, map[*registered]string{m: "2", late: "2"}, "data", "a")
	f.eventually("the override counts again", func() error {
		if c := meta.FindStatusCondition(f.statusOf(crp, late).Conditions, "Overridden"); c == nil || c.Reason != "OverriddenSucceeded" {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	})
}

// admin is the user as whom the fixture acts.
const admin = "localkube-admin"

// fourKinds are an override and an envelope of either scope.
func fourKinds(namespace string, annotations map[string]string) []client.Object {
	of := metav1.ObjectMeta{Name: "forged-" + namespace, Annotations: annotations}
	within := *of.DeepCopy()
	within.Namespace = namespace
	selectors := []placement.ResourceSelector{{Version: "v1", Kind: "ConfigMap", Name: "none"}}
	policy := &placement.OverridePolicy{OverrideRules: []placement.OverrideRule{{OverrideType: placement.OverrideDelete}}}
	data := func(kind string) map[string]placement.Manifest {
		m := placement.Manifest{}
		m.Raw = fmt.Appendf(nil, `{"apiVersion":"v1","kind":%q,"metadata":{"name":"a"}}`, kind)
		return map[string]placement.Manifest{"a": m}
	}
	return []client.Object{
		&placement.ResourceOverride{ObjectMeta: within, Spec: placement.ResourceOverrideSpec{ResourceSelectors: selectors, Policy: policy}},
		&placement.ClusterResourceOverride{
			ObjectMeta: of, Spec: placement.ClusterResourceOverrideSpec{ClusterResourceSelectors: selectors, Policy: policy},
		},
		&placement.ResourceEnvelope{ObjectMeta: within, Data: data("ConfigMap")},
		&placement.ClusterResourceEnvelope{ObjectMeta: of, Data: data("Namespace")},
	}
}

// changeOf returns a patch of the spec of an override, or of the data of an envelope.
func changeOf(o client.Object) string {
	switch o.(type) {
	case *placement.ResourceEnvelope, *placement.ClusterResourceEnvelope:
		return `"data":{"b":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}}`
	}
	return `"spec":{"placement":{"name":"any"}}`
}

func TestOnlyTheUserOfARequestBecomesTheAuthorOfAnOverrideOrAnEnvelope(t *testing.T) {
	f := newFixture(t)
	shop := f.shop()
	all := rbacv1.PolicyRule{APIGroups: []string{placement.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"*"}}
	as, _ := f.userWith(shop, "tenant", all)
	clusterwide := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "overrides-" + shop}, Subjects: []rbacv1.Subject{{
		Kind: "ServiceAccount", Namespace: shop, Name: "tenant",
	}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "overrides-" + shop}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "overrides-" + shop}, Rules: []rbacv1.PolicyRule{all}}
	for _, o := range []client.Object{role, clusterwide} {
		f.check(f.Create(context.Background(), o))
		t.Cleanup(func() { f.check(f.Delete(context.Background(), o)) })
	}
	tenant := f
	tenant.Client = as
	name := "system:serviceaccount:" + shop + ":tenant"
	for _, o := range fourKinds(shop, map[string]string{"muster/author": "system:admin", "muster/author-groups": "system:masters"}) {
		author := func(after, want string) {
			t.Helper()
			f.check(f.Get(context.Background(), client.ObjectKeyFromObject(o), o))
			if got := o.GetAnnotations(); got["muster/author"] != want ||
				strings.Contains(got["muster/author-groups"], "masters") != (want != name) {
				t.Errorf("after %s the author of the %T is %v", after, o, got)
			}
		}
		f.eventually("the tenant creates it", func() error { return as.Create(context.Background(), o) })
		t.Cleanup(func() { f.check(f.Delete(context.Background(), o)) })
		author("its creation", name)
		f.patch(o, `{"metadata":{"labels":{"seen":"by-admin"}}}`)
		author("a label of an admin", name)
		tenant.patch(o, `{"metadata":{"annotations":{"muster/author":"system:admin","muster/author-groups":"system:masters"}}}`)
		author("a forgery", name)
		f.patch(o, "{"+changeOf(o)+"}")
		author("a change by an admin", admin)
		tenant.patch(o, `{"metadata":{"annotations":null}}`)
		author("their removal", admin)
		tenant.patch(o, strings.NewReplacer(`"any"`, `"other"`, `"name":"b"`, `"name":"c"`).Replace("{"+changeOf(o)+"}"))
		author("a change by the tenant", name)
	}
}

// TestAnOverrideWithoutAnAuthorChangesNothing has an override that is older than the policy which
// records authors.
func TestAnOverrideWithoutAnAuthorChangesNothing(t *testing.T) {
	f := newAlone(t, "")
	shop, m := f.shop(), f.joined("unwritten", "env=prod")
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilSetting(crp, map[*registered]string{m: "1"}, "data", "a")
	f.withoutMutatingPolicy()
	ro := f.override(shop, "old", patchSettings)
	f.untilOverridden(crp, metav1.ConditionFalse, "AuthorUnknown", "kubectl annotate -n "+shop+" resourceoverride old muster/author=NAME")
	if f.setting(crp, m, "data", "a") != "1" {
		t.Error("the override counts")
	}
	f.patch(ro, `{"metadata":{"annotations":{"muster/author":"`+admin+`","muster/author-groups":"system:masters\nsystem:authenticated"}}}`)
	f.untilSetting(crp, map[*registered]string{m: "2"}, "data", "a")
	f.patch(
		ro, `{"metadata":{"annotations":null},`+
			`"spec":{"policy":{"overrideRules":[{"clusterSelector":{"clusterSelectorTerms":[]},"overrideType":"Delete"}]}}}`,
	)
	f.untilOverridden(crp, metav1.ConditionFalse, "AuthorUnknown", "placed objects stay as they are")
	if got := f.setting(crp, m, "data", "a"); got != "2" {
		t.Errorf("without an author the member has %q", got)
	}
	for _, o := range fourKinds(shop, map[string]string{"muster/author": "forged"}) {
		f.refused(fmt.Sprintf("forging the author of a %T", o), f.Create(context.Background(), o, client.DryRunAll))
	}
}

// TestAnOverrideOfAnEarlierVersionHasAnAuthorToo: it is served as v1alpha1, which the
// policies must not overlook.
func TestAnOverrideOfAnEarlierVersionHasAnAuthorToo(t *testing.T) {
	f := newAlone(t, "")
	n := f.overrider(f.guarded())
	earlier := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "placement.kubernetes-fleet.io/v1alpha1",
			"kind": "ResourceOverride",
			"metadata": map[string]any{
				"namespace": n.namespace, "name": name, "annotations": map[string]any{"muster/author": admin, "muster/author-groups": "system:masters"},
			},
			"spec": map[string]any{
				"resourceSelectors": []any{map[string]any{"group": "", "version": "v1", "kind": "ResourceQuota", "name": "limits"}},
				"policy":            map[string]any{"overrideRules": []any{map[string]any{"overrideType": "Delete"}}}}}}
	}
	written := earlier("first")
	f.check(n.Create(context.Background(), written))
	stored := &placement.ResourceOverride{}
	f.check(f.Get(context.Background(), client.ObjectKeyFromObject(written), stored))
	if author, groups := stored.Annotations["muster/author"],
		stored.Annotations["muster/author-groups"]; author != n.name || strings.Contains(groups, "system:masters") {
		t.Errorf("the author is %q of %q, want %q", author, groups, n.name)
	}
	f.withoutMutatingPolicy()
	f.refused("forging the author in v1alpha1", n.Create(context.Background(), earlier("second")))
}

// reinstallsAuthorPolicies installs the policies of authors again when the test ends, and waits for
// their effect: the next test on the control plane starts at once.
func (f fixture) reinstallsAuthorPolicies() {
	f.t.Helper()
	f.t.Cleanup(func() {
		f.cluster.InstallTemplate(f.t, "fleet/templates/admission-placement.yaml")
		f.eventually("the cluster records authors again", func() error {
			o := fourKinds("default", nil)[0]
			if err := f.Create(context.Background(), o, client.DryRunAll); err != nil || o.GetAnnotations()["muster/author"] == "" {
				return fmt.Errorf("%v, %w", o.GetAnnotations(), err)
			}
			return nil
		})
	})
}

// withoutMutatingPolicy makes the cluster one that does not serve MutatingAdmissionPolicies, until
// the test ends.
func (f fixture) withoutMutatingPolicy() {
	f.t.Helper()
	f.reinstallsAuthorPolicies()
	f.check(f.Delete(context.Background(), &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "muster-placement-author"},
	}))
	f.eventually("the cluster records no author any more", func() error {
		o := fourKinds("default", nil)[0]
		if err := f.Create(context.Background(), o, client.DryRunAll); err != nil || o.GetAnnotations()["muster/author"] != "" {
			return fmt.Errorf("%v, %w", o.GetAnnotations(), err)
		}
		return nil
	})
}
