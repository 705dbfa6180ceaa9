package hub_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// upstream is what a Rancher Fleet agent, whose program knows nothing of Muster's, does with its
// BundleDeployments: what is in an object it reads field by field, and hashes itself.
type upstream struct {
	legacyAgent
	t       *testing.T
	watched watch.Interface
}

// upstreamAgent joins and watches its namespace.
func (f fixture) upstreamAgent(values map[string]string, clientID string) *upstream {
	f.t.Helper()
	u := &upstream{legacyAgent: f.legacyJoin(values, clientID), t: f.t}
	config := rest.AnonymousClientConfig(f.cluster.Config)
	config.BearerToken = u.answer["token"]
	dialed, err := dynamic.NewForConfig(config)
	f.check(err)
	u.watched, err = dialed.Resource(fleet.GroupVersion.WithResource("bundledeployments")).Namespace(u.answer["deploymentNamespace"]).
		Watch(context.Background(), metav1.ListOptions{})
	f.check(err)
	f.t.Cleanup(u.watched.Stop)
	f.eventually("the agent beats", func() error { return u.beat(time.Now()) })
	return u
}

// next is the next BundleDeployment from the watch, as it came, for which the
// function returns true.
func (u *upstream) next(what string, wanted func(spec map[string]any) bool) *unstructured.Unstructured {
	u.t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		select {
		case e := <-u.watched.ResultChan():
			if d, ok := e.Object.(*unstructured.Unstructured); ok {
				if spec, ok := d.Object["spec"].(map[string]any); ok && e.Type != watch.Deleted && wanted(spec) {
					return d
				}
			}
		case <-timeout:
			u.t.Fatalf("the watch had no event for 30 s: %s", what)
		}
	}
}

