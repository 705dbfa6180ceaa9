package testkube

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/api/crds"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	inventory "github.com/muster-fleet/muster/api/inventory/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/charts"
	"github.com/muster-fleet/muster/internal/naming"
)

// Client returns an uncached client of the cluster for all kinds of the fleet.
func (c Cluster) Client(t testing.TB) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, fleet.AddToScheme, clusterv1beta1.AddToScheme, placement.AddToScheme, inventory.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	made, err := client.New(c.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// InstallCRDs makes the cluster serve the kinds of the fleet.
func (c Cluster) InstallCRDs(t testing.TB) {
	t.Helper()
	ctx, cl := context.Background(), c.Client(t)
	entries, err := crds.FS.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, entry := range entries {
		text, err := crds.FS.ReadFile(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, applyAll(ctx, t, cl, string(text))...)
	}
	for _, name := range kinds {
		awaitServed(ctx, t, cl, name)
	}
}

// InstallHub installs what the charts fleet-crd and fleet install, but for the Deployment and with all settings at their defaults, and returns a configuration that acts as
// the chart's ServiceAccount, so that a hub run with it has exactly the rights that it has in production.
func (c Cluster) InstallHub(t testing.TB) *rest.Config {
	t.Helper()
	c.InstallCRDs(t)
	ctx, cl := context.Background(), c.Client(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: naming.SystemNamespace}}
	if err := cl.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	rbac, err := charts.FS.ReadFile("fleet/templates/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	values := strings.NewReplacer("{{ .Release.Namespace }}", naming.SystemNamespace, "{{ .Values.inventory.namespace | quote }}", `"fleet-inventory"`)
	applyAll(ctx, t, cl, values.Replace(string(rbac)))
	allowPlacement(ctx, t, cl)
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.HubConfigMap}, Data: map[string]string{"config": "{}"}}
	if err := cl.Create(ctx, settings); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + naming.SystemNamespace + ":fleet-controller"}
	return config
}

// allowPlacement gives the hub the rights by which the chart lets placements select, with the chart's own values.
func allowPlacement(ctx context.Context, t testing.TB, cl client.Client) {
	t.Helper()
	text, err := charts.FS.ReadFile("fleet/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var defaults struct {
		Placement struct {
			Resources []rbacv1.PolicyRule `json:"resources"`
		} `json:"placement"`
	}
	if err := yaml.Unmarshal(text, &defaults); err != nil {
		t.Fatal(err)
	}
	const name = "fleet-controller-placement"
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: defaults.Placement.Resources}
	for i := range role.Rules {
		role.Rules[i].Verbs = []string{"get", "list", "watch"}
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: naming.SystemNamespace, Name: "fleet-controller"}},
	}
	for _, object := range []client.Object{role, binding} {
		if err := cl.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

// applyAll applies every document of a YAML file and returns the names of its objects.
func applyAll(ctx context.Context, t testing.TB, cl client.Client, text string) []string {
	t.Helper()
	var names []string
	for _, document := range strings.Split(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if err := cl.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("testkube"), client.ForceOwnership); err != nil {
			t.Fatalf("applying %s %s: %v", object.GetKind(), object.GetName(), err)
		}
		names = append(names, object.GetName())
	}
	return names
}

// awaitServed waits until the API server serves a kind.
func awaitServed(ctx context.Context, t testing.TB, cl client.Client, crd string) {
	t.Helper()
	definition := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
	Eventually(t, "CustomResourceDefinition "+crd+" established", func() error {
		if err := cl.Get(ctx, client.ObjectKey{Name: crd}, definition); err != nil {
			return err
		}
		conditions, _, err := unstructured.NestedSlice(definition.Object, "status", "conditions")
		if err != nil {
			return err
		}
		for _, condition := range conditions {
			if fields, ok := condition.(map[string]any); ok && fields["type"] == "Established" && fields["status"] == string(metav1.ConditionTrue) {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %v", conditions)
	})
}
