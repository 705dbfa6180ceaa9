package cli

import (
	"crypto/sha1" //nolint:gosec // as Rancher Fleet does
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/muster-fleet/muster/api/crds"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// inSet marks an object as applied by Rancher Fleet's hub for an owner.
func inSet(o client.Object, set, ownerKind, owner, in string) {
	labels, annotations := map[string]string{}, map[string]string{}
	for key, value := range o.GetLabels() {
		labels[key] = value
	}
	for key, value := range o.GetAnnotations() {
		annotations[key] = value
	}
	//nolint:gosec // as Rancher Fleet does
	labels["objectset.rio.cattle.io/hash"] = fmt.Sprintf("%x", sha1.Sum([]byte(set+ownerKind+owner+in)))
	annotations["objectset.rio.cattle.io/id"], annotations["objectset.rio.cattle.io/owner-gvk"] = set, ownerKind
	annotations["objectset.rio.cattle.io/owner-name"], annotations["objectset.rio.cattle.io/owner-namespace"] = owner, in
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
}

// rancherCRDs is Rancher Fleet's chart of CRDs, with one kind unknown to Muster.
func rancherCRDs(t *testing.T) map[string]string {
	t.Helper()
	chart := map[string]string{"Chart.yaml": "apiVersion: v2\nname: fleet-crd\nversion: 0.16.1\n"}
	files, err := crds.FS.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := crds.FS.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(file.Name(), "fleet.cattle.io_") {
			chart["templates/"+file.Name()] = strings.ReplaceAll(strings.ReplaceAll(string(text), "{{", `{{ "{{" }}`),
				"helm.sh/resource-policy: keep", "a: b")
		}
	}
	chart["templates/other.yaml"] = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: others.fleet.cattle.io}
