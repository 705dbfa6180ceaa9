package bundle

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// chartOf is a chart with a ConfigMap of its own beside the templates given.
func chartOf(files ...fleet.BundleResource) []fleet.BundleResource {
	return append([]fleet.BundleResource{
		file("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
		file("templates/web.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"),
	}, files...)
}

func clusterRoleBinding(name string, annotations string) string {
	return fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: %s, annotations: {%s}}\n"+
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n", name, annotations)
}

func TestABundleThatIsConfinedToANamespaceDoesNothingElsewhere(t *testing.T) {
	r := newRig(t)
	r.start()
	elsewhere := r.namespace("elsewhere-")
	confined := fleet.BundleDeploymentOptions{TargetNamespace: r.target}
	const hook = "helm.sh/hook: pre-install"
	r.place("bound", confined, chartOf(file("templates/a.yaml", clusterRoleBinding(r.target, "")))...)
	r.place("hooked", confined, chartOf(file("templates/a.yaml", clusterRoleBinding(r.target, hook)))...)
	r.place("crds", confined, chartOf(file("crds/crd.yaml", r.definition().Content))...)
	r.place("subchart", confined, chartOf(
		file("charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 1.0.0\n"),
		file("charts/sub/crds/crd.yaml", r.definition().Content))...)
	r.place("both", confined,
		chartOf(file("templates/crd.yaml", r.definition().Content), file("templates/thing.yaml", r.thing("one").Content))...)
	r.place("into", confined, chartOf(file("templates/a.yaml", fmt.Sprintf(
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hooked, namespace: %s, annotations: {%s}}\n", elsewhere, hook)))...)

	const says = "is cluster-scoped, but spec.options.namespace confines the Bundle"
	for _, name := range []string{"bound", "hooked"} {
		r.until(name, fleet.StateErrApplied, "ClusterRoleBinding "+r.target+" "+says)
	}
	for _, name := range []string{"crds", "subchart", "both"} {
		r.until(name, fleet.StateErrApplied, "CustomResourceDefinition things."+r.group()+" ", says)
	}
	r.until("into", fleet.StateReady)
	if r.uid(elsewhere, "hooked") != "" || r.uid(r.target, "hooked") == "" {
		t.Error("the hook's object is not in the namespace of the Bundle")
	}
	r.untilGone(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: r.target}})
	r.untilGone(r.object(definitions, "", "things."+r.group()))
}

func TestABundleThatActsAsAnAccountHasItsRightsInAllItDoes(t *testing.T) {
	r := newRig(t)
	r.start()
	r.account("team", "*")
	secrets := r.namespace("secrets-")
	r.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "secret", Namespace: secrets}, Data: map[string][]byte{"key": []byte("secret")},
	})
	team := fleet.BundleDeploymentOptions{ServiceAccount: "team"}
	hook := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hooked, namespace: %s, annotations: {helm.sh/hook: pre-install}}\n",
		secrets)
	r.place("hooked", team, chartOf(file("templates/a.yaml", hook))...)
	r.place("crds", team, chartOf(file("crds/crd.yaml", r.definition().Content))...)
	r.place("lookup", team, chartOf(file("templates/a.yaml",
		fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: read}\ndata: {key: '{{ lookup \"v1\" \"Secret\" %q \"secret\" }}'}\n",
			secrets)))...)
	for name, part := range map[string]string{"hooked": "configmaps", "crds": "customresourcedefinitions", "lookup": "secrets"} {
		r.until(name, fleet.StateErrApplied, part, "forbidden", "system:serviceaccount:"+r.agent+":team")
	}
	if r.uid(secrets, "hooked") != "" {
		t.Error("the hook did what the account may not")
	}
}

func TestABundleBesideTheHubActsOnlyAsWhoIsMeantForBundles(t *testing.T) {
	r := newRig(t)
	r.start()
	for _, name := range []string{"fleet-controller", "fleet-controller-bootstrap", "somebody", "team"} {
		r.account(name, "*")
	}
	team := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "team", Namespace: r.agent}}
	r.check(r.kube.Patch(t.Context(), team,
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"muster/may-deploy":"true"}}}`))))
	for _, name := range []string{"fleet-controller", "fleet-controller-bootstrap", "somebody", "team"} {
		r.place(name, fleet.BundleDeploymentOptions{ServiceAccount: name}, configMap(name, "one"))
	}
	r.until("team", fleet.StateReady)
	for _, name := range []string{"fleet-controller", "fleet-controller-bootstrap", "somebody"} {
		r.until(name, fleet.StateErrApplied, "which spec.options.serviceAccount names, is not for Bundles",
			"kubectl -n "+r.agent+" label serviceaccount "+name+" muster/may-deploy=true")
		if r.uid(r.target, name) != "" {
			t.Errorf("a Bundle has acted as %s", name)
		}
	}
	r.account("fleet-default", "*")
	r.deploy("default", fleet.BundleDeploymentOptions{}, configMap("default", "one"))
}

func TestABundleMayNotActAsTheAgent(t *testing.T) {
	r := newRig(t)
	r.start()
	r.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "fleet-agent", Namespace: r.agent}})
	r.place("web", fleet.BundleDeploymentOptions{ServiceAccount: "fleet-agent"}, configMap("web", "one"))
	r.until("web", fleet.StateErrApplied, "spec.options.serviceAccount is fleet-agent, the agent's own account")
}
