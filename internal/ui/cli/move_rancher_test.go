package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// rancherHub is a Rancher Fleet hub as seen by its agent: the account of a registration.
type rancherHub struct{ their }

// token creates the account of a registration, and returns its token without expiry.
func (h rancherHub) token(name string) string {
	h.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	h.check(client.IgnoreAlreadyExists(h.Create(h.t.Context(), account)))
	secret := &corev1.Secret{Type: corev1.SecretTypeServiceAccountToken,
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name + "-token",
			Annotations: map[string]string{corev1.ServiceAccountNameKey: name}}}
	h.check(client.IgnoreAlreadyExists(h.Create(h.t.Context(), secret)))
	testkube.Eventually(h.t, "the account has a token", func() error {
		if err := h.Get(h.t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
			return err
		}
		if len(secret.Data["token"]) == 0 {
			return apierrors.NewNotFound(corev1.Resource("tokens"), name)
		}
		return nil
	})
	return string(secret.Data["token"])
}

// accepts grants or removes the rights of Rancher Fleet's agent, and waits until the API server
// does so.
func (h rancherHub) accepts(name string, does bool) {
	h.t.Helper()
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{
		APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin",
	},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: name}}}
	if does {
		h.check(client.IgnoreAlreadyExists(h.Create(h.t.Context(), binding)))
	} else {
		h.check(client.IgnoreNotFound(h.Delete(h.t.Context(), binding)))
	}
	agent, err := h.as(h.token(name))
	h.check(err)
	testkube.Eventually(h.t, fmt.Sprintf("the hub accepts %s: %t", name, does), func() error {
		err := agent.List(h.t.Context(), &corev1.NamespaceList{})
		if does {
			return err
		}
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("it answers %v", err)
		}
		return nil
	})
}

// data reads a Secret in the namespace of the agent; nil if there is none.
func (d their) data(name string) map[string][]byte {
	d.t.Helper()
	secret := &corev1.Secret{}
	err := d.Get(d.t.Context(), client.ObjectKey{Namespace: naming.SystemNamespace, Name: name}, secret)
	d.check(client.IgnoreNotFound(err))
	return secret.Data
}

// last is the newest revision of the release of the agent.
func (d their) last() *helm.Release {
	d.t.Helper()
	last, err := d.helm("fleet-agent", naming.SystemNamespace).Releases.Last("fleet-agent")
	d.check(err)
	return last.(*helm.Release)
}

// agentIsUpToDate waits until the agent of the only Cluster in a workspace is up to date.
func agentIsUpToDate(t *testing.T, hub client.Client, workspace string) {
	t.Helper()
	testkube.Eventually(t, "the agent is up to date", func() error {
		var clusters fleet.ClusterList
		err := hub.List(t.Context(), &clusters, client.InNamespace(workspace))
		if err == nil && len(clusters.Items) == 1 &&
			kube.ReasonOf(clusters.Items[0].Status.Conditions, fleet.ConditionAgentUpToDate) == "UpToDate" {
			return nil
		}
		return fmt.Errorf("not so: %v, %+v", err, clusters.Items)
	})
}

