package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/naming"
)

// author returns a client with all rights to the Bundles of the workspace and the right to read its
// Clusters. The client has no other rights.
func (f fixture) author() client.Client {
	f.t.Helper()
	author, _ := f.userWith(f.workspace, "author",
		rbacv1.PolicyRule{APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"bundles"}, Verbs: []string{"*"}},
		rbacv1.PolicyRule{APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusters"}, Verbs: []string{"get", "list"}})
	return author
}

// TestABundleLabelledAsTheAgentsIsNotDeployedAsThat plays an author of Bundles who wants the
// agents' rights, confined by no account. The author tries with a Bundle of their own and with the
// hub's.
func TestABundleLabelledAsTheAgentsIsNotDeployedAsThat(t *testing.T) {
	f := newFixture(t)
	m := f.managed("forged")
	sent := m.sent("")
	author := f.author()
	f.eventually("the author may read Clusters", func() error {
		return author.List(context.Background(), &fleet.ClusterList{}, client.InNamespace(f.workspace))
	})
	var cluster fleet.Cluster
	f.check(author.Get(context.Background(), client.ObjectKey{Namespace: f.workspace, Name: m.name}, &cluster))
	own := &fleet.Bundle{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.workspace, Name: "own", Labels: map[string]string{fleet.LabelAgent: sent.Labels[fleet.LabelAgent]},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&cluster, fleet.GroupVersion.WithKind("Cluster"))},
		},
		Spec: fleet.BundleSpec{
			Resources: []fleet.BundleResource{{Name: "a.yaml", Content: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}},
			Targets:   []fleet.BundleTarget{{ClusterName: m.name}},
		},
	}
	f.check(author.Create(context.Background(), own))
	f.untilBundle("own", "Processed", corev1.ConditionFalse, "label muster/agent-version is for Bundles of agents from the hub only")
	if err := f.get(&fleet.BundleDeployment{}, naming.MemberNamespace(f.workspace, m.name), "own"); gone(err) != nil {
		t.Errorf("his own was delivered: %v", err)
	}

	events := f.follow(&fleet.BundleDeploymentList{}, client.InNamespace(sent.Namespace))
	foreign, err := delivery.Pack([]fleet.BundleResource{{Name: "secret.yaml", Content: "kind: somebody else's"}})
	f.check(err)
	f.check(f.Create(context.Background(), foreign))
	t.Cleanup(func() { _ = f.Delete(context.Background(), foreign) })
	for _, change := range []string{
		fmt.Sprintf(`{"spec":{"contentsId":%q}}`, foreign.Name),
		`{"spec":{"resources":[{"name":"a.yaml","content":"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}]}}`,
		`{"metadata":{"labels":{"muster/agent-version":"0123.4567"}},"spec":{"helm":{"releaseName":"mine"}}}`,
	} {
		var before, healed fleet.Bundle
		f.check(f.get(&before, f.workspace, m.bundleName()))
		f.check(merge(author, before.DeepCopy(), change))
		f.eventually("the hub's Bundle is healed", func() error {
			if err := f.get(&healed, f.workspace, m.bundleName()); err != nil {
				return err
			}
			if healed.Labels[fleet.LabelAgent] != before.Labels[fleet.LabelAgent] || len(healed.Spec.Resources) != 0 ||
				healed.Spec.ContentsID != before.Spec.ContentsID || healed.Spec.Helm.ReleaseName != "fleet-agent" {
				return fmt.Errorf("it has %d resources, Content %s, label %s", len(healed.Spec.Resources), healed.Spec.ContentsID,
					healed.Labels[fleet.LabelAgent])
			}
			return nil
		})
	}
	f.untilBundle(m.bundleName(), "Processed", corev1.ConditionTrue, "")
	f.check(f.Create(context.Background(), &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: sent.Namespace, Name: "last"}}))
	for seen := ""; seen != "last"; {
		event := <-events
		d, ok := event.Object.(*fleet.BundleDeployment)
		if !ok {
			t.Fatalf("the watch ended: %+v", event)
		}
		seen = d.Name
		if d.Name == sent.Name && (d.Spec.DeploymentID != sent.Spec.DeploymentID || d.Labels[fleet.LabelAgent] != sent.Labels[fleet.LabelAgent] ||
			strings.Contains(string(event.Type), "DELETED")) {
			t.Errorf("the agent was sent something else: %s, %s %v", event.Type, d.Spec.DeploymentID, d.Labels)
		}
	}
}

// losesTheFormerChart deletes the Content that Bundles of former versions share, which a hub with
// other settings cannot make again.
func (f fixture) losesTheFormerChart(members []managed, newer managed, versions map[string]string) {
	f.t.Helper()
	contents := map[string]bool{}
	for _, m := range members {
		if m.name != newer.name {
			bundle := f.untilBundle(m.bundleName(), "Processed", corev1.ConditionTrue)
			contents[bundle.Spec.ContentsID] = true
			if len(bundle.Spec.Resources) > 0 {
				f.t.Errorf("Bundle %s has %d resources of its own", bundle.Name, len(bundle.Spec.Resources))
			}
		}
	}
	for name := range contents {
		f.check(f.Delete(context.Background(), &fleet.Content{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	if len(contents) != 1 {
		f.t.Errorf("agents of one version have the Contents %v", contents)
	}
	for _, m := range members {
		if m.name != newer.name {
			f.untilBundle(m.bundleName(), "Processed", corev1.ConditionFalse, "a former version of the agent's chart, was deleted")
			if still := m.sent(""); still.Labels[fleet.LabelAgent] != versions[m.name] {
				f.t.Errorf("%s was sent %s", m.name, still.Labels[fleet.LabelAgent])
			}
		}
	}
}
