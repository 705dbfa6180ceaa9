package hub_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/kube"
)

// place is a Cluster whose agent is played by hand.
type place struct {
	fixture
	name, namespace string
}

// place makes a Cluster in a workspace and waits for its member namespace.
func (f fixture) place(name string, labels map[string]string) place {
	f.t.Helper()
	cluster := &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name, Labels: labels}, Spec: fleet.ClusterSpec{ClientID: "id-of-" + name},
	}
	f.check(f.Create(context.Background(), cluster))
	f.eventually("Cluster "+name+" has a namespace", func() error {
		if err := f.get(cluster, f.workspace, name); err != nil {
			return err
		}
		if cluster.Status.Namespace == "" {
			return fmt.Errorf("status is %+v", cluster.Status)
		}
		return nil
	})
	return place{f, name, cluster.Status.Namespace}
}

// deployment waits for the deployment of a Bundle at a place until it is as checked.
func (p place) deployment(bundle string, check func(fleet.BundleDeployment) error) fleet.BundleDeployment {
	p.t.Helper()
	var d fleet.BundleDeployment
	p.eventually(bundle+" on "+p.name, func() error {
		d = fleet.BundleDeployment{}
		if err := p.get(&d, p.namespace, bundle); err != nil {
			return err
		}
		return check(d)
	})
	return d
}

func there(d fleet.BundleDeployment) error {
	if d.Spec.DeploymentID == "" {
		return errors.New("it is held back")
	}
	return nil
}

// held is what a deployment is that is wanted and whose turn has not come: its agent does nothing.
func held(d fleet.BundleDeployment) error {
	if d.Spec.DeploymentID != "" || d.Spec.StagedDeploymentID == "" {
		return fmt.Errorf("it deploys %s, and %s is staged", d.Spec.DeploymentID, d.Spec.StagedDeploymentID)
	}
	return nil
}

// settled is what a deployment is when the hub has written its status, too: nothing follows by
// itself until the agent reports.
func settled(d fleet.BundleDeployment) error {
	if d.Status.Display.State == "" {
		return errors.New("the hub has not written its status yet")
	}
	return nil
}

// without waits until a place has no deployment of a Bundle.
func (p place) without(bundle string) {
	p.t.Helper()
	p.eventually(bundle+" is gone from "+p.name, func() error { return gone(p.get(&fleet.BundleDeployment{}, p.namespace, bundle)) })
}

func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("still there: %w", err)
}

// ready reports, with the identity given, that the last deployment is in place.
func ready(t *testing.T, as client.Client, d fleet.BundleDeployment) {
	t.Helper()
	reportDeployment(t, as, d, func(map[string]any) {})
}

// reportDeployment writes the status as an upstream agent does: with a merge patch, and with fields
// unknown to Muster.
func reportDeployment(t *testing.T, as client.Client, d fleet.BundleDeployment, change func(map[string]any)) {
	t.Helper()
	status := map[string]any{
		"appliedDeploymentID": d.Spec.DeploymentID, "ready": true, "nonModified": true,
		"release": "default/" + d.Name + ":1", "unheardOf": map[string]any{"a": 1},
		"conditions":     []any{map[string]any{"type": "Deployed", "status": "True"}, map[string]any{"type": "Ready", "status": "True"}},
		"nonReadyStatus": nil, "modifiedStatus": nil, "resourceCounts": map[string]any{"ready": 2, "desiredReady": 2},
	}
	change(status)
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		t.Fatal(err)
	}
	if err := as.Status().Patch(context.Background(), &d, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

// bundle creates a Bundle of YAML text.
func (f fixture) bundle(name, spec string) *fleet.Bundle {
	f.t.Helper()
	b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name}}
	f.check(yaml.UnmarshalStrict([]byte(strings.ReplaceAll(spec, "WORKSPACE", f.workspace)), &b.Spec))
	f.check(f.Create(context.Background(), b))
	return b
}

// change edits an object until the edit is not in conflict.
func (f fixture) change(o client.Object, edit func()) {
	f.t.Helper()
	f.changeAs(f.Client, o, edit)
}

