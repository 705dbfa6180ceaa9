package hub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// secret makes a Secret in the workspace.
func (f fixture) secret(name, value string) *corev1.Secret {
	f.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name}, StringData: map[string]string{"value": value}}
	f.check(f.Create(context.Background(), s))
	return s
}

// untilCopied waits until the member namespace has a copy of a Secret with a value, for the
// deployments of Bundles, and their deployments name it.
func (p place) untilCopied(name, value string, bundles ...string) {
	p.t.Helper()
	owners := map[string]bool{}
	for _, bundle := range bundles {
		owners[string(p.deployment(bundle, func(d fleet.BundleDeployment) error {
			named := len(d.Spec.Options.DownstreamResources) > 0 || d.Spec.Options.Helm.SecretName == name
			if err := there(d); err != nil || !named || d.Spec.DownstreamResourcesGeneration == 0 {
				return fmt.Errorf("%v, %+v", err, d.Spec)
			}
			return nil
		}).UID)] = true
	}
	p.eventually("the copy of "+name+" has "+value, func() error {
		var s corev1.Secret
		if err := p.get(&s, p.namespace, name); err != nil {
			return err
		}
		of := map[string]bool{}
		for _, owner := range s.OwnerReferences {
			of[string(owner.UID)] = true
		}
		if diff := cmp.Diff(owners, of); diff != "" || string(s.Data["value"]) != value {
			return fmt.Errorf("it has %q, and owners (-want +got):\n%s", s.Data["value"], diff)
		}
		return nil
	})
}

const namingPull = `
downstreamResources: [{kind: Secret, name: pull}]
` + configMap + everywhere

func TestDownstreamResourcesAreCopiedToMembers(t *testing.T) {
	f := newFixture(t)
	a, b := f.place("a", nil), f.place("b", nil)
	pull := f.secret("pull", "one")
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "settings"}, Data: map[string]string{"a": "b"}}
	f.check(f.Create(context.Background(), settings))
	app := f.bundle("app", namingPull)
	f.bundle("web", "downstreamResources: [{kind: Secret, name: pull}, {kind: ConfigMap, name: settings}]\n"+configMap+everywhere)
	for _, p := range []place{a, b} {
		p.untilCopied("pull", "one", "app", "web")
		var copied corev1.ConfigMap
		if err := p.get(&copied, p.namespace, "settings"); err != nil || copied.Data["a"] != "b" {
			t.Errorf("the ConfigMap is %+v: %v", copied, err)
		}
	}

	before := a.deployment("app", there).Spec.DeploymentID
	f.change(pull, func() { pull.StringData = map[string]string{"value": "two"} })
	a.untilCopied("pull", "two", "app", "web")
	a.deployment("app", func(d fleet.BundleDeployment) error {
		if d.Spec.DeploymentID == before {
			return errors.New("a changed Secret is no new deployment")
		}
		return there(d)
	})

	before = a.deployment("app", there).Spec.DeploymentID
	f.check(f.Delete(context.Background(), pull))
	f.untilBundle("app", fleet.ConditionProcessed, corev1.ConditionFalse,
		"Secret "+f.workspace+"/pull, which the Bundle names, does not exist: create it")
	a.untilCopied("pull", "two", "app", "web")
	if now := a.deployment("app", there).Spec.DeploymentID; now != before {
		t.Error("the deployment has changed for want of a Secret")
	}
	f.secret("pull", "two")
	f.untilBundle("app", fleet.ConditionProcessed, corev1.ConditionTrue)

	f.change(app, func() { app.Spec.DownstreamResources = nil })
	f.eventually("the copy is that of the other Bundle", func() error {
		var s corev1.Secret
		if err := f.get(&s, a.namespace, "pull"); err != nil || len(s.OwnerReferences) != 1 || s.OwnerReferences[0].Name != "web" {
			return fmt.Errorf("its owners are %+v: %v", s.OwnerReferences, err)
		}
		return nil
	})
	f.check(f.Delete(context.Background(), &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "web"}}))
	for _, o := range []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "pull"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}} {
		f.eventually("the copy of "+o.GetName()+" is gone", func() error { return gone(f.get(o, a.namespace, o.GetName())) })
	}
}