// TestAMemberOfAHubOfRancherFleetMovesInOneLineAndBack uses three control planes, two with
// Pods. Each step fails once and runs twice.
func TestAMemberOfAHubOfRancherFleetMovesInOneLineAndBack(t *testing.T) {
	t.Parallel()
	hub, edge, old := withPods(t, "cli-mover"), withPods(t, "cli-moved", theirImages...), testkube.Turn(t, "cli-old")
	admin, ctx := contexts(t, hub, edge), t.Context()
	admin.runs("init")
	d, o := their{t, edge, edge.Client(t)}, rancherHub{their{t, old, old.Client(t)}}
	old.InstallCRDs(t)
	token := o.token("request-1")
	o.accepts("request-1", true)
	d.install(rancherChart, naming.SystemNamespace, map[string]any{
		"apiServerURL": old.Config.Host, "image": map[string]any{"repository": "mirror/rancher/fleet-agent", "tag": "v0.16.1"},
	})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.AgentSecret},
		StringData: map[string]string{
			"kubeconfig": string(old.Kubeconfig(t, token)), "clusterNamespace": "fleet-default", "clusterName": "c-1",
			"deploymentNamespace": "cluster-fleet-default-c-1"}}
	d.check(d.Create(ctx, secret))
	before := maps.Clone(d.data(naming.AgentSecret))
	d.install(map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\nannotations: {fleet.cattle.io/bundle-id: web, " +
		"fleet.cattle.io/agent-namespace: cattle-fleet-system}\n",
		"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\n"}, "shop", nil)
	delivered := &corev1.ConfigMap{}
	d.check(d.Get(ctx, types.NamespacedName{Namespace: "shop", Name: "web"}, delivered))
	stays := func(when string) {
		t.Helper()
		is := &corev1.ConfigMap{}
		d.check(d.Get(ctx, client.ObjectKeyFromObject(delivered), is))
		if releases, err := d.helm("web", "shop").Releases.History("web"); err != nil || len(releases) != 1 || is.UID != delivered.UID {
			t.Errorf("%s, what the hub before has delivered: %v, %v, UID %s, which was %s", when, releases, err, is.UID, delivered.UID)
		}
	}

	const there, back = "migrate --from rancher-fleet --context cli-mover cli-moved",
		"migrate --from rancher-fleet --context cli-mover --back cli-moved"
	admin.refused("join --context cli-moved --hub-context cli-mover", "muster move takes it here")
	admin.runs(back, "is Cluster fleet-default/c-1 of the hub at "+old.Config.Host+" already, with Rancher Fleet's agent")
	admin.runs(there+" --dry-run", "is Cluster fleet-default/c-1 of the hub at "+old.Config.Host+", and moves to this hub",
		"Muster's chart would replace the release fleet-agent")
	if last := d.last(); last.Version != 1 || d.data(keptCredential) != nil {
		t.Fatalf("--dry-run has changed something: revision %d", last.Version)
	}
	tenants := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: keptCredential},
		StringData: map[string]string{"kubeconfig": "theirs"},
	}
	d.check(d.Create(ctx, tenants))
	admin.refused(there, "has no label muster/kept-by=move, so muster move did not make it: delete it if you do not need it")
	if last := d.last(); last.Version != 1 {
		t.Fatalf("the chart is replaced although the credential is not kept: revision %d", last.Version)
	}
	d.check(d.Delete(ctx, tenants))
	for _, line := range []string{there, "move --context cli-moved --hub-context cli-mover"} { // the second is a repetition
		admin.runs(line, "\nclusters/cluster-", "It was Cluster fleet-default/c-1 of the hub at "+old.Config.Host,
			"kubectl -n fleet-default delete clusters.fleet.cattle.io c-1",
			"To go back: muster migrate --from rancher-fleet --context cli-mover --back cli-moved\n")
		if diff := cmp.Diff(before, d.data(keptCredential)); diff != "" {
			t.Errorf("the copy is not what the agent of before had (-want +got):\n%s", diff)
		}
		if image, set := d.last().Config["image"]; set {
			t.Errorf("an upgrade by their chart would run %v", image)
		}
	}
	stays("there")
	testkube.Eventually(t, "the agent has registered with the token of the repetition", func() error {
		if d.data(naming.AgentBootstrapSecret) != nil {
			return errors.New("the token is there")
		}
		return nil
	})
	ours := d.data(naming.AgentSecret)

	o.accepts("request-1", false)
	admin.refused(back, "does not accept the credential of Rancher Fleet's agent any more")
	if diff := cmp.Diff(string(ours["token"]), string(d.data(naming.AgentSecret)["token"])); diff != "" {
		t.Errorf("a refusal has changed the credential")
	}
	o.accepts("request-1", true)
	admin.runs(back+" --dry-run", "Secret cattle-fleet-system/fleet-agent would get the credential of Secret fleet-agent-before-move back.")

	// Another program changes the release, so the way back fails halfway. The deployer would resume an
	// operation with its own mark, and an old operation would be abandoned.
	agentIsUpToDate(t, hub.Client(t), "clusters")
	held := d.last()
	mark := held.Chart.Metadata.Annotations
	held.Chart.Metadata.Annotations = nil
	held.Info.Status, held.Info.LastDeployed = common.StatusPendingUpgrade, time.Now().Add(time.Hour)
	d.check(d.helm("fleet-agent", naming.SystemNamespace).Releases.Update(held))
	admin.refused(back, "release fleet-agent in namespace cattle-fleet-system has been in use by another program")
	held.Info.Status, held.Chart.Metadata.Annotations = common.StatusDeployed, mark
	d.check(d.helm("fleet-agent", naming.SystemNamespace).Releases.Update(held))
	admin.runs(back, "cluster cli-moved is Cluster fleet-default/c-1 of the hub at "+old.Config.Host+" again.",
		"stays on this hub and becomes Lost. To remove it: muster leave clusters/cluster-")
	d.hasTheirAccount(clusterAgent)
	if diff := cmp.Diff(before, d.data(naming.AgentSecret)); diff != "" {
		t.Errorf("the agent of before has not what it had (-want +got):\n%s", diff)
	}
	if d.data(keptCredential) != nil {
		t.Error("the copy of the credential is left")
	}
	if image, _ := d.last().Config["image"].(map[string]any); image["repository"] != "mirror/rancher/fleet-agent" {
		t.Errorf("it went back with %v", image)
	}
	stays("back")
	admin.runs(back, "already, with Rancher Fleet's agent")

	d.uninstall("fleet-agent", naming.SystemNamespace) // for another turn
	d.uninstall("web", "shop")
	d.check(d.Delete(context.Background(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.AgentSecret},
	}))
}