func (f fixture) changeAs(by client.Client, o client.Object, edit func()) {
	f.t.Helper()
	f.eventually("changing "+o.GetName(), func() error {
		if err := by.Get(context.Background(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		edit()
		return by.Update(context.Background(), o)
	})
}

// untilBundle waits until a condition of a Bundle contains a text, and returns the Bundle.
func (f fixture) untilBundle(name, condition string, status corev1.ConditionStatus, texts ...string) fleet.Bundle {
	f.t.Helper()
	var b fleet.Bundle
	f.eventually(fmt.Sprintf("Bundle %s has %s=%s %v", name, condition, status, texts), func() error {
		if err := f.get(&b, f.workspace, name); err != nil {
			return err
		}
		c := kube.FindCondition(b.Status.Conditions, condition)
		if c == nil || c.Status != status || b.Status.ObservedGeneration != b.Generation {
			return fmt.Errorf("conditions are %+v", b.Status.Conditions)
		}
		for _, text := range texts {
			if !strings.Contains(c.Message, text) {
				return fmt.Errorf("message is %q", c.Message)
			}
		}
		return nil
	})
	return b
}

const configMap = `
resources:
- name: cm.yaml
  content: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: WORKSPACE}
`

// TestABundleArrivesWithTheRightsOfItsMember plays an upstream agent with its own credential from
// the BundleDeployment to BUNDLES-READY.
func TestABundleArrivesWithTheRightsOfItsMember(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	f.place("c1", map[string]string{"env": "dev"})
	agent := f.legacyJoin(values, "id-of-c1")
	f.eventually("the agent beats", func() error { return agent.beat(time.Now()) })
	p := place{f, "c1", agent.answer["deploymentNamespace"]}
	f.check(f.Create(context.Background(), &fleet.ClusterGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "devs"},
		Spec:       fleet.ClusterGroupSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "dev"}}},
	}))
	f.bundle("app", configMap+`
helm:
  releaseName: app
  values: {env: "${ .ClusterLabels.env }", name: "${ .ClusterName }"}
targets:
- clusterGroup: devs
`)
	d := p.deployment("app", there)
	if d.Spec.DeploymentID != d.Spec.StagedDeploymentID || d.Spec.Options.Helm.ReleaseName != "app" || d.Spec.Options.Helm.Values != nil {
		t.Errorf("spec is %+v", d.Spec)
	}
	if got := d.Labels; got[fleet.LabelBundleName] != "app" || got[fleet.LabelBundleNamespace] != f.workspace ||
		got[fleet.LabelCluster] != "c1" {
		t.Errorf("labels are %v", got)
	}
	var secret corev1.Secret
	f.check(agent.Client.Get(context.Background(), client.ObjectKeyFromObject(&d), &secret))
	if string(secret.Data["values"]) != `{"env":"dev","name":"c1"}` || secret.Type != fleet.SecretTypeDeployment ||
		delivery.ValuesHash(secret.Data) != d.Spec.ValuesHash {
		t.Errorf("Secret of type %s has %s, hash %s", secret.Type, secret.Data["values"], d.Spec.ValuesHash)
	}
	var content fleet.Content
	f.check(agent.Client.Get(context.Background(), types.NamespacedName{Name: delivery.ContentName(d.Spec.DeploymentID)}, &content))
	if resources, err := delivery.Unpack(&content); err != nil || len(resources) != 1 || resources[0].Name != "cm.yaml" {
		t.Errorf("resources are %+v (%v)", resources, err)
	}
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "WaitApplied(1) [Cluster c1")
	ready(t, agent.Client, d)
	b := f.untilBundle("app", "Ready", corev1.ConditionTrue)
	if b.Status.Display.ReadyClusters != "1/1" || b.Status.Summary.Ready != 1 || b.Status.ResourcesSHA256Sum != content.SHA256Sum {
		t.Errorf("status is %+v", b.Status)
	}
	f.eventually("Cluster and ClusterGroup show it", func() error {
		var cluster fleet.Cluster
		var group fleet.ClusterGroup
		if err := f.get(&cluster, f.workspace, "c1"); err != nil {
			return err
		}
		if err := f.get(&group, f.workspace, "devs"); err != nil {
			return err
		}
		if cluster.Status.Display.ReadyBundles != "1/1" || cluster.Status.ResourceCounts.Ready != 2 ||
			group.Status.Display.ReadyBundles != "1/1" ||
			group.Status.Display.ReadyClusters != "1/1" {
			return fmt.Errorf("%+v, %+v", cluster.Status.Display, group.Status.Display)
		}
		return nil
	})
	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(fleet.GroupVersion.WithKind("BundleDeployment"))
	f.check(f.get(raw, d.Namespace, d.Name))
	if _, found, _ := unstructured.NestedFieldNoCopy(raw.Object, "status", "unheardOf"); !found {
		t.Errorf("a field that the hub does not know was dropped: %v", raw.Object["status"])
	}
}