// TestACopyTakesThePlaceOfNothing: a Secret in the member namespace has the name of a copy.
func TestACopyTakesThePlaceOfNothing(t *testing.T) {
	f := newFixture(t)
	p := f.place("a", nil)
	f.secret("pull", "tenant's")
	labels := map[string]string{fleet.LabelManaged: "true"}
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "pull", Labels: labels},
		StringData: map[string]string{"value": "hub's"}}
	f.check(f.Create(context.Background(), theirs))
	f.bundle("app", namingPull)
	f.untilBundle("app", fleet.ConditionReady, corev1.ConditionFalse, "pull exists in the member namespace and is no copy")
	var is corev1.Secret
	f.check(f.get(&is, p.namespace, "pull"))
	if is.UID != theirs.UID || string(is.Data["value"]) != "hub's" {
		t.Errorf("it is %+v", is)
	}
	f.check(f.Delete(context.Background(), theirs))
	p.untilCopied("pull", "tenant's", "app")

	account := &corev1.Secret{Type: "muster/lasting-token", ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "credential"}}
	f.check(f.Create(context.Background(), account))
	f.bundle("reserved", strings.ReplaceAll(namingPull, "pull", "credential"))
	f.untilBundle("reserved", fleet.ConditionProcessed, corev1.ConditionFalse, "has the type muster/lasting-token")
	f.bundle("other", strings.ReplaceAll(namingPull, "kind: Secret", "kind: Pod"))
	f.untilBundle("other", fleet.ConditionProcessed, corev1.ConditionFalse, `names a "Pod": it copies Secrets and ConfigMaps only`)
}

// TestWhoNamesASecretMustBeAllowedToReadIt plays an author of Bundles without a right to Secrets,
// and a member.
func TestWhoNamesASecretMustBeAllowedToReadIt(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	legacy, other := f.legacyJoin(values, "edge"), f.place("other", nil)
	f.secret("pull", "one")
	author, role := f.userWith(f.workspace, "author", rbacv1.PolicyRule{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"bundles"}, Verbs: []string{"*"},
	})
	bundle := func(name string) *fleet.Bundle {
		return &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name}, Spec: fleet.BundleSpec{
			Targets: []fleet.BundleTarget{{ClusterSelector: &metav1.LabelSelector{}}},
		}}
	}
	plain := bundle("plain")
	f.eventually("the author may write Bundles", func() error { return author.Create(context.Background(), plain) })
	named := []fleet.DownstreamResource{{Kind: "Secret", Name: "pull"}}
	nulls := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"helm": nil, "downstreamResources": nil,
		"targets": []any{map[string]any{"clusterSelector": map[string]any{}, "helm": nil, "downstreamResources": nil}}}}}
	nulls.SetGroupVersionKind(fleet.GroupVersion.WithKind("Bundle"))
	nulls.SetNamespace(f.workspace)
	nulls.SetName("nulls")
	f.check(author.Create(context.Background(), nulls)) // as clients of Rancher Fleet do
	attempts := map[string]func(client.Client) error{
		"creates a Bundle": func(by client.Client) error {
			b := bundle("app")
			b.Spec.DownstreamResources = named
			return by.Create(context.Background(), b)
		},
		"creates one with a target": func(by client.Client) error {
			b := bundle("targeted")
			b.Spec.Targets[0].DownstreamResources = named
			return by.Create(context.Background(), b)
		},
		"names a login for a chart": func(by client.Client) error {
			b := bundle("charted")
			b.Spec.Helm = &fleet.HelmOptions{Repo: "https://charts.example.com", Chart: "web", Version: "1.0.0", SecretName: "pull"}
			return by.Create(context.Background(), b)
		},
		"changes a Bundle": func(by client.Client) error {
			return merge(by, plain.DeepCopy(), `{"spec":{"downstreamResources":[{"kind":"Secret","name":"pull"}]}}`)
		},
	}
	for what, attempt := range attempts {
		err := attempt(author)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "you may not get Secrets in this namespace") {
			t.Errorf("an author without rights %s: %v", what, err)
		}
	}
	f.change(role, func() {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
	})
	for what, attempt := range attempts {
		f.eventually("an author who may read Secrets "+what, func() error { return client.IgnoreAlreadyExists(attempt(author)) })
	}
	f.eventually("the member reads its copy", func() error {
		own := client.ObjectKey{Namespace: legacy.answer["deploymentNamespace"], Name: "pull"}
		return legacy.Get(context.Background(), own, &corev1.Secret{})
	})
	other.deployment("charted", there)
	other.untilCopied("pull", "one", "app", "targeted", "plain", "charted")
	err := legacy.Get(context.Background(), client.ObjectKey{Namespace: other.namespace, Name: "pull"}, &corev1.Secret{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("a member reads the copy of another: %v", err)
	}
	err = legacy.Get(context.Background(), client.ObjectKey{Namespace: f.workspace, Name: "pull"}, &corev1.Secret{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("a member reads the Secret in the workspace: %v", err)
	}
}
