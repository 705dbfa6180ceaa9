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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// policy makes a Policy of YAML text.
func (f fixture) policy(name, text string) *unstructured.Unstructured {
	f.t.Helper()
	p := &unstructured.Unstructured{}
	f.check(yaml.Unmarshal([]byte(text), &p.Object))
	p.SetGroupVersionKind(fleet.GroupVersion.WithKind("Policy"))
	p.SetNamespace(f.workspace)
	p.SetName(name)
	f.check(f.Create(context.Background(), p))
	f.eventually("the hub knows Policy "+name, func() error {
		var is fleet.Policy
		if err := f.get(&is, f.workspace, name); err != nil {
			return err
		}
		if kube.FindCondition(is.Status.Conditions, fleet.ConditionReady) == nil {
			return fmt.Errorf("its status is %+v", is.Status)
		}
		return nil
	})
	return p
}

// violates waits until a Bundle breaks a Policy.
func (f fixture) violates(name string, texts ...string) {
	f.t.Helper()
	for _, condition := range []string{fleet.ConditionProcessed, fleet.ConditionReady} {
		b := f.untilBundle(name, condition, corev1.ConditionFalse, texts...)
		if reason := kube.ReasonOf(b.Status.Conditions, condition); reason != reasons.PolicyViolation {
			f.t.Errorf("the reason of %s is %s", condition, reason)
		}
	}
}

// options waits until a deployment has options, and returns it.
func (p place) options(bundle string, check func(fleet.BundleDeploymentOptions) bool) fleet.BundleDeployment {
	p.t.Helper()
	return p.deployment(bundle, func(d fleet.BundleDeployment) error {
		if err := there(d); err != nil || !check(d.Spec.Options) {
			return fmt.Errorf("its options are %+v: %v", d.Spec.Options, err)
		}
		return nil
	})
}

func TestABundleThatBreaksAPolicyDeliversNothingNew(t *testing.T) {
	f := newFixture(t)
	p := f.place("a", nil)
	b := f.bundle("app", configMap+everywhere)
	before := p.deployment("app", there)
	ready(t, f, before)
	f.untilBundle("app", fleet.ConditionReady, corev1.ConditionTrue)
	elsewhere := f.neighbour()
	other := elsewhere.place("b", nil)
	elsewhere.bundle("app", configMap+everywhere)
	other.deployment("app", there)

	policy := f.policy("team", "spec: {requireServiceAccount: true, allowedServiceAccounts: [web]}")
	f.violates("app", "spec.serviceAccount is not set", "Policy team", "set it to one of web")
	f.grow(b)
	f.bundle("new", configMap+"targets: [{clusterSelector: {}, serviceAccount: admin}]\n")
	f.violates("new", `spec.targets[0].serviceAccount is "admin"`, "Policy team")
	f.untilBundle("new", fleet.ConditionProcessed, corev1.ConditionFalse, "deployed objects stay as they are")
	f.violates("app", "spec.serviceAccount is not set")
	if is := p.deployment("app", there); is.Spec.DeploymentID != before.Spec.DeploymentID || is.UID != before.UID {
		t.Errorf("the running deployment was changed: %+v", is.Spec)
	}
	if err := p.get(&fleet.BundleDeployment{}, p.namespace, "new"); !apierrors.IsNotFound(err) {
		t.Errorf("the new Bundle has a deployment: %v", err)
	}
	f.eventually("an Event names the Policy", func() error { return f.warned("new", reasons.PolicyViolation, "Policy team") })

	// The author heals one Bundle, the Policy the other.
	f.change(b, func() { b.Spec.ServiceAccount = "web" })
	healed := p.options("app", func(o fleet.BundleDeploymentOptions) bool { return o.ServiceAccount == "web" })
	if created := healed.Spec.Options.CreateNamespace; created == nil || *created ||
		healed.Spec.Options.NamespaceCreationForbiddenBy != "team" {
		t.Errorf("it may create its namespace: %+v", healed.Spec.Options)
	}
	f.policy("wider", "{allowedServiceAccounts: [admin], allowNamespaceCreation: true}")
	p.options("new", func(o fleet.BundleDeploymentOptions) bool {
		return o.ServiceAccount == "admin" && o.CreateNamespace == nil
	})
	p.options("app", func(o fleet.BundleDeploymentOptions) bool {
		return o.CreateNamespace == nil && o.NamespaceCreationForbiddenBy == ""
	})
	f.check(f.Delete(context.Background(), policy))
	f.violates("app", `spec.serviceAccount is "web"`, "Policy wider") // its list alone is left
	elsewhere.untilBundle("app", fleet.ConditionProcessed, corev1.ConditionTrue)
}