func TestABundleFollowsLabelsAndTouchesNobodyElse(t *testing.T) {
	f := newAlone(t, "")
	a, b := f.place("a", map[string]string{"env": "dev"}), f.place("b", map[string]string{"env": "prod"})
	f.bundle("app", configMap+`
targets:
- clusterSelector: {matchLabels: {env: dev}}
`)
	first := a.deployment("app", settled)
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "b"}}
	f.change(cluster, func() { cluster.Labels["env"] = "dev" })
	b.deployment("app", there)
	f.change(cluster, func() { cluster.Labels["env"] = "prod" })
	b.without("app")
	f.restartHub() // what it finds as it should be, it leaves
	late := f.place("late", map[string]string{"env": "dev"})
	late.deployment("app", there)
	if again := a.deployment("app", there); again.ResourceVersion != first.ResourceVersion {
		t.Errorf("the deployment on another Cluster was written: %s, before %s", again.ResourceVersion, first.ResourceVersion)
	}
	f.check(f.Delete(context.Background(), cluster))
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "WaitApplied(2)")
}

func TestTakingABundleAwayLeavesNothing(t *testing.T) {
	f := newFixture(t)
	p := f.place("a", map[string]string{"env": "dev"})
	b := f.bundle("app", configMap+`
helm: {values: {a: 1}}
targets: [{clusterSelector: {}}]
`)
	d := p.deployment("app", there)
	content := &fleet.Content{ObjectMeta: metav1.ObjectMeta{Name: delivery.ContentName(d.Spec.DeploymentID)}}
	// What an upstream hub left must not keep it.
	f.change(&d, func() { d.Finalizers = []string{fleet.FinalizerBundleDeployment} })
	f.check(f.Delete(context.Background(), b))
	p.without("app")
	f.eventually("Bundle, values and Content are gone", func() error {
		for _, o := range []client.Object{b, content, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "app"}}} {
			if err := gone(f.Get(context.Background(), client.ObjectKeyFromObject(o), o)); err != nil {
				return fmt.Errorf("%T: %w", o, err)
			}
		}
		return nil
	})
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	f := newFixture(t)
	p := f.place("a", map[string]string{"env": "dev"})
	b := f.bundle("app", `
resources:
- {name: good.yaml, content: "a: 1"}
- {name: dir/bad.yaml, content: "a: 1\nb:\n  - c\n d: 2\n"}
targets: [{clusterName: a}]
contentsId: elsewhere
`)
	f.untilBundle("app", "Processed", corev1.ConditionFalse, "dir/bad.yaml: invalid YAML: line 4")
	f.untilBundle("app", "Supported", corev1.ConditionFalse, "spec.contentsId")
	f.change(b, func() {
		b.Spec.Resources, b.Spec.ContentsID = b.Spec.Resources[:1], ""
		b.Spec.Helm = &fleet.HelmOptions{Values: &runtime.RawExtension{Raw: []byte(`{"x":{"zone":"${ .ClusterLabels.zone }"}}`)}}
	})
	f.untilBundle("app", "Processed", corev1.ConditionFalse, "Cluster a: helm.values.x.zone:", `"zone"`)
	f.untilBundle("app", "Supported", corev1.ConditionTrue)
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "a"}}
	f.change(cluster, func() { cluster.Labels["zone"] = "z" })
	d := p.deployment("app", there)
	f.untilBundle("app", "Processed", corev1.ConditionTrue)

	reportDeployment(t, f, d, func(s map[string]any) {
		s["ready"], s["appliedDeploymentID"] = false, ""
		s["conditions"] = []any{map[string]any{"type": "Deployed", "status": "False", "message": "the chart does not render: x is required"}}
	})
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "ErrApplied(1) [Cluster a: the chart does not render: x is required]")
	reportDeployment(t, f, d, func(s map[string]any) {
		s["ready"] = false
		s["nonReadyStatus"] = []any{map[string]any{
			"kind": "Deployment", "namespace": "default", "name": "web", "summary": map[string]any{"message": []any{"0 of 1 ready"}},
		}}
	})
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "NotReady(1) [Cluster a: Deployment default/web: 0 of 1 ready]")
	reportDeployment(t, f, d, func(s map[string]any) {
		s["nonModified"] = false
		s["modifiedStatus"] = []any{map[string]any{"kind": "Secret", "namespace": "default", "name": "s", "patch": `{"data":{"p":"hunter2"}}`}}
	})
	shown := f.untilBundle("app", "Ready", corev1.ConditionFalse, "Modified(1) [Cluster a: Secret default/s was changed]")
	if text, _ := json.Marshal(shown.Status); strings.Contains(string(text), "hunter2") {
		t.Error("the Bundle shows what is in a Secret downstream")
	}
	f.eventually("the Cluster says it too", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return err
		}
		if cluster.Status.Summary.Modified != 1 || cluster.Status.Display.ReadyBundles != "0/1" {
			return fmt.Errorf("%+v", cluster.Status.Summary)
		}
		return nil
	})
}

