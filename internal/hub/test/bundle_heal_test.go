package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/fleet/agentroles"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// patch merges something into an object by hand.
func (f fixture) patch(o client.Object, patch string) {
	f.t.Helper()
	f.check(f.Patch(context.Background(), o, client.RawPatch(types.MergePatchType, []byte(patch))))
}

func TestWhatAnAgentIsSentCannotBeChangedByHand(t *testing.T) {
	f := newAlone(t, "")
	p := f.place("a", nil)
	f.bundle("app", configMap+`
defaultNamespace: shop
namespaceLabels: {team: web}
diff: {comparePatches: [{apiVersion: v1, kind: ConfigMap, name: a, operations: [{op: remove, path: /data}]}]}
correctDrift: {enabled: true}
helm: {values: {a: 1}, timeoutSeconds: 60, maxHistory: 3}
rolloutStrategy: {maxUnavailable: 0}
targets: [{clusterSelector: {}}]
`)
	d := p.deployment("app", there)
	for patch, as := range map[string]func(fleet.BundleDeploymentSpec) bool{
		`{"spec":{"options":{"keepResources":true,"helm":{"maxHistory":9}}}}`: func(s fleet.BundleDeploymentSpec) bool {
			return !s.Options.KeepResources && s.Options.Helm.MaxHistory == 3
		},
		`{"spec":{"correctDrift":null}}`: func(s fleet.BundleDeploymentSpec) bool { return s.CorrectDrift != nil && s.CorrectDrift.Enabled },
		`{"spec":{"ociContents":true}}`:  func(s fleet.BundleDeploymentSpec) bool { return !s.OCIContents },
		`{"spec":{"valuesHash":"none"}}`: func(s fleet.BundleDeploymentSpec) bool { return s.ValuesHash == d.Spec.ValuesHash },
	} {
		edited := d.DeepCopy()
		f.patch(edited, patch)
		p.deployment("app", func(now fleet.BundleDeployment) error {
			if now.Generation <= edited.Generation || !as(now.Spec) || now.Spec.DeploymentID != d.Spec.DeploymentID {
				return fmt.Errorf("after %s it is %+v", patch, now.Spec)
			}
			return nil
		})
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "app"}}
	f.patch(secret, `{"stringData":{"values":"{\"a\":2}"}}`)
	f.eventually("the values are as before", func() error {
		if err := f.get(secret, p.namespace, "app"); err != nil {
			return err
		}
		if delivery.ValuesHash(secret.Data) != d.Spec.ValuesHash {
			return fmt.Errorf("they are %s", secret.Data["values"])
		}
		return nil
	})
	// Nothing of this is taken for an edit of the hub's own writes.
	quiet := p.deployment("app", settled)
	f.restartHub()
	f.place("b", nil).deployment("app", there)
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "WaitApplied(2)")
	if now := p.deployment("app", there); now.ResourceVersion != quiet.ResourceVersion {
		t.Errorf("it was written again: %s, before %s", now.ResourceVersion, quiet.ResourceVersion)
	}
}

func TestValuesThatWereEditedAreSetRightAfterAFailure(t *testing.T) {
	f := newFixture(t)
	p := f.place("a", nil)
	f.bundle("app", configMap+`
helm: {values: {a: 1}}
targets: [{clusterSelector: {}}]
`)
	p.deployment("app", settled)
	secret := &corev1.Secret{}
	f.check(f.get(secret, p.namespace, "app"))
	permit := f.forbid(admissionv1.Update, "", "secrets", "has(object.metadata.annotations) && 'edited' in object.metadata.annotations",
		func() error { return f.Update(context.Background(), secret.DeepCopy(), client.DryRunAll) }, p.namespace)
	f.patch(secret, `{"metadata":{"annotations":{"edited":"by hand"}},"stringData":{"values":"{\"a\":2}"}}`)
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "forbidden by the test")
	permit()
	p.valuesOf("app", map[string]any{"a": 1.0})
}

func TestValuesThatWereEditedWhileNoHubRanAreSetRightWhenAnAgentRefusesThem(t *testing.T) {
	f := newAlone(t, "")
	p := f.place("a", nil)
	f.bundle("app", configMap+`
helm: {values: {a: 1}}
targets: [{clusterSelector: {}}]
`)
	d := p.deployment("app", settled)
	f.hub.Kill()
	f.patch(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "app"}}, `{"stringData":{"values":"{\"a\":2}"}}`)
	f.hub.Start()
	f.place("b", nil).deployment("app", there)
	reportDeployment(t, f.Client, d, func(status map[string]any) {
		status["ready"] = false
		status["conditions"] = []any{map[string]any{
			"type": "Deployed", "status": "False", "reason": "ValuesInvalid", "message": "waiting for the hub to write them",
		}}
	})
	p.valuesOf("app", map[string]any{"a": 1.0})
}

