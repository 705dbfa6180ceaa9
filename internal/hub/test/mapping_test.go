package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/testkube"
)

// tenant returns a client with all rights on the kinds of the fleet, and on Secrets, in the
// workspace and none elsewhere.
func (f fixture) tenant() client.Client {
	f.t.Helper()
	tenant, _ := f.userWith(f.workspace, "tenant",
		rbacv1.PolicyRule{APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"*"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}})
	f.eventually("the tenant has his rights", func() error {
		return tenant.List(context.Background(), &fleet.ClusterList{}, client.InNamespace(f.workspace))
	})
	return tenant
}

// label gives a namespace a label by which mappings select it.
func (f fixture) label(namespace, key, value string) {
	f.t.Helper()
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	f.change(o, func() { metav1.SetMetaDataLabel(&o.ObjectMeta, key, value) })
}

// consent does what a command of the form `kubectl annotate --overwrite namespace NAME...
// KEY=VALUE` in a message says.
func (f fixture) consent(message string) {
	f.t.Helper()
	_, command, found := strings.Cut(message, "kubectl annotate --overwrite namespace ")
	if !found {
		f.t.Fatalf("no command in %q", message)
	}
	command, _, _ = strings.Cut(command, ";")
	words := strings.Fields(command)
	key, value, _ := strings.Cut(words[len(words)-1], "=")
	for _, name := range words[:len(words)-1] {
		o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		f.change(o, func() { metav1.SetMetaDataAnnotation(&o.ObjectMeta, key, value) })
	}
}

// untilMapping waits until the condition Ready of a mapping has a reason and texts, and
// returns its message.
func (f fixture) untilMapping(name, reason string, texts ...string) string {
	f.t.Helper()
	message := ""
	f.eventually("BundleNamespaceMapping "+name+" is "+reason, func() error {
		var mapping fleet.BundleNamespaceMapping
		if err := f.get(&mapping, f.workspace, name); err != nil {
			return err
		}
		ready := kube.FindCondition(mapping.Status.Conditions, fleet.ConditionReady)
		if ready == nil || ready.Reason != reason {
			return fmt.Errorf("its condition is %+v", ready)
		}
		for _, text := range texts {
			if !strings.Contains(ready.Message, text) {
				return fmt.Errorf("%q is missing in %q", text, ready.Message)
			}
		}
		message = ready.Message
		return nil
	})
	return message
}

// observedOn changes a Bundle and waits until the hub has planned it on so many Clusters, so that
// what it did not write it does not mean to.
func (f fixture) observedOn(b *fleet.Bundle, clusters int) {
	f.t.Helper()
	f.change(b, func() { b.Spec.DefaultNamespace += "x" })
	f.eventually(fmt.Sprintf("Bundle %s is for %d Clusters", b.Name, clusters), func() error {
		var is fleet.Bundle
		if err := f.get(&is, f.workspace, b.Name); err != nil {
			return err
		}
		if is.Status.ObservedGeneration < b.Generation || is.Status.Summary.DesiredReady != clusters {
			return fmt.Errorf("status is %+v", is.Status)
		}
		return nil
	})
}

// missing fails if a place has a deployment of a Bundle.
func (p place) missing(bundle string) {
	p.t.Helper()
	if err := p.get(&fleet.BundleDeployment{}, p.namespace, bundle); !apierrors.IsNotFound(err) {
		p.t.Errorf("%s was delivered to %s/%s: %v", bundle, p.workspace, p.name, err)
	}
}