func TestAClusterOfSomebodyElseIsLeftAloneAndALostNamespaceIsFilledAgain(t *testing.T) {
	f := newFixture(t)
	a, b := f.place("a", nil), f.place("b", nil)
	f.bundle("app", configMap+"\ntargets: [{clusterSelector: {}}]\n")
	old := a.deployment("app", there)
	kept := b.deployment("app", there)
	f.check(f.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace}}))
	a.deployment("app", func(d fleet.BundleDeployment) error {
		if d.UID == old.UID {
			return fmt.Errorf("it is the old one")
		}
		return nil
	})
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "b"}}
	f.change(cluster, func() { cluster.Labels = map[string]string{fleet.LabelClusterManagement: "somebody"} })
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "WaitApplied(1) [Cluster a")
	if d := b.deployment("app", there); d.UID != kept.UID || d.DeletionTimestamp != nil {
		t.Errorf("what the hub does not manage was removed: %+v", d.ObjectMeta)
	}
}

func TestDeletedPartsHeal(t *testing.T) {
	f := newFixture(t)
	p := f.place("a", nil)
	f.bundle("app", configMap+`
helm: {values: {a: 1}}
targets: [{clusterSelector: {}}]
`)
	d := p.deployment("app", there)
	f.untilBundle("app", "Processed", corev1.ConditionTrue)
	old := d.UID
	f.check(f.Delete(context.Background(), &d))
	d = p.deployment("app", func(d fleet.BundleDeployment) error {
		if d.UID == old {
			return fmt.Errorf("it is the old one")
		}
		return nil
	})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "app"}}
	f.check(f.Delete(context.Background(), secret))
	f.eventually("the values are back", func() error { return f.get(secret, p.namespace, "app") })
	content := &fleet.Content{}
	f.check(f.get(content, "", delivery.ContentName(d.Spec.DeploymentID)))
	for what, harm := range map[string]func() error{
		"deleted": func() error { return f.Delete(context.Background(), content.DeepCopy()) },
		"tampered": func() error {
			c := content.DeepCopy()
			c.ResourceVersion, c.Content = "", []byte("x")
			return f.Patch(context.Background(), c, client.Merge)
		},
	} {
		f.eventually("harm", harm)
		f.eventually("a Content that was "+what+" is made anew", func() error {
			if err := f.get(content, "", content.Name); err != nil {
				return err
			}
			_, err := delivery.Unpack(content)
			return err
		})
	}
}