// warned returns an error unless a Bundle has a Warning with a reason and a text.
func (f fixture) warned(bundle, reason, text string) error {
	var events corev1.EventList
	f.check(f.List(context.Background(), &events, client.InNamespace(f.workspace)))
	for _, event := range events.Items {
		if event.InvolvedObject.Kind == "Bundle" && event.InvolvedObject.Name == bundle && event.Reason == reason &&
			event.Type == corev1.EventTypeWarning && strings.Contains(event.Message, text) {
			return nil
		}
	}
	return fmt.Errorf("there are %d Events, none of them that one", len(events.Items))
}

func TestAPolicyGivesDefaultsAndSelectors(t *testing.T) {
	f := newFixture(t)
	p := f.place("a", nil)
	f.policy("b", "spec: {requireServiceAccount: true, defaultServiceAccount: second}")
	f.policy("a", "spec: {defaultServiceAccount: first, allowedTargetNamespaceSelector: {matchLabels: {team: a}}, "+
		"allowedTargetNamespaces: [shop]}")
	f.bundle("app", configMap+"namespace: shop\ntargets: [{clusterSelector: {}, createNamespace: true, namespaceCreationForbiddenBy: me, "+
		"allowedTargetNamespaceSelector: {matchLabels: {team: b}}}]")
	d := p.options("app", func(o fleet.BundleDeploymentOptions) bool { return o.ServiceAccount == "first" })
	o := d.Spec.Options
	if o.CreateNamespace == nil || *o.CreateNamespace || o.NamespaceCreationForbiddenBy != "b" {
		t.Errorf("it may create its namespace: %+v", o)
	}
	if s := metav1.FormatLabelSelector(o.AllowedTargetNamespaceSelector); s != "team in (a),team in (b)" && s != "team in (b),team in (a)" {
		t.Errorf("it may go where %s", s)
	}
	f.bundle("else", configMap+"namespace: kube-system\n"+everywhere)
	f.violates("else", `spec.namespace is "kube-system"`, "Policy a", "one of shop")
	f.bundle("named", configMap+"namespace: shop\ndownstreamResources: [{kind: Secret, name: db}]\n"+everywhere)
	f.policy("c", "spec: {allowedDownstreamResources: [{kind: ConfigMap}]}")
	f.violates("named", `spec.downstreamResources names Secret "db"`, "Policy c")
}

func TestAPolicySaysWhatOfItHasNoEffect(t *testing.T) {
	f := newFixture(t)
	says := func(p *unstructured.Unstructured, condition string, status corev1.ConditionStatus, text string) {
		t.Helper()
		f.eventually(p.GetName()+" says "+text, func() error {
			var is fleet.Policy
			if err := f.get(&is, f.workspace, p.GetName()); err != nil {
				return err
			}
			if c := kube.FindCondition(is.Status.Conditions, condition); c == nil || c.Status != status || !strings.Contains(c.Message, text) {
				return fmt.Errorf("its conditions are %+v", is.Status.Conditions)
			}
			return nil
		})
	}
	works := f.policy("works", "spec: {requireServiceAccount: true}")
	says(works, fleet.ConditionSupported, corev1.ConditionTrue, "")
	says(works, fleet.ConditionReady, corev1.ConditionTrue, "")
	later := f.policy("later", `spec: {gitRepo: {allowedRepoPatterns: ["("]}, helmOp: {defaultServiceAccount: a}}`)
	says(later, fleet.ConditionSupported, corev1.ConditionTrue, "")
	says(later, fleet.ConditionReady, corev1.ConditionFalse, "gitRepo.allowedRepoPatterns[0]: ")
}