// TestAMappingOpensNoNamespaceThatDoesNotConsent changes the settings of the hub, so that no other
// test may run beside it.
func TestAMappingOpensNoNamespaceThatDoesNotConsent(t *testing.T) {
	f := newAlone(t, "")
	ctx, tenant := context.Background(), f.tenant()
	victim, local := f, f
	victim.workspace, local.workspace = f.namespace("clusters-"), "fleet-local"
	if err := f.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: local.workspace}}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	for _, name := range []string{victim.workspace, local.workspace} {
		f.label(name, "of-"+f.workspace, "true")
	}
	own, there1, there2 := f.place("own", nil), victim.place("victim", nil), local.place("hub-of-"+f.workspace, nil)
	t.Cleanup(func() {
		// other tests may use fleet-local
		_ = f.Delete(ctx, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: local.workspace, Name: there2.name}})
		o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: local.workspace}}
		f.change(o, func() { delete(o.Annotations, fleet.AnnotationBundlesFrom) })
	})

	b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "app-of-" + f.workspace}}
	b.Spec.Resources = []fleet.BundleResource{{Name: "cm.yaml", Content: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n"}}
	b.Spec.Targets = []fleet.BundleTarget{{ClusterSelector: &metav1.LabelSelector{}}}
	f.check(tenant.Create(ctx, b))
	f.check(tenant.Create(ctx, &fleet.BundleNamespaceMapping{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "m"}, BundleSelector: &metav1.LabelSelector{},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"of-" + f.workspace: "true"}},
	}))
	said := f.untilMapping("m", "ConsentMissing", victim.workspace, local.workspace, "bundleNamespaceMappingsToLocal=true")
	f.observedOn(b, 1)
	own.deployment(b.Name, there)
	there1.missing(b.Name)
	there2.missing(b.Name)
	forbidden := tenant.Patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: victim.workspace}},
		client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, fleet.AnnotationBundlesFrom, f.workspace)))
	if !apierrors.IsForbidden(forbidden) {
		t.Errorf("the tenant consents for the other side: %v", forbidden)
	}

	f.consent(said)
	there1.deployment(b.Name, there)
	f.untilMapping("m", "ConsentMissing", "fleet-local is the workspace of the hub itself")
	f.observedOn(b, 2)
	there2.missing(b.Name)
	f.configure(`{"bundleNamespaceMappingsToLocal":true}`)
	there2.deployment(b.Name, there)
	f.untilMapping("m", "Open")

	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: victim.workspace}}
	f.change(o, func() { o.Annotations[fleet.AnnotationBundlesFrom] = "others, " + f.workspace + "x" })
	f.untilMapping("m", "ConsentMissing", victim.workspace)
	f.untilBundle(b.Name, "Processed", corev1.ConditionFalse,
		victim.workspace+", which does not consent: the deployments there stay as they are")
	f.configure(`{"bundleNamespaceMappings":"open"}`)
	f.untilMapping("m", "Open")
	f.observedOn(b, 3)
	f.configure(testkube.HubSettings)
	f.observedOn(b, 1)
	there1.deployment(b.Name, there) // a withdrawal takes nothing away
	there2.deployment(b.Name, there)
	f.check(tenant.Delete(ctx, &fleet.BundleNamespaceMapping{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "m"}}))
	there1.without(b.Name)
	there2.without(b.Name)
	own.deployment(b.Name, there)
}

// TestMissingSettingsTakeNothingAway has a mapping that only the settings open, and a hub that
// starts without them.
func TestMissingSettingsTakeNothingAway(t *testing.T) {
	f := newAlone(t, `{"importLoopback":true,"bundleNamespaceMappings":"open"}`)
	other := f
	other.workspace = f.namespace("clusters-")
	f.label(other.workspace, "of-"+f.workspace, "true")
	elsewhere := other.place("elsewhere", nil)
	f.check(f.Create(context.Background(), &fleet.BundleNamespaceMapping{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "m"}, BundleSelector: &metav1.LabelSelector{},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"of-" + f.workspace: "true"}},
	}))
	b := f.bundle("app", configMap+"\ntargets: [{clusterSelector: {}}]\n")
	elsewhere.deployment("app", there)
	before := elsewhere.deployment("app", there).UID
	f.check(f.Delete(context.Background(), f.configured()))
	f.observedOn(b, 1) // the settings before are in force
	f.restartHub()
	f.untilBundle("app", "Processed", corev1.ConditionFalse, "does not consent: the deployments there stay as they are")
	f.observedOn(b, 0)
	if after := elsewhere.deployment("app", there).UID; after != before {
		t.Errorf("the deployment %s is another one now: %s", before, after)
	}
	f.configure(testkube.HubSettings)
}

func TestAnInvalidMappingIsNamedAndStopsNothing(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	own := f.place("own", nil)
	other := f
	other.workspace = f.namespace("clusters-")
	f.label(other.workspace, "of-"+f.workspace, "true")
	f.consent("kubectl annotate --overwrite namespace " + other.workspace + " " + fleet.AnnotationBundlesFrom + "=" + f.workspace)
	elsewhere := other.place("elsewhere", nil)
	invalid := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Resembles"}}}
	f.check(f.Create(ctx, &fleet.BundleNamespaceMapping{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "bad"}, BundleSelector: &metav1.LabelSelector{}, NamespaceSelector: invalid,
	}))
	good := &fleet.BundleNamespaceMapping{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "good"}, BundleSelector: &metav1.LabelSelector{},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"of-" + f.workspace: "true"}},
	}
	f.check(f.Create(ctx, good))
	b := f.bundle("app", configMap+"\ntargets: [{clusterSelector: {}}]\n")
	own.deployment("app", there)
	elsewhere.deployment("app", there)
	f.untilMapping("bad", "Invalid", `namespaceSelector: "Resembles" is not a valid label selector operator`)
	f.untilBundle("app", "Processed", corev1.ConditionFalse, "BundleNamespaceMapping bad is invalid and opens nothing", "Resembles")

	f.change(good, func() { good.BundleSelector = invalid })
	f.untilMapping("good", "Invalid", "bundleSelector: ")
	f.observedOn(b, 1)
	if err := f.get(&fleet.BundleDeployment{}, elsewhere.namespace, "app"); err != nil {
		t.Errorf("a mapping that came to be invalid deleted a deployment: %v", err)
	}
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other.workspace}}
	f.change(o, func() { delete(o.Annotations, fleet.AnnotationBundlesFrom) })
	f.observedOn(b, 1)
	elsewhere.deployment("app", there)
	for _, mapping := range []string{"good", "bad"} {
		f.check(f.Delete(ctx, &fleet.BundleNamespaceMapping{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: mapping}}))
	}
	elsewhere.without("app")
	own.deployment("app", there)
}