func TestWavesWaitForEachOther(t *testing.T) {
	f := newFixture(t)
	places := []place{f.place("a", nil), f.place("b", nil), f.place("canary", map[string]string{"wave": "canary"})}
	b := f.bundle("app", configMap+`
rolloutStrategy:
  maxUnavailable: 1
  partitions: [{name: canary, maxUnavailable: 0, clusterSelector: {matchLabels: {wave: canary}}}, {name: rest, clusterSelector: {}}]
targets: [{clusterSelector: {}}]
`)
	canary := places[2].deployment("app", there)
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "WaitApplied")
	places[0].deployment("app", held)
	for _, p := range []place{places[2], places[0], places[1]} {
		ready(t, f, p.deployment("app", there))
	}
	f.untilBundle("app", "Ready", corev1.ConditionTrue)

	// What goes by mistake is written again at once, whatever holds it back: its agent takes the
	// absence for a removal.
	f.change(b, func() { b.Spec.Paused = true })
	lost := places[1].deployment("app", func(d fleet.BundleDeployment) error {
		if !d.Spec.Paused {
			return errors.New("it is not paused")
		}
		return nil
	})
	f.check(f.Delete(context.Background(), &lost))
	places[1].deployment("app", func(d fleet.BundleDeployment) error {
		if d.UID == lost.UID {
			return errors.New("it is the one from before")
		}
		return held(d)
	})
	f.change(b, func() { b.Spec.Paused = false })
	ready(t, f, places[1].deployment("app", there))
	f.untilBundle("app", "Ready", corev1.ConditionTrue)

	f.change(b, func() { b.Spec.DefaultNamespace = "two" })
	updated := func(d fleet.BundleDeployment) error {
		if d.Spec.DeploymentID == canary.Spec.DeploymentID {
			return fmt.Errorf("not updated yet")
		}
		return nil
	}
	second := places[2].deployment("app", updated)
	for _, p := range places[:2] {
		p.deployment("app", func(d fleet.BundleDeployment) error {
			if d.Spec.StagedDeploymentID != second.Spec.DeploymentID || d.Spec.DeploymentID != canary.Spec.DeploymentID {
				return fmt.Errorf("staged %s, deployed %s", d.Spec.StagedDeploymentID, d.Spec.DeploymentID)
			}
			return nil
		})
	}
	status := f.untilBundle("app", "Ready", corev1.ConditionFalse, "WaitApplied")
	if len(status.Status.PartitionStatus) != 2 || status.Status.PartitionStatus[0].Name != "canary" {
		t.Errorf("partitions are %+v", status.Status.PartitionStatus)
	}
	ready(t, f, second)
	ready(t, f, places[0].deployment("app", updated))
	ready(t, f, places[1].deployment("app", updated))
	f.untilBundle("app", "Ready", corev1.ConditionTrue)
}

func TestAPausedClusterIsLeftAloneAndThenGetsOnlyTheLast(t *testing.T) {
	f := newFixture(t)
	p := f.place("a", nil)
	b := f.bundle("app", configMap+`
targets: [{clusterSelector: {}}]
`)
	first := p.deployment("app", there)
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "a"}}
	f.change(cluster, func() { cluster.Spec.Paused = true })
	p.deployment("app", func(d fleet.BundleDeployment) error {
		if !d.Spec.Paused {
			return fmt.Errorf("not paused")
		}
		return nil
	})
	for _, namespace := range []string{"one", "two"} {
		f.change(b, func() { b.Spec.DefaultNamespace = namespace })
		p.deployment("app", func(d fleet.BundleDeployment) error {
			if d.Spec.StagedOptions.DefaultNamespace != namespace || d.Spec.DeploymentID != first.Spec.DeploymentID ||
				d.Spec.Options.DefaultNamespace != "" {
				return fmt.Errorf("spec is %+v", d.Spec)
			}
			return nil
		})
	}
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "Pending(1) [Cluster a: the Cluster is paused]")
	f.change(cluster, func() { cluster.Spec.Paused = false })
	p.deployment("app", func(d fleet.BundleDeployment) error {
		if d.Spec.Paused || d.Spec.Options.DefaultNamespace != "two" || d.Spec.DeploymentID != d.Spec.StagedDeploymentID {
			return fmt.Errorf("spec is %+v", d.Spec)
		}
		return nil
	})
}

