package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// untilRefused waits until the hub refuses the selectors of a placement for a reason, and checks
// that the placement picks no member.
func (f fixture) untilRefused(crp *placement.ClusterResourcePlacement, words string) {
	f.t.Helper()
	f.untilSays(crp, "ResourceSelected", metav1.ConditionFalse, words)
	f.untilSays(crp, "Scheduled", metav1.ConditionFalse, words)
	for _, c := range crp.Status.Conditions {
		switch c.Type {
		case "ClusterResourcePlacementResourceSelected", "ClusterResourcePlacementScheduled":
			if c.Reason != "InvalidResourceSelectors" {
				f.t.Errorf("the reason of %s is %s", c.Type, c.Reason)
			}
		default:
			f.t.Errorf("%s is said of a placement that is nowhere", c.Type)
		}
	}
	if s := crp.Status.PlacementStatuses; len(s) > 0 {
		f.t.Errorf("%d members are listed", len(s))
	}
	if works := f.works(crp); len(works) > 0 {
		f.t.Errorf("there are %d Works", len(works))
	}
}

func TestAReservedNamespaceIsRefusedAndNobodyIsPicked(t *testing.T) {
	f := newFixture(t)
	m := f.joined("reserved", "env=prod")
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", "kube-system"))
	f.untilRefused(crp, "spec.resourceSelectors[0]: Namespace kube-system cannot be placed: the namespace is reserved")
	shop := f.shop()
	f.change(crp, func() { crp.Spec.ResourceSelectors[0].Name = shop })
	f.untilOn(crp, m)
	f.untilSays(crp, "Scheduled", metav1.ConditionTrue, "1 members picked")
	if c := meta.FindStatusCondition(crp.Status.Conditions, "ClusterResourcePlacementResourceSelected"); c != nil {
		t.Errorf("it still says %+v", c)
	}
}

func TestWhatTwoSelectorsSelectIsRefused(t *testing.T) {
	f := newFixture(t)
	m := f.joined("twice", "env=prod")
	shop := f.shop()
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop+"}, {group: '', version: v1, kind: Namespace, name: "+shop))
	f.untilRefused(crp, "spec.resourceSelectors[0] and [1] both select ")
	f.change(crp, func() { crp.Spec.ResourceSelectors = crp.Spec.ResourceSelectors[:1] })
	f.untilOn(crp, m)
	// Who has the placement keeps it, and is shown.
	f.change(crp, func() {
		crp.Spec.ResourceSelectors = append(crp.Spec.ResourceSelectors, crp.Spec.ResourceSelectors[0])
	})
	f.untilSays(crp, "ResourceSelected", metav1.ConditionFalse, "both select")
	f.untilOn(crp, m)
	if s := crp.Status.PlacementStatuses; len(s) != 1 || s[0].ClusterName != m.name {
		t.Errorf("the members are %+v", s)
	}
}

func TestSelectedResourcesAreListedInTheOrderInWhichTheyAreApplied(t *testing.T) {
	f := newFixture(t)
	f.joined("ordered", "env=prod")
	shop := f.shop()
	for _, o := range []client.Object{
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "a"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "a"}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "a"}, Spec: appsv1.DeploymentSpec{
			Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "a", Image: "a"}},
				},
			},
		}},
	} {
		f.check(f.Create(context.Background(), o))
	}
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	want := []string{"Namespace " + shop, "Secret password", "ConfigMap a", "ConfigMap settings", "Role a", "Service web", "Deployment a"}
	f.eventually("they are listed", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
			return err
		}
		var got []string
		for _, r := range crp.Status.SelectedResources {
			got = append(got, r.Kind+" "+r.Name)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("they are %v, want %v", got, want)
		}
		return nil
	})
}

// TestWhatControllersOfTheHubMakeIsNotPlaced plays the controllers of Services: the clusters of
// tests do not run them. The clusters do run the controller of StatefulSets.
func TestWhatControllersOfTheHubMakeIsNotPlaced(t *testing.T) {
	f := newFixture(t)
	f.joined("made", "env=prod")
	shop := f.shop()
	claim := corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
	one, port, labels := int32(1), []corev1.ServicePort{{Port: 80}}, map[string]string{"app": "db"}
	in := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: shop, Name: name} }
	//nolint:staticcheck // users have them
	address := []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "192.0.2.1"}}, Ports: []corev1.EndpointPort{{Port: 80}}}}
	for _, o := range []client.Object{
		&appsv1.StatefulSet{ObjectMeta: in("db"), Spec: appsv1.StatefulSetSpec{
			Replicas: &one, ServiceName: "db", Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: claim}},
		}},
		&corev1.PersistentVolumeClaim{ObjectMeta: in("mine"), Spec: claim},
		&corev1.Service{ObjectMeta: in("db"), Spec: corev1.ServiceSpec{Ports: port, Selector: labels}},
		&corev1.Endpoints{ObjectMeta: in("db"), Subsets: address}, //nolint:staticcheck // users have them
		&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: shop, Name: "db-x", Labels: map[string]string{discoveryv1.LabelServiceName: "db"}},
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}}},
		},
		&corev1.Service{ObjectMeta: in("outside"), Spec: corev1.ServiceSpec{Ports: port}},
		&corev1.Endpoints{ObjectMeta: in("outside"), Subsets: address}, //nolint:staticcheck // users have them
		&discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: shop, Name: "outside-mine", Labels: map[string]string{discoveryv1.LabelServiceName: "outside"},
			},
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.2"}}},
		},
	} {
		f.check(f.Create(context.Background(), o))
	}
	left := &corev1.PersistentVolumeClaim{ObjectMeta: in("data-gone-0"), Spec: claim} // of a StatefulSet that was deleted
	f.check(f.Create(context.Background(), left, client.FieldOwner("kube-controller-manager")))
	f.eventually("the StatefulSet has its claim", func() error { return f.get(&corev1.PersistentVolumeClaim{}, shop, "data-db-0") })
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	want := []string{"Namespace " + shop, "Secret password", "ConfigMap settings", "PersistentVolumeClaim mine", "Service db",
		"Service outside", "Service web",
		"StatefulSet db", "EndpointSlice outside-mine", "Endpoints outside"}
	f.eventually("only what somebody wrote is selected", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
			return err
		}
		var got []string
		for _, r := range crp.Status.SelectedResources {
			got = append(got, r.Kind+" "+r.Name)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("it is %v, want %v", got, want)
		}
		return nil
	})
}