// TestValuesOutliveADeploymentThatSomebodyDeletes shows why the Secret with the values has no
// owner: Kubernetes would delete the Secret, and the agent would wait for another.
func TestValuesOutliveADeploymentThatSomebodyDeletes(t *testing.T) {
	f := newFixture(t)
	p := f.place("a", nil)
	bundle := f.bundle("app", configMap+`
helm: {values: {a: 1}}
targets: [{clusterSelector: {}}]
`)
	before := p.deployment("app", settled)
	var secret, after corev1.Secret
	f.check(f.get(&secret, p.namespace, "app"))
	f.check(f.Delete(context.Background(), before.DeepCopy()))
	f.eventually("the deployment is written again", func() error {
		var now fleet.BundleDeployment
		if err := f.get(&now, p.namespace, "app"); err != nil || now.UID != before.UID && now.Spec.ValuesHash == before.Spec.ValuesHash {
			return err
		}
		return errors.New("it is the former one")
	})
	if f.check(f.get(&after, p.namespace, "app")); after.UID != secret.UID || len(after.OwnerReferences) > 0 {
		t.Errorf("the values were in Secret %s, and are in %s of %v", secret.UID, after.UID, after.OwnerReferences)
	}
	p.valuesOf("app", map[string]any{"a": 1.0})
	f.check(f.Delete(context.Background(), bundle))
	f.eventually("both go with the Bundle", func() error {
		return errors.Join(gone(f.get(&after, p.namespace, "app")), gone(f.get(&fleet.BundleDeployment{}, p.namespace, "app")))
	})
}

func TestAMemberMayReadContentsFromItsFirstBundleOn(t *testing.T) {
	f := newAlone(t, "")
	_, values := f.token("new-token", "")
	f.place("c1", nil)
	agent := f.legacyJoin(values, "id-of-c1")
	f.eventually("the agent beats", func() error { return agent.beat(time.Now()) })
	namespace := agent.answer["deploymentNamespace"]
	if err := gone(f.readsContents(namespace)); err != nil {
		t.Errorf("it could before: %v", err)
	}
	f.bundle("app", configMap+everywhere)
	p := place{f, "c1", namespace}
	d := p.deployment("app", there)
	content := types.NamespacedName{Name: delivery.ContentName(d.Spec.DeploymentID)}
	f.check(f.readsContents(namespace)) // the right comes before the deployment
	f.eventually("it reads its Content", func() error { return agent.Client.Get(context.Background(), content, &fleet.Content{}) })
	f.refused("it lists what there is of others", agent.Client.List(context.Background(), &fleet.ContentList{}))
	binding, err := f.contentBinding(namespace)
	f.check(err)
	f.check(f.Delete(context.Background(), binding))
	f.eventually("the right is given back", func() error { return f.readsContents(namespace) })
	f.change(binding, func() { binding.Subjects = []rbacv1.Subject{kube.AccountSubject("kube-system", "default")} })
	f.eventually("so it is after an edit", func() error { return f.readsContents(namespace) })
	f.check(f.get(binding, "", binding.Name))
	if slices.Contains(binding.Subjects, kube.AccountSubject("kube-system", "default")) {
		t.Error("a stranger may read Contents")
	}
	f.hub.Kill()
	f.check(f.Delete(context.Background(), binding))
	f.hub.Start()
	f.eventually("so it is after its deletion while no hub ran", func() error { return f.readsContents(namespace) })
	f.check(f.Delete(context.Background(), f.clusterRecord("c1")))
	f.eventually("its namespace is gone", func() error { return gone(f.get(&corev1.Namespace{}, "", namespace)) })
	f.check(f.Create(context.Background(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{fleet.LabelManaged: "true"}},
	}))
	f.eventually("nothing is left of a member that has left, also if somebody makes its namespace anew", func() error {
		return gone(f.readsContents(namespace))
	})
}

// readsContents is nil if the account of a member namespace may read Contents, and else
// that it is not found.
func (f fixture) readsContents(namespace string) error {
	_, err := f.contentBinding(namespace)
	return err
}

// contentBinding returns the ClusterRoleBinding that lets the account of a member namespace read
// Contents.
func (f fixture) contentBinding(namespace string) (*rbacv1.ClusterRoleBinding, error) {
	var bindings rbacv1.ClusterRoleBindingList
	if err := f.List(context.Background(), &bindings); err != nil {
		return nil, err
	}
	for i, binding := range bindings.Items {
		if binding.RoleRef.Name == agentroles.ContentRole &&
			slices.Contains(binding.Subjects, kube.AccountSubject(namespace, naming.MemberServiceAccount)) {
			return &bindings.Items[i], nil
		}
	}
	return nil, apierrors.NewNotFound(rbacv1.Resource("subjects"), namespace)
}