func TestATargetWithoutAClusterIsNamedBesideOneThatHasOne(t *testing.T) {
	f := newFixture(t)
	one, two := f.place("one", nil), f.place("two", nil)
	b := f.bundle("app", configMap+"\ntargets: [{clusterName: one}, {name: second, clusterName: Two}]\n")
	f.untilBundle("app", "Processed", corev1.ConditionTrue,
		"no Cluster for targets[1] (second); near: Cluster "+f.workspace+"/two has that name, and targets[1] names Two")
	one.deployment("app", there)
	f.change(b, func() { b.Spec.Targets[1].ClusterName = "two" })
	two.deployment("app", there)
	if c := kube.FindCondition(f.untilBundle("app", "Processed", corev1.ConditionTrue).Status.Conditions, "Processed"); c.Message != "" {
		t.Errorf("all targets have Clusters, and it says %s: %s", c.Reason, c.Message)
	}
}

func TestAMappingLetsBundlesIntoOtherWorkspacesAndNamesMayCollide(t *testing.T) {
	f := newFixture(t)
	other := f
	other.workspace = f.namespace("clusters-")
	p := other.place("there", nil)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other.workspace}}
	f.change(namespace, func() {
		namespace.Labels = map[string]string{"open-to": f.workspace}
		namespace.Annotations = map[string]string{fleet.AnnotationBundlesFrom: f.workspace}
	})
	b := f.bundle("app", configMap+"\ntargets: [{clusterSelector: {}}]\n")
	f.untilBundle("app", "Ready", corev1.ConditionTrue, "match no Cluster")
	mapping := &fleet.BundleNamespaceMapping{
		ObjectMeta:        metav1.ObjectMeta{Namespace: f.workspace, Name: "m"},
		BundleSelector:    &metav1.LabelSelector{},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"open-to": f.workspace}},
	}
	f.check(f.Create(context.Background(), mapping))
	p.deployment("app", there)
	other.bundle("app", configMap+"\ntargets: [{clusterSelector: {}}]\n")
	other.untilBundle("app", "Processed", corev1.ConditionFalse, "the Bundle "+f.workspace+"/app of the same name is on this Cluster")
	f.check(f.Delete(context.Background(), b))
	other.untilBundle("app", "Processed", corev1.ConditionTrue)
	p.deployment("app", func(d fleet.BundleDeployment) error {
		if d.Labels[fleet.LabelBundleNamespace] != other.workspace {
			return fmt.Errorf("it is of %s", d.Labels[fleet.LabelBundleNamespace])
		}
		return nil
	})
}

func TestManyAndLargeResourcesArrive(t *testing.T) {
	f := newFixture(t)
	p := f.place("a", nil)
	many := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "many"}}
	many.Spec.Targets = []fleet.BundleTarget{{ClusterName: "a"}}
	for i := range 5000 {
		many.Spec.Resources = append(many.Spec.Resources, fleet.BundleResource{
			Name: fmt.Sprintf("cm-%d.yaml", i), Content: fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cm-%d\n", i),
		})
	}
	f.check(f.Create(context.Background(), many))
	d := p.deployment("many", there)
	var content fleet.Content
	f.check(f.get(&content, "", delivery.ContentName(d.Spec.DeploymentID)))
	if resources, err := delivery.Unpack(&content); err != nil || len(resources) != 5000 {
		t.Errorf("%d resources arrived (%v)", len(resources), err)
	}
	large := f.bundle("large", "targets: [{clusterName: a}]")
	f.change(large, func() {
		large.Spec.Resources = []fleet.BundleResource{{Name: "large.yaml", Content: "text: " + strings.Repeat("0123456789abcde\\n", 85_000)}}
	})
	f.untilBundle("large", "Processed", corev1.ConditionTrue)
	p.deployment("large", there)
}