func TestAKindThatComesLaterIsSelectedWithoutAnEdit(t *testing.T) {
	f := newFixture(t)
	m := f.joined("later", "env=prod")
	group := strings.ReplaceAll(f.workspace, "-", "") + ".example.com"
	var chart rbacv1.ClusterRoleBinding
	f.check(f.get(&chart, "", "fleet-controller-placement"))
	read := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: group}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{group}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"},
		}},
	}
	f.check(f.Create(context.Background(), read))
	f.check(f.Create(context.Background(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: group}, Subjects: chart.Subjects, RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: group,
		},
	}))
	shop := f.shop()
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop+"}, {group: "+group+", version: v1, kind: Planet"))
	f.untilRefused(crp, "spec.resourceSelectors[1]: the hub cluster does not serve Planet."+group+" in version v1")
	define := func(kind, scope string) {
		plural := strings.ToLower(kind) + "s"
		definition := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + "." + group},
			"spec": map[string]any{
				"group": group, "scope": scope, "names": map[string]any{"kind": kind, "plural": plural},
				"versions": []any{map[string]any{
					"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
				}},
			},
		}}
		f.check(f.Create(context.Background(), definition))
		t.Cleanup(func() { _ = f.Delete(context.Background(), definition) }) // the cluster is thrown away
	}
	make := func(kind, namespace string) {
		o := &unstructured.Unstructured{
			Object: map[string]any{"apiVersion": group + "/v1", "kind": kind, "metadata": map[string]any{"name": "first", "namespace": namespace}},
		}
		f.eventually("an object of the kind is made", func() error { return f.Create(context.Background(), o) })
	}
	has := func(object string) {
		f.eventually("the member gets "+object, func() error {
			for _, work := range f.works(crp) {
				if work.Namespace == m.namespaceName() && manifests(t, work)[object] != nil {
					return nil
				}
			}
			if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
				return err
			}
			return fmt.Errorf("it says %q", crp.Status.Message)
		})
	}
	define("Planet", "Cluster") // which a selector names
	has("ConfigMap settings")
	make("Planet", "")
	has("Planet first")
	m.apply(crp.Name+"-work", "")
	define("Moon", "Namespaced") // of which everything comes with the Namespace
	make("Moon", shop)
	has("Moon first")
}

func TestANamespaceThatIsNotThereYetIsPlacedWhenItComes(t *testing.T) {
	f := newFixture(t)
	m := f.joined("absent", "env=prod")
	shop := "shop-of-" + f.workspace
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.eventually("the placement says what the hub does not have", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
			return err
		}
		c := meta.FindStatusCondition(crp.Status.Conditions, "ClusterResourcePlacementScheduled")
		if c == nil || !strings.Contains(c.Message, "the hub has no Namespace "+shop) {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	})
	f.check(f.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}}))
	f.eventually("the member gets the Namespace", func() error {
		for _, work := range f.works(crp) {
			if work.Namespace == m.namespaceName() && manifests(t, work)["Namespace "+shop] != nil {
				return nil
			}
		}
		return fmt.Errorf("it has %d Works", len(f.works(crp)))
	})
	f.untilSays(crp, "Scheduled", metav1.ConditionTrue, "1 members picked")
}

func TestAnObjectWithAGeneratedNameIsPlacedUnderThatName(t *testing.T) {
	f := newFixture(t)
	m := f.joined("generated", "env=prod")
	shop := f.shop()
	generated := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, GenerateName: "release-"}}
	f.check(f.Create(context.Background(), generated))
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilOn(crp, m)
	got := manifests(t, f.works(crp)[0])["ConfigMap "+generated.Name]
	if got == nil || got.GetGenerateName() != "release-" {
		t.Errorf("the manifest is %v", got)
	}
	if err := f.get(&corev1.ConfigMap{}, shop, "release-"); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}