spec:
  group: fleet.cattle.io
  names: {kind: Other, listKind: OtherList, plural: others, singular: other}
  scope: Namespaced
  versions: [{name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`
	return chart
}

// TestAHubOfRancherFleetMigratesInItsPlaceAndBack imitates the objects of Rancher Fleet's hub;
// its Deployments do nothing.
func TestAHubOfRancherFleetMigratesInItsPlaceAndBack(t *testing.T) {
	t.Parallel()
	hub, edge := withPods(t, "cli-place", append([]string{"mirror/rancher/fleet=/bin/sleep"}, theirImages...)...),
		withPods(t, "cli-placed", theirImages...)
	imported := withPods(t, "cli-imported", theirImages...)
	admin, h, ctx := contexts(t, hub, edge, imported), rancherHub{their{t, hub, hub.Client(t)}}, t.Context()
	admin.refused("migrate --from rancher-fleet", "the hub has no hub of Rancher Fleet", "say which members change over, by their contexts")
	h.installBy(false, rancherCRDs(t), naming.SystemNamespace, nil)
	h.installBy(false, map[string]string{"Chart.yaml": "apiVersion: v2\nname: fleet\nversion: 0.16.1\n",
		"values.yaml": "image: {repository: rancher/fleet, tag: v0.16.1}\n",
		"templates/hub.yaml": deploymentOf(hubDeployment, naming.SystemNamespace,
			"app: fleet-controller", "{{ .Values.image.repository }}:{{ .Values.image.tag }}"),
		"templates/gitjob.yaml": deploymentOf("gitjob", naming.SystemNamespace,
			"app: gitjob", "{{ .Values.image.repository }}:{{ .Values.image.tag }}"),
	}, naming.SystemNamespace, map[string]any{"apiServerURL": hub.Config.Host, "apiServerCA": string(hub.Config.CAData),
		"image":      map[string]any{"repository": "mirror/rancher/fleet"},
		"agentImage": map[string]any{"repository": "mirror/rancher/fleet-agent"}})
	roles := []*rbacv1.ClusterRole{}
	for _, name := range []string{"fleet-bundle-deployment", "fleet-content"} {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
		h.check(h.Create(ctx, role))
		roles = append(roles, role)
	}
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c-1"}, Spec: fleet.ClusterSpec{ClientID: "c-1"}}
	testkube.Eventually(t, "the kinds are served", func() error { return h.Create(ctx, cluster) })
	uid, gitjob := cluster.UID, types.NamespacedName{Namespace: naming.SystemNamespace, Name: "gitjob"}
	definition := func(of string) *metav1.PartialObjectMetadata {
		t.Helper()
		found := kube.Metadata(definitions)
		h.check(h.Get(ctx, client.ObjectKey{Name: of + ".fleet.cattle.io"}, found))
		return found
	}
	clusters := definition("clusters").UID
	registration := h.registers(cluster)
	d := their{t, edge, edge.Client(t)}
	d.install(rancherChart, naming.SystemNamespace, map[string]any{
		"apiServerURL": hub.Config.Host, "image": map[string]any{"repository": "mirror/rancher/fleet-agent", "tag": "v0.16.1"},
	})
	d.check(d.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.AgentSecret},
		StringData: map[string]string{
			"kubeconfig": string(hub.Kubeconfig(t, registration.token)), "clusterNamespace": "default", "clusterName": "c-1",
			"deploymentNamespace": naming.MemberNamespace("default", "c-1")}}))
	theirBundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "fleet-agent-c-1"}}
	theirBundle.Spec.Resources = []fleet.BundleResource{{
		Name: "agent.yaml", Content: "{apiVersion: v1, kind: ConfigMap, metadata: {name: their-agent}}",
	}}
	theirBundle.Spec.DefaultNamespace, theirBundle.Spec.Targets = naming.SystemNamespace, []fleet.BundleTarget{{ClusterName: "c-1"}}
	inSet(theirBundle, "fleet-manage-agent", "/v1, Kind=Namespace", "default", "")
	h.check(h.Create(ctx, theirBundle))
	d.plays(clusterAgent, "mirror/rancher/fleet-agent", registration.beat)
	second := h.importedAs("c-2", imported)

	for _, args := range []string{"migrate --from rancher-fleet --dry-run", "migrate --from rancher-fleet"} {
		admin.refused(args, "neither Muster nor Rancher Fleet created them; nothing is changed",
			"delete clusterrole fleet-bundle-deployment fleet-content")
		h.replicas(musterHub, 1)
	}
	for _, role := range roles {
		inSet(role, "fleet-bootstrap-data", "", "", "")
		h.check(h.Update(ctx, role))
	}
	admin.runs("migrate --from rancher-fleet --dry-run", "Rancher Fleet's hub is release cattle-fleet-system/fleet-crd and "+
		"cattle-fleet-system/fleet", "ClusterRole fleet-content of Rancher Fleet is taken over",
		"Deployment cattle-fleet-system/gitjob would be scaled to 0.", "would upgrade revision 1, of 0.16.1, to chart fleet 0.1.0")
	h.replicas(musterHub, 1)
	admin.runs("migrate --from rancher-fleet", "Deployment cattle-fleet-system/fleet-controller is stopped",
		"Deployment cattle-fleet-system/gitjob is stopped", "The hub is running.", "The members stay registered")
	if err := h.Get(ctx, gitjob, &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
		t.Errorf("the rest of Rancher Fleet's hub: %v", err)
	}
	h.check(h.Get(ctx, client.ObjectKeyFromObject(cluster), cluster))
	if definition("clusters").UID != clusters || definition("others").UID == "" || cluster.UID != uid {
		t.Error("what was there is made anew")
	}
	for _, role := range roles {
		testkube.Eventually(t, "the hub has taken over "+role.Name, func() error {
			if err := h.Get(ctx, client.ObjectKeyFromObject(role), role); err != nil {
				return err
			}
			if role.Labels[fleet.LabelManaged] != "true" || len(role.Rules) == 0 || role.Annotations["objectset.rio.cattle.io/id"] == "" {
				return fmt.Errorf("it is %+v", role)
			}
			return nil
		})
	}
	admin.refused("migrate --from rancher-fleet", "the hub has no hub of Rancher Fleet", "say which members change over, by their contexts")
	admin.runs("migrate --from rancher-fleet --dry-run cli-placed",
		"is registered by the hub of Rancher Fleet that was in the place of this one",
		"Muster's chart would replace the release fleet-agent")
	admin.runs("migrate --from rancher-fleet cli-placed", "Bundle default/fleet-agent-c-1 of Rancher Fleet's agent is paused",
		"\ndefault/c-1 Cluster ", "Rancher Fleet has left 6 objects of the agent", "delete clusterrolebinding request-1-content",
		"delete serviceaccount request-1-uid", "delete secret fleet-agent-before-move")
	second.goes(admin)
	admin.refused("migrate --from rancher-fleet --back",
		"have Muster's agent, which Rancher Fleet's hub does not know (default/c-1, default/c-2)")
	bundle := types.NamespacedName{Namespace: "default", Name: "fleet-agent-c-1"}
	testkube.Eventually(t, "the hub manages Muster's agent", func() error {
		of := &fleet.Bundle{}
		if err := h.Get(ctx, bundle, of); err != nil || of.Labels[fleet.LabelAgent] != "" {
			return err
		}
		return fmt.Errorf("its Bundle has the labels %v", of.Labels)
	})
	if err := d.Get(ctx, types.NamespacedName{Namespace: naming.SystemNamespace, Name: "their-agent"},
		&corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("Muster's agent has deployed Rancher Fleet's in its place: %v", err)
	}
	admin.runs("migrate --from rancher-fleet --back cli-placed", "the hub takes Bundle default/fleet-agent-c-1 of Muster's agent away",
		"is Cluster default/c-1 of the hub at "+hub.Config.Host+" again.")
	d.hasTheirAccount(clusterAgent)
	second.returns(admin)
	testkube.Eventually(t, "Rancher Fleet's agent beats", func() error {
		_, _, err := admin.run("migrate", "--from", "rancher-fleet", "--back", "--dry-run")
		return err
	})

	// The hub deletes the Bundle that it wrote for an agent. A tenant's with the same label stays.
	third := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c-3"}}
	h.check(h.Create(ctx, third))
	agents, tenants := &fleet.Bundle{}, &fleet.Bundle{}
	for bundle, name := range map[*fleet.Bundle]string{agents: "fleet-agent-c-3", tenants: "fleet-agent-c-4"} {
		bundle.Namespace, bundle.Name, bundle.Labels = "default", name, map[string]string{fleet.LabelAgent: "a.b"}
	}
	h.check(controllerutil.SetControllerReference(third, agents, h.Scheme()))
	h.check(errors.Join(h.Create(ctx, agents), h.Create(ctx, tenants)))
	admin.runs("migrate --from rancher-fleet --back --dry-run", "which becomes again what it was with revision 1")
	h.check(h.Get(ctx, client.ObjectKeyFromObject(agents), agents))
	h.scale(musterHub, 0)
	out, said, err := admin.run("migrate", "--from", "rancher-fleet", "--back", "--timeout", "30s")
	if err == nil || !strings.Contains(out, "the hub takes Bundle default/fleet-agent-c-3 of Muster's agent away") ||
		!strings.Contains(said, "Bundle default/fleet-agent-c-3 of Muster's agent is not gone, and only a running hub deletes it") {
		t.Errorf("without a hub, the way back says %s\n%s", out, said)
	}
	h.scale(musterHub, 1)
	admin.runs("migrate --from rancher-fleet --back",
		"Bundle default/fleet-agent-c-4 has the label muster/agent-version and no Cluster as its owner; it stays",
		"Deployment cattle-fleet-system/fleet-controller is stopped", "Rancher Fleet's hub runs")
	if err := h.Get(ctx, client.ObjectKeyFromObject(agents), agents); !apierrors.IsNotFound(err) {
		t.Errorf("reading the Bundle of an agent: %v", err)
	}
	h.check(h.Get(ctx, client.ObjectKeyFromObject(tenants), tenants))
	theirs := &appsv1.Deployment{}
	h.check(h.Get(ctx, gitjob, theirs))
	h.check(h.Get(ctx, musterHub, theirs))
	if image := theirs.Spec.Template.Spec.Containers[0].Image; image != "mirror/rancher/fleet:v0.16.1" {
		t.Errorf("the hub runs %s", image)
	}
	h.check(h.Get(ctx, client.ObjectKeyFromObject(cluster), cluster))
	h.check(h.Get(ctx, client.ObjectKeyFromObject(third), third))
	for _, one := range []*fleet.Cluster{cluster, third} {
		if _, left := one.Labels[fleet.LabelNonManagedAgent]; left {
			t.Errorf("Rancher Fleet's hub would not manage the agent of %s", one.Name)
		}
	}
	if err := h.Get(ctx, bundle, &fleet.Bundle{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Bundle of Muster's agent, which Rancher Fleet's would deploy: %v", err)
	}
	if definition("clusters").UID != clusters || cluster.UID != uid {
		t.Error("what was there is made anew on the way back")
	}
	admin.runs("migrate --from rancher-fleet --back", "already", "Rancher Fleet's hub runs")
	second.ends()
}
