package testkube

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/api/crds"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	inventory "github.com/muster-fleet/muster/api/inventory/v1alpha1"
	muster "github.com/muster-fleet/muster/api/muster/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/charts"
	"github.com/muster-fleet/muster/internal/naming"
)

// scheme has all kinds of the fleet, the kinds of Kubernetes, and CustomResourceDefinition.
var scheme = sync.OnceValue(func() *runtime.Scheme {
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, fleet.AddToScheme, clusterv1beta1.AddToScheme, placement.AddToScheme,
		inventory.AddToScheme, muster.AddToScheme,
	} {
		if err := add(all); err != nil {
			panic(err) // two types have one name
		}
	}
	return all
})

// Client returns an uncached client of the cluster for all kinds of the fleet. All tests of the
// package share it.
func (c Cluster) Client(t testing.TB) client.Client {
	t.Helper()
	shared, err := c.client()
	if err != nil {
		t.Fatal(err)
	}
	return shared
}

// ServeFleet makes the cluster serve the kinds of the fleet, once for all tests of the package.
func (c Cluster) ServeFleet(t testing.TB) {
	t.Helper()
	c.crds.Do(func() { c.InstallCRDs(t) })
}

// InstallCRDs makes the cluster serve the kinds of the fleet, again after they were deleted.
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

// HubSettings are the settings of a hub under test: the defaults, except that clusters on this
// machine can be imported.
const HubSettings = `{"importLoopback":true}`

// InstallHub installs the content of the charts fleet-crd and fleet, once for all tests of the
// package, without the Deployment and with HubSettings.
//
// It returns a configuration that acts as the chart's ServiceAccount. A hub with this configuration
// has exactly its rights in production.
func (c Cluster) InstallHub(t testing.TB) *rest.Config {
	t.Helper()
	c.hub.Do(func() { c.installHub(t) })
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + naming.SystemNamespace + ":fleet-controller"}
	return config
}

func (c Cluster) installHub(t testing.TB) {
	t.Helper()
	c.ServeFleet(t)
	c.ensure(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: naming.SystemNamespace}})
	policies, err := fs.Glob(charts.FS, "fleet/templates/admission*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"flowcontrol", "rbac", "gitops-rbac"} {
		policies = append(policies, "fleet/templates/"+name+".yaml")
	}
	for _, path := range policies {
		c.InstallTemplate(t, path)
	}
	awaitAuthors(context.Background(), t, c.Client(t))
	c.allowPlacement(t)
	c.ensure(t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.HubConfigMap},
		Data:       map[string]string{"config": HubSettings},
	})
}

// ensure creates missing objects.
func (c Cluster) ensure(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := c.Client(t).Create(context.Background(), object); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
}

// bindingOf binds an account to a ClusterRole.
func bindingOf(name, clusterRole, namespace, account string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
	}
}

// InstallTemplate installs a template of the chart fleet with few values other than names.
func (c Cluster) InstallTemplate(t testing.TB, path string) {
	t.Helper()
	text, err := charts.FS.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool { return strings.HasPrefix(line, "{{") })
	values := strings.NewReplacer("{{ .Release.Namespace }}", naming.SystemNamespace,
		`{{ include "fleet.registrationNamespace" . }}`, naming.RegistrationNamespace(naming.SystemNamespace), "{{ $mutating }}", "v1",
		`{{ include "fleet.toolNamespaces" . }}`, "['argocd', 'flux-system', 'profile-readers']")
	applyAll(context.Background(), t, c.Client(t), values.Replace(strings.Join(lines, "\n")))
}

// awaitAuthors waits until the policy of placements is in effect, because a test must not start
// earlier.
func awaitAuthors(ctx context.Context, t testing.TB, cl client.Client) {
	t.Helper()
	Eventually(t, "placements have authors", func() error {
		rp := &placement.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: "any"}}
		rp.Spec.ResourceSelectors = []placement.ResourceSelector{{Version: "v1", Kind: "ConfigMap", Name: "any"}}
		if err := cl.Create(ctx, rp, client.DryRunAll); err != nil || rp.Annotations["muster/author"] == "" {
			return fmt.Errorf("this one has the annotations %v: %w", rp.Annotations, err)
		}
		return nil
	})
}

// allowPlacement gives the hub the rights to select objects for placements, with the chart's own
// values.
func (c Cluster) allowPlacement(t testing.TB) {
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
	c.ensure(t, role, bindingOf(name, name, naming.SystemNamespace, "fleet-controller"))
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
		if err := cl.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("testkube"),
			client.ForceOwnership); err != nil {
			t.Fatalf("applying %s %s: %v", object.GetKind(), object.GetName(), err)
		}
		names = append(names, object.GetName())
	}
	return names
}

// awaitServed waits until the API server serves a kind and discovery lists it.
func awaitServed(ctx context.Context, t testing.TB, cl client.Client, crd string) {
	t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	Eventually(t, "CustomResourceDefinition "+crd+" established", func() error {
		if err := cl.Get(ctx, client.ObjectKey{Name: crd}, definition); err != nil {
			return err
		}
		established := func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		}
		if !slices.ContainsFunc(definition.Status.Conditions, established) {
			return fmt.Errorf("its conditions are %v", definition.Status.Conditions)
		}
		_, err := cl.RESTMapper().RESTMapping(schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind},
			definition.Spec.Versions[0].Name)
		return err
	})
}
