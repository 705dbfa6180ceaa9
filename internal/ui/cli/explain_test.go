package cli

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
	"github.com/muster-fleet/muster/internal/ui/explain"
)

// says returns the output of muster with single spaces.
func (u user) says(args string, want ...string) {
	u.t.Helper()
	out, said, err := u.run(strings.Fields(args)...)
	if err != nil || said != "" {
		u.t.Errorf("muster %s: %v\n%s", args, err, said)
	}
	for _, part := range want {
		if !strings.Contains(out, part) {
			u.t.Errorf("muster %s says, without %q:\n%s", args, part, out)
		}
	}
}

// sickFleet is fleetOfThree with a failing Bundle on the Cluster team-b/web, and a denied
// request for team-a/web.
func sickFleet(t *testing.T) testkube.Cluster {
	cluster := fleetOn(t, "cli-sick")
	c, ctx := cluster.Client(t), context.Background()
	status := func(o client.Object, status any) {
		t.Helper()
		if o.GetUID() == "" {
			if err := client.IgnoreAlreadyExists(c.Create(ctx, o)); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Status().Patch(ctx, o,
			client.RawPatch("application/merge-patch+json", mustJSON(t, map[string]any{"status": status}))); err != nil {
			t.Fatal(err)
		}
	}
	in := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	member := &fleet.Cluster{ObjectMeta: in("team-b", "web")}
	if err := c.Get(ctx, client.ObjectKeyFromObject(member), member); err != nil {
		t.Fatal(err)
	}
	namespace := naming.MemberNamespace("team-b", "web")
	if err := client.IgnoreAlreadyExists(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})); err != nil {
		t.Fatal(err)
	}
	status(member, fleet.ClusterStatus{Namespace: namespace, Agent: fleet.AgentStatus{LastSeen: metav1.Now()}, Conditions: []fleet.Condition{
		{Type: "Ready", Status: "False", Reason: "ErrApplied", Message: "ErrApplied(1) [Bundle shop]"}, {
			Type: "AgentUpToDate", Status: "False", Reason: "NotManaged", Message: "left to you",
		}}})
	status(&fleet.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "shop", Labels: map[string]string{fleet.LabelBundleName: "shop", fleet.LabelBundleNamespace: "team-b"},
		},
	},
		fleet.BundleDeploymentStatus{
			Conditions: []fleet.Condition{{Type: "Deployed", Status: "False", Reason: "ReleaseConflict", Message: "release shop is of\x1b[2J Helm"}},
		})
	status(&fleet.Bundle{ObjectMeta: in("team-b", "shop")}, fleet.BundleStatus{
		Conditions: []fleet.Condition{{Type: "Ready", Status: "False", Reason: "ErrApplied", Message: "on team-b/web"}},
		Summary:    fleet.BundleSummary{NonReadyResources: []fleet.NonReadyResource{{Name: "web"}}}})
	status(&fleet.ClusterRegistration{ObjectMeta: in("team-a", "request-1")}, fleet.ClusterRegistrationStatus{
		ClusterName: "web", State: fleet.RegistrationDenied, Reason: "TokenExpired", Message: "it has expired",
	})
	return cluster
}

func TestExplainSaysWhatIsWrongAndWhatToDo(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	cluster := sickFleet(t)
	admin := of(t, cluster, cluster.Account(t, "cli-admin", "cluster-admin"))
	admin.says("explain team-a/web", "Cluster team-a/web is Awaited.\n\nWaitCheckIn: no agent has come\n  No agent has registered as this "+
		"Cluster yet.\n  What to do: Register the cluster with muster join,",
		"on the hub:    muster get requests -n team-a", "on the member: kubectl -n cattle-fleet-system get pods",
		"TokenExpired, of ClusterRegistration team-a/request-1, for ", ": it has expired\n")
	admin.says("explain clusters web -n team-b", "Cluster team-b/web is NotReady.\n", "ErrApplied: ErrApplied(1) [Bundle shop]\n",
		"ReleaseConflict, of BundleDeployment "+naming.MemberNamespace("team-b", "web")+"/shop: release shop is of^[[2J Helm\n", "helm list -A",
		"NotManaged: left to you\n")
	admin.says("explain bundles team-b/shop", "Bundle team-b/shop is ",
		"ReleaseConflict, of BundleDeployment "+naming.MemberNamespace("team-b", "web")+"/shop")
	admin.says("explain request-1", "ClusterRegistration team-a/request-1 is Denied.\n", "TokenExpired, for ")
	admin.says("explain edge", "MemberCluster edge is New.\n", "NotObserved\n", "the hub is not running, or no replica leads")
	admin.says("explain bundle/team-b/shop edge", "Bundle team-b/shop is ", "\n\nMemberCluster edge is New.\n")
	admin.says("explain", "3 of 3 members have problems.\n", "ErrApplied, 1 Cluster: team-b/web\n  team-b/web: ErrApplied(1) [Bundle shop]\n",
		"NotObserved, 1 MemberCluster: edge\n", "WaitCheckIn, 1 Cluster: team-a/web\n")
	admin.says("explain -n team-a", "1 of 1 members have problems.\n")
	admin.says("explain -n default", "No members found.\n")

	out, _, err := admin.run("explain", "team-b/web", "-o", "json")
	var findings []explain.Finding
	if err == nil {
		err = json.Unmarshal([]byte(out), &findings)
	}
	if err != nil || len(findings) != 3 || findings[0].Reason != "ReleaseConflict" || !findings[2].Aside {
		t.Errorf("as JSON: %v\n%s", err, out)
	}

	admin.refused("explain web",
		"web is the name of 2 objects; choose one:\n  muster explain clusters team-a/web\n  muster explain clusters team-b/web")
	admin.refused("explain wep",
		"there is no wep among the members, tokens, requests, bundles, repos, helmops, placements, runs; did you mean team-a/web?")
	admin.refused("explain tokens wep", "there is no wep among the tokens")
	admin.refused("explain nodes wep", "nodes is not a kind of objects: use one of members, ")
	admin.refused("explain clusters", "clusters are a kind of objects: name one, as in muster explain clusters NAME")
	admin.refused("explain team-a/web -o yaml", "--output yaml: use json, or leave the flag out")
	if names, _, _ := admin.run("__complete", "explain", "clusters", ""); !strings.Contains(names, "team-a/web\nteam-b/web\n") {
		t.Errorf("completed: %s", names)
	}
}

func TestExplainNamesWhatTheUserMayNotSee(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	cluster := sickFleet(t)
	clusters := of(t, cluster, cluster.Account(t, "sees-clusters", "sees-clusters"))
	clusters.says("explain team-a/web", "Cluster team-a/web is Awaited.\n", "Not checked: clusterregistrations.fleet.cattle.io is forbidden")
	clusters.says("explain", "2 of 2 members have problems.\n", "Not checked: listing MemberClusters of ")
	clusters.refused("explain edge", "there is no edge among what you may see; you may not list MemberClusters, ClusterRegistrationTokens, ")
}
