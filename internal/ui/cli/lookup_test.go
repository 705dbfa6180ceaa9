package cli

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/testkube"
	"github.com/muster-fleet/muster/internal/ui/view"
)

func TestAKindThatACommandIsNotForIsRefused(t *testing.T) {
	members, requests := lookedFor{"muster leave", kindsNamed("members")}, lookedFor{"muster approve", kindsNamed("requests", "clusters")}
	for _, row := range []struct {
		looked      lookedFor
		said, wrong string
	}{
		{members, "members", ""}, {members, "clusters", ""}, {members, "mc", ""},
		{members, "placements", "muster leave does not support placements: use one of members, clusters, memberclusters"},
		{members, "crp", "muster leave does not support placements"}, {members, "tokens", "does not support tokens"},
		{members, "bundles", "does not support bundles"},
		{members, "nodes", "nodes is not a kind of objects: use one of members, clusters, memberclusters"},
		{requests, "request", ""}, {requests, "cluster", ""},
		{requests, "members", "muster approve does not support members: use one of clusters, requests"},
		{lookedFor{"muster explain", explained()}, "clusters", ""}, {lookedFor{"muster explain", explained()}, "tokens", ""},
	} {
		_, err := row.looked.named(row.said)
		if (err == nil) != (row.wrong == "") || err != nil && !strings.Contains(err.Error(), row.wrong) {
			t.Errorf("%s %s: %v", row.looked.command, row.said, err)
		}
	}
}

func TestObjectsThatACommandIsNotForAreLeftAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	ctx, cluster := context.Background(), fleetOn(t, "cli-sick")
	c, admin := cluster.Client(t), of(t, cluster, cluster.Account(t, "cli-admin", "cluster-admin"))
	shop := &placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: placement.PlacementSpec{
		ResourceSelectors: []placement.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: "shop"}}}}
	token := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "kept"}}
	held := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "held", Finalizers: []string{"example.com/held"}}}
	for _, o := range []client.Object{shop, token, held} {
		if err := c.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		noFinalizers := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		for _, err := range []error{c.Patch(ctx, held, noFinalizers), c.Delete(ctx, shop), c.Delete(ctx, token)} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	admin.refused("leave placements shop --timeout 1s",
		"muster leave does not support placements: use one of members, clusters, memberclusters")
	admin.refused("leave tokens team-a/kept --timeout 1s", "muster leave does not support tokens")
	admin.refused("revoke tokens team-a/kept --timeout 1s", "muster revoke does not support tokens")
	admin.refused("tree tokens team-a/kept", "muster tree does not support tokens")
	admin.refused("label tokens team-a/kept a=b", "muster label does not support tokens")
	for _, o := range []client.Object{shop, token} {
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil || o.GetDeletionTimestamp() != nil ||
			len(o.GetAnnotations())+len(o.GetLabels()) > 0 {
			t.Errorf("%s is changed: %v, %v", view.NameOf(o), o, err)
		}
	}
	if names, _, _ := admin.run("__complete", "leave", "placements", ""); strings.Contains(names, "shop") {
		t.Errorf("completed: %s", names)
	}
	completes := func(want string, run func() string) {
		t.Helper()
		testkube.Eventually(t, "it completes "+want, func() error { // a slow answer completes nothing
			if names := run(); !strings.Contains(names, want) {
				return fmt.Errorf("completed: %s", names)
			}
			return nil
		})
	}
	completes("shop", func() string { names, _, _ := admin.run("__complete", "explain", "placements", ""); return names })
	clusters := of(t, cluster, cluster.Account(t, "sees-clusters", "sees-clusters"))
	completes("team-a/web\n", func() string { names, _, _ := clusters.run("__complete", "tree", ""); return names })

	admin.refused("label web env=x", "muster label clusters team-a/web\n")
	admin.says("label clusters team-a/web named=so", "Cluster team-a/web has the labels ", "named=so")
	admin.says("label clusters team-a/web named-", "Cluster team-a/web has the labels ")
	admin.refused("label clusters team-a/web", "no label given: use KEY=VALUE to set one")

	for range 2 { // the second run continues after the first
		admin.refused("leave team-a/held --delete --timeout 1s", "Cluster team-a/held is not gone after 1s")
	}
	admin.refused("leave team-a/held --orphan --timeout 1s", "Cluster team-a/held is already leaving with its earlier policy")
}

func TestAMemberLeavesByThePolicyOfItsRecord(t *testing.T) {
	with := func(policy string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Annotations: map[string]string{clusterv1beta1.AnnotationLeavePolicy: policy}}
	}
	for _, row := range []struct {
		record client.Object
		want   string
	}{
		{&fleet.Cluster{}, "Orphan"}, {&clusterv1beta1.MemberCluster{}, "Delete"},
		{&fleet.Cluster{ObjectMeta: with("Delete")}, "Delete"}, {&clusterv1beta1.MemberCluster{ObjectMeta: with("Orphan")}, "Orphan"},
	} {
		if got := leavesBy(row.record); got != row.want {
			t.Errorf("%T with %v: %s", row.record, row.record.GetAnnotations(), got)
		}
	}
}