// read unpacks the resources of a deployment and its values, and checks all hashes on the way.
func (u *upstream) read(d *unstructured.Unstructured) (resources []fleet.BundleResource, values string) {
	u.t.Helper()
	spec := d.Object["spec"].(map[string]any)
	id, options, _ := strings.Cut(spec["deploymentID"].(string), ":")
	if len(options) != sha256.Size*2 {
		u.t.Errorf("the deployment ID is %q", spec["deploymentID"])
	}
	content := &unstructured.Unstructured{}
	content.SetGroupVersionKind(fleet.GroupVersion.WithKind("Content"))
	u.check(u.Client.Get(context.Background(), client.ObjectKey{Name: id}, content))
	var packed struct {
		Content []byte `json:"content"`
		Sum     string `json:"sha256sum"`
	}
	text, err := json.Marshal(content.Object)
	u.check(err)
	u.check(json.Unmarshal(text, &packed))
	reader, err := gzip.NewReader(bytes.NewReader(packed.Content))
	u.check(err)
	plain, err := io.ReadAll(reader)
	u.check(err)
	if sum := hash(plain); sum != packed.Sum || id != ("s-" + sum)[:63] {
		u.t.Errorf("Content %s has the sum %s and hashes to %s", id, packed.Sum, sum)
	}
	var manifest struct {
		Resources []fleet.BundleResource `json:"resources"`
	}
	u.check(json.Unmarshal(plain, &manifest))

	wanted, _ := spec["valuesHash"].(string)
	if wanted == "" {
		return manifest.Resources, ""
	}
	var secret corev1.Secret
	u.check(u.Client.Get(context.Background(), client.ObjectKeyFromObject(d), &secret))
	if got := hash(append(bytes.Clone(secret.Data["values"]), secret.Data["stagedValues"]...)); got != wanted ||
		secret.Type != "fleet.cattle.io/bundle-deployment/v1alpha1" {
		u.t.Errorf("the values hash to %s, valuesHash is %s, the type %s", got, wanted, secret.Type)
	}
	return manifest.Resources, string(secret.Data["values"])
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// report merges a status as such agents write it, without what only hubs show.
func (u *upstream) report(d *unstructured.Unstructured, change func(status map[string]any)) {
	u.t.Helper()
	condition := func(kind string) map[string]any {
		return map[string]any{"type": kind, "status": "True", "lastUpdateTime": time.Now().UTC().Format(time.RFC3339)}
	}
	spec := d.Object["spec"].(map[string]any)
	status := map[string]any{
		"appliedDeploymentID": spec["deploymentID"], "release": "default/" + d.GetName() + ":1", "ready": true,
		"nonModified": true, "syncGeneration": 0,
		"conditions": []any{condition("Installed"), condition("Deployed"), condition("Monitored"), condition("Ready")},
		"resources": []any{map[string]any{
			"kind": "ConfigMap", "apiVersion": "v1", "namespace": "default", "name": "cm", "createdAt": "2026-01-02T03:04:05Z",
		}},
		"resourceCounts": map[string]any{
			"ready": 1, "desiredReady": 1, "waitApplied": 0, "modified": 0, "orphaned": 0, "missing": 0, "unknown": 0, "notReady": 0,
		},
		"nonReadyStatus": nil, "modifiedStatus": nil, "incompleteState": false,
	}
	change(status)
	patch, err := json.Marshal(map[string]any{"status": status})
	u.check(err)
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(fleet.GroupVersion.WithKind("BundleDeployment"))
	object.SetNamespace(d.GetNamespace())
	object.SetName(d.GetName())
	u.check(u.Client.Status().Patch(context.Background(), object, client.RawPatch("application/merge-patch+json", patch)))
}

func TestAnUnmodifiedRancherFleetAgentDeliversABundleAndItsChange(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	f.place("c1", map[string]string{"env": "dev"})
	f.check(f.Create(context.Background(), &fleet.ClusterGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "devs"},
		Spec:       fleet.ClusterGroupSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "dev"}}},
	}))
	u := f.upstreamAgent(values, "id-of-c1")
	b := f.bundle("app", configMap+`
defaultNamespace: shop
helm: {releaseName: app, values: {env: "${ .ClusterLabels.env }"}, takeOwnership: true, timeoutSeconds: 60}
dependsOn: [{name: base}]
targets: [{clusterGroup: devs}]
`)
	d := u.next("a first deployment", func(map[string]any) bool { return true })
	spec := d.Object["spec"].(map[string]any)
	if d.GetName() != "app" || d.GetLabels()["fleet.cattle.io/bundle-name"] != "app" ||
		d.GetLabels()["fleet.cattle.io/bundle-namespace"] != f.workspace {
		t.Errorf("its metadata is %v", d.Object["metadata"])
	}
	if fmt.Sprint(spec["options"]) != fmt.Sprint(spec["stagedOptions"]) || spec["deploymentID"] != spec["stagedDeploymentID"] {
		t.Errorf("what is staged differs: %v", spec)
	}
	options := spec["options"].(map[string]any)
	if got := fmt.Sprintln(options["defaultNamespace"], options["helm"],
		spec["dependsOn"]); got != "shop map[releaseName:app takeOwnership:true timeoutSeconds:60] [map[name:base]]\n" {
		t.Errorf("it is sent %s", got)
	}
	resources, filled := u.read(d)
	if len(resources) != 1 || resources[0].Name != "cm.yaml" || !strings.Contains(resources[0].Content, f.workspace) ||
		filled != `{"env":"dev"}` {
		t.Errorf("it reads %+v, %s", resources, filled)
	}
	u.report(d, func(map[string]any) {})
	f.allReady("c1", "devs")

	f.change(b, func() {
		b.Spec.CorrectDrift, b.Spec.ForceSyncGeneration = &fleet.CorrectDrift{Enabled: true, Force: true}, 1
		b.Spec.Resources[0].Content = "{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}"
	})
	d = u.next("another deployment", func(now map[string]any) bool { return now["deploymentID"] != spec["deploymentID"] })
	spec = d.Object["spec"].(map[string]any)
	if got := fmt.Sprint(spec["correctDrift"],
		spec["options"].(map[string]any)["forceSyncGeneration"]); got != "map[enabled:true force:true] 1" {
		t.Errorf("it is sent %s", got)
	}
	if resources, _ = u.read(d); !strings.Contains(resources[0].Content, "other") {
		t.Errorf("it reads %+v", resources)
	}
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "WaitApplied(1) [Cluster c1")
	u.report(d, func(s map[string]any) {
		s["ready"] = false
		s["conditions"] = append(s["conditions"].([]any)[:3], map[string]any{
			"type": "Ready", "status": "False", "message": "configmap.v1 shop/other is not ready",
		})
		s["nonReadyStatus"] = []any{map[string]any{"kind": "Deployment", "apiVersion": "apps/v1", "namespace": "shop", "name": "web", "uid": "u",
			"summary": map[string]any{"state": "in-progress", "transitioning": true, "message": []any{"0 of 1 ready"}}}}
	})
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "NotReady(1) [Cluster c1: Deployment shop/web: 0 of 1 ready]")
	u.report(d, func(s map[string]any) {
		s["nonModified"] = false
		s["modifiedStatus"] = []any{map[string]any{
			"kind": "ConfigMap", "apiVersion": "v1", "namespace": "shop", "name": "other", "missing": true,
		}}
	})
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "Modified(1) [Cluster c1: ConfigMap shop/other is missing]")
	u.report(d, func(s map[string]any) {
		s["conditions"] = []any{map[string]any{"type": "Installed", "status": "False", "message": "another release has it"}}
	})
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "NotReady(1) [Cluster c1: another release has it]")
	u.report(d, func(s map[string]any) { s["syncGeneration"] = 1 })
	f.allReady("c1", "devs")
	u.mayDoNoMore(d)
}

// allReady waits until Bundle, Cluster and ClusterGroup say so.
func (f fixture) allReady(cluster, group string) {
	f.t.Helper()
	f.untilBundle("app", "Ready", corev1.ConditionTrue)
	f.eventually("Cluster and ClusterGroup are ready", func() error {
		var c fleet.Cluster
		var g fleet.ClusterGroup
		if err := f.get(&c, f.workspace, cluster); err != nil {
			return err
		}
		if err := f.get(&g, f.workspace, group); err != nil {
			return err
		}
		if c.Status.Display.ReadyBundles != "1/1" || g.Status.Display.ReadyBundles != "1/1" || g.Status.Display.ReadyClusters != "1/1" {
			return fmt.Errorf("%+v, %+v", c.Status.Display, g.Status.Display)
		}
		return f.reason(cluster, "Ready")
	})
}

// mayDoNoMore tries what no agent may.
func (u *upstream) mayDoNoMore(d *unstructured.Unstructured) {
	u.t.Helper()
	ctx, namespace := context.Background(), client.InNamespace(d.GetNamespace())
	u.refused("it lists Contents", u.Client.List(ctx, &fleet.ContentList{}))
	u.refused("it lists the Secrets of its namespace", u.Client.List(ctx, &corev1.SecretList{}, namespace))
	u.refused("it lists BundleDeployments of all", u.Client.List(ctx, &fleet.BundleDeploymentList{}))
	u.refused("it changes what it is sent",
		u.Client.Patch(ctx, d.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"paused":true}}`))))
	u.refused("it deletes it", u.Client.Delete(ctx, d.DeepCopy()))
}