// TestNobodyButAnAdministratorWritesPolicies plays the author of Bundles, the holder of a
// registration token and a member.
func TestNobodyButAnAdministratorWritesPolicies(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	legacy := f.legacyJoin(values, "edge")
	tenant, _ := f.userWith(f.workspace, "tenant", rbacv1.PolicyRule{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"bundles", "clusters", "clustergroups"}, Verbs: []string{"*"},
	})
	policy := f.policy("team", "spec: {requireServiceAccount: true}")
	for who, user := range map[string]client.Client{"a tenant": tenant, "a holder": f.as(values["token"]), "a member": legacy.Client} {
		wider := &fleet.Policy{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "wider"}}
		if err := user.Create(context.Background(), wider); !apierrors.IsForbidden(err) {
			t.Errorf("%s creates a Policy: %v", who, err)
		}
		if err := merge(user, policy.DeepCopy(), `{"spec":null}`); !apierrors.IsForbidden(err) {
			t.Errorf("%s changes a Policy: %v", who, err)
		}
		if err := user.Delete(context.Background(), policy.DeepCopy()); !apierrors.IsForbidden(err) {
			t.Errorf("%s deletes a Policy: %v", who, err)
		}
	}
	// The label of an agent's Bundle lifts no Policy.
	labels := map[string]string{fleet.LabelAgent: "true"}
	b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "forged", Labels: labels}}
	f.check(yaml.Unmarshal([]byte(everywhere), &b.Spec))
	f.eventually("the tenant may write Bundles", func() error { return tenant.Create(context.Background(), b) })
	f.untilBundle("forged", fleet.ConditionProcessed, corev1.ConditionFalse, "take it off")
}

func TestPoliciesThatWentWithTheirKindAreUnknown(t *testing.T) {
	f := newUndefining(t)
	p := f.place("a", nil)
	f.policy("team", "spec: {requireServiceAccount: true}")
	f.bundle("app", configMap+everywhere)
	f.violates("app", "Policy team")
	const name = "policies.fleet.cattle.io"
	definition := f.undefine(name)
	f.eventually("the definition is gone", func() error { return gone(f.get(definition, "", name)) })
	f.violates("app", "is gone or being deleted, so the Policies of the namespace are unknown")
	f.bundle("later", configMap+everywhere)
	f.violates("later", "install the fleet-crd chart")
	for _, bundle := range []string{"app", "later"} {
		if err := p.get(&fleet.BundleDeployment{}, p.namespace, bundle); !apierrors.IsNotFound(err) {
			t.Errorf("%s is delivered: %v", bundle, err)
		}
	}
	f.cluster.InstallCRDs(t)
	p.deployment("app", there)
	p.deployment("later", there)
}

// TestPoliciesThatGoWhileNoHubRunsAreUnknown has a Policy elsewhere keep the definition, which is
// being deleted and serves the rest.
func TestPoliciesThatGoWhileNoHubRunsAreUnknown(t *testing.T) {
	f := newUndefining(t)
	p := f.place("a", nil)
	f.policy("team", "spec: {requireServiceAccount: true}")
	held := f.neighbour().policy("held", "metadata: {finalizers: [example.com/held]}\nspec: {requireServiceAccount: true}")
	f.hub.Kill()
	const name = "policies.fleet.cattle.io"
	definition := f.undefine(name)
	f.eventually("the Policy is gone", func() error { return gone(f.get(&fleet.Policy{}, f.workspace, "team")) })
	f.hub.Start()
	f.bundle("app", configMap+everywhere)
	f.violates("app", "is gone or being deleted, so the Policies of the namespace are unknown")
	if err := p.get(&fleet.BundleDeployment{}, p.namespace, "app"); !apierrors.IsNotFound(err) {
		t.Errorf("it is delivered: %v", err)
	}
	f.check(f.Patch(context.Background(), held, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	f.eventually("the definition is gone", func() error { return gone(f.get(definition, "", name)) })
	f.cluster.InstallCRDs(t)
	p.deployment("app", there)
}