func TestWhatNamesAMemberIsToldFromItsLabels(t *testing.T) {
	for args, want := range map[string]int{
		"web a=b": 1, "web a-": 1, "clusters web a=b": 2, "clusters a=b": 1, "clusters a-": 1, "mc edge a- b=c": 2, "web a": 1, "clusters web": 2,
	} {
		if subject, labels := labelled(strings.Fields(args)); len(subject) != want || len(subject)+len(labels) != len(strings.Fields(args)) {
			t.Errorf("%s: %v is the member, %v are labels", args, subject, labels)
		}
	}
}

// hubThatRefuses is a hub with a Cluster web and a MemberCluster edge. It forbids lists of some
// kinds.
func hubThatRefuses(h *access, why map[string]error) client.Client {
	byName := func(o client.Object) []string { return []string{o.GetName()} }
	builder := fake.NewClientBuilder().WithScheme(h.scheme).WithObjects(
		&fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}},
		&clusterv1beta1.MemberCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "edge"}, Spec: clusterv1beta1.MemberClusterSpec{
				Identity: rbacv1.Subject{Kind: "User", Name: "edge"},
			},
		})
	for _, o := range []client.Object{&fleet.Cluster{}, &clusterv1beta1.MemberCluster{}} {
		builder = builder.WithIndex(o, "metadata.name", byName)
	}
	return interceptor.NewClient(builder.Build(),
		interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := why[h.nameOfKind(list)]; err != nil {
				return err
			}
			return c.List(ctx, list, options...)
		}})
}

func TestAnObjectIsFoundAlthoughSomeKindsCannotBeListed(t *testing.T) {
	h := newAccess()
	resource := schema.GroupResource{Resource: "things"}
	unserved := apierrors.NewGenericServerResponse(http.StatusNotFound, "list", resource, "", "404 page not found", 0, true)
	forbidden := apierrors.NewForbidden(resource, "", nil)
	looked := lookedFor{"muster tree", kindsNamed("members")}
	for what, row := range map[string]struct {
		why               map[string]error
		name, found, says string
	}{
		"an older hub has it": {map[string]error{"MemberClusters": unserved}, "web", "team/web", ""},
		"an older hub does not have it": {
			map[string]error{"MemberClusters": unserved}, "wep", "", "there is no wep among the members; hub serves no MemberClusters",
		},
		"no hub": {
			map[string]error{"MemberClusters": unserved, "Clusters": unserved},
			"web", "", "hub serves no Clusters (fleet.cattle.io/v1alpha1): it is not a hub",
		},
		"one of a workspace": {
			map[string]error{"Clusters": forbidden}, "web", "", "you may not list Clusters; use --namespace for one workspace",
		},
		"one whose workspace is said":     {map[string]error{"Clusters": forbidden}, "team/web", "", "you may not list Clusters"},
		"what is forbidden does not hide": {map[string]error{"Clusters": forbidden}, "edge", "edge", ""},
	} {
		o, err := h.lookUp(t.Context(), hubThatRefuses(h, row.why), "hub", looked, row.name)
		switch {
		case row.found != "":
			if err != nil || view.NameOf(o) != row.found {
				t.Errorf("%s: %v, %v", what, o, err)
			}
		case err == nil || !strings.Contains(err.Error(), row.says):
			t.Errorf("%s: %v", what, err)
		case strings.Contains(row.name, "/") && strings.Contains(err.Error(), "--namespace"):
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestWhatAnOlderHubDoesNotServeHidesNothing(t *testing.T) {
	h := newAccess()
	unserved := apierrors.NewGenericServerResponse(http.StatusNotFound, "list", schema.GroupResource{Resource: "things"},
		"", "404 page not found", 0, true)
	for what, row := range map[string]struct {
		unserved    []string
		seen, found int
		refused     int
	}{
		"all":         {nil, 2, 2, 0},
		"one kind":    {[]string{"MemberClusters"}, 1, 1, 0},
		"both kinds":  {[]string{"Clusters", "MemberClusters"}, 0, 0, -1},
		"the tokens":  {[]string{"ClusterRegistrationTokens"}, 2, 2, 0},
		"the members": {[]string{"Clusters"}, 1, 1, 0},
	} {
		why := map[string]error{}
		for _, name := range row.unserved {
			why[name] = unserved
		}
		found := 0
		seen, refused, err := h.eachOfKind(t.Context(), hubThatRefuses(h, why), "hub", kinds[0], func(client.Object) { found++ })
		if len(seen) != row.seen || found != row.found || (err != nil) != (row.refused < 0) || err == nil && len(refused) != row.refused {
			t.Errorf("%s: %d lists, %d objects, %v, %v", what, len(seen), found, refused, err)
		}
	}
	seen, refused, err := h.eachOfKind(t.Context(), hubThatRefuses(h, map[string]error{"MemberClusters": unserved}), "hub", kinds[0],
		func(client.Object) {}, client.InNamespace("empty"))
	if err != nil || len(seen) != 1 || len(refused) != 1 || !strings.Contains(refused[0].Error(), "serves no MemberClusters") {
		t.Errorf("nothing is found: %v, %v, %v", seen, refused, err)
	}
}
