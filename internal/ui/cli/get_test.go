package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard()) // as the program does
	// Each test with Pods installs charts on three clusters, by a command with a timeout. On a
	// busy machine two at once are late.
	if err := flag.Set("test.parallel", "1"); err != nil {
		panic(err)
	}
	os.Exit(testkube.Main(m))
}

// user runs muster with a kubeconfig.
type user struct {
	t          *testing.T
	kubeconfig string
	// cacheDir is the cache of discovery. With a cache, the user gets it and the kubeconfig by
	// flags, for parallel tests; otherwise by the environment.
	cacheDir string
}

// of returns the user with a token.
func of(t *testing.T, cluster testkube.Cluster, token string) user {
	u := user{t: t, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), cacheDir: t.TempDir()}
	if err := os.WriteFile(u.kubeconfig, cluster.Kubeconfig(t, token), 0o600); err != nil {
		t.Fatal(err)
	}
	return u
}

func (u user) run(args ...string) (out, said string, err error) {
	u.t.Helper()
	return u.runIn(context.Background(), args...)
}

func (u user) runIn(ctx context.Context, args ...string) (out, said string, err error) {
	u.t.Helper()
	if u.cacheDir != "" {
		args = append([]string{"--kubeconfig", u.kubeconfig, "--cache-dir", u.cacheDir}, args...)
	} else {
		u.t.Setenv("HOME", u.t.TempDir()) // discovery is cached there
		u.t.Setenv("KUBECONFIG", u.kubeconfig)
	}
	var stdout, stderr bytes.Buffer
	command := NewCommand("muster", genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr})
	command.SetArgs(args)
	err = command.ExecuteContext(ctx)
	return stdout.String(), stderr.String(), err
}

// lines returns the lines of a table, with one blank between the columns.
func (u user) lines(args ...string) []string {
	u.t.Helper()
	out, said, err := u.run(args...)
	if err != nil || said != "" {
		u.t.Fatalf("muster %s: %v\n%s", strings.Join(args, " "), err, said)
	}
	var lines []string
	for line := range strings.Lines(out) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return lines
}

func (u user) shows(args string, want ...string) {
	u.t.Helper()
	if got := u.lines(strings.Fields(args)...); !slices.Equal(got, want) {
		u.t.Errorf("muster %s shows\n%s\nnot\n%s", args, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func (u user) refused(args string, want ...string) {
	u.t.Helper()
	_, said, err := u.run(strings.Fields(args)...)
	if err == nil {
		u.t.Errorf("muster %s succeeds", args)
	}
	for _, part := range want {
		if !strings.Contains(said, part) {
			u.t.Errorf("muster %s says %q, without %q", args, said, part)
		}
	}
}

// fleetOfThree has two Clusters in two workspaces and a MemberCluster, without a running hub.
func fleetOfThree(t *testing.T) testkube.Cluster { return fleetOn(t, "cli") }

func fleetOn(t *testing.T, name string) testkube.Cluster {
	cluster := testkube.Turn(t, name)
	cluster.ServeFleet(t)
	web := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web", Labels: map[string]string{"env": "prod"}}}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-b"}}, web,
		&fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "web"}},
		&clusterv1beta1.MemberCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "edge"}, Spec: clusterv1beta1.MemberClusterSpec{
				Identity: rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "edge"},
			},
		},
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "sees-clusters"}, Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{"fleet.cattle.io"}, Resources: []string{"clusters"}, Verbs: []string{"list"},
			}},
		},
	} {
		if err := cluster.Client(t).Create(context.Background(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	status := fleet.ClusterStatus{
		Conditions: []fleet.Condition{{Type: "Ready", Status: "False", Reason: "WaitCheckIn", Message: "no agent has come"}},
	}
	if err := cluster.Client(t).Status().Patch(context.Background(), web,
		client.RawPatch("application/merge-patch+json", mustJSON(t, map[string]any{"status": status}))); err != nil {
		t.Fatal(err)
	}
	return cluster
}

func mustJSON(t *testing.T, value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestMusterAloneSaysWhichCommandsOneNeedsFirst(t *testing.T) {
	for name, want := range map[string]string{"muster": "muster init --context HUB ", "kubectl muster": "kubectl muster init --context HUB "} {
		var out bytes.Buffer
		command := NewCommand(name, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
		command.SetArgs([]string{})
		if err := command.Execute(); err != nil || !strings.HasPrefix(out.String(), want) || strings.Count(out.String(), "\n") != 7 {
			t.Errorf("%s: %v\n%s", name, err, &out)
		}
		out.Reset()
		command.SetArgs([]string{"get", "--help"})
		if err := command.Execute(); err != nil || !strings.Contains(out.String(), "\n  "+name+" get [members|") {
			t.Errorf("%s: %v\n%s", name, err, &out)
		}
	}
}

const membersHeader = "NAME KIND STATE NODES BUNDLES VERSION LAST-SEEN WHY"

func TestGetShowsMembersOfBothKinds(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	cluster := fleetOfThree(t)
	admin := of(t, cluster, cluster.Account(t, "cli-admin", "cluster-admin"))
	const edge, webA, webB = "edge MemberCluster New - - - - -", "team-a/web Cluster Awaited - - - - no agent has come",
		"team-b/web Cluster New - - - - -"
	admin.shows("get", membersHeader, edge, webA, webB)
	admin.shows("get members web edge", membersHeader, edge, webA, webB)
	admin.shows("get clusters", membersHeader, webA, webB)
	admin.shows("get clusters team-b/web", membersHeader, webB)
	admin.shows("get mc", membersHeader, edge)
	admin.shows("get -n team-a", membersHeader, webA)
	admin.shows("get -l env=prod", membersHeader, webA)
	for _, member := range []string{"edge", "team-a/web"} {
		admin.runs("cordon " + member)
	}
	const cordoned = "cordoned: no new deliveries"
	admin.shows("get", membersHeader, "edge MemberCluster New - - - - "+cordoned,
		"team-a/web Cluster Awaited - - - - "+cordoned+"; no agent has come", webB)
	for _, member := range []string{"edge", "team-a/web"} {
		admin.runs("cordon --undo " + member)
	}
	admin.shows("get members edge -o wide",
		"NAME KIND STATE NODES BUNDLES VERSION LAST-SEEN AGENT EXPIRES DISPLAY-NAME PROVIDER REGION DISTRIBUTION WHY",
		"edge MemberCluster New - - - - - - - - - - -")
	admin.shows("get -o name", "membercluster/edge", "cluster/team-a/web", "cluster/team-b/web")
	admin.shows("get edge team-a/web", membersHeader, edge, webA)
	admin.shows("get membercluster/edge cluster/team-b/web --no-headers", edge, webB)
	admin.shows("get cluster.fleet.cattle.io/team-b/web members/edge -o name", "cluster/team-b/web", "membercluster/edge")
	admin.shows("get clusters cluster/team-b/web", membersHeader, webB)
	admin.shows("get --sort-by kind", membersHeader, webA, webB, edge)
	admin.shows("get --sort-by {.metadata.namespace} --no-headers", edge, webA, webB)
	admin.shows("get -o custom-columns=N:.metadata.name,E:.metadata.labels.env", "N E", "edge <none>", "web prod", "web <none>")
	admin.refused("get web", "web is the name of 2 objects; choose one:", "muster get clusters team-b/web")
	admin.refused("get edge -l env=prod", "--selector and names exclude each other")
	admin.refused("get --sort-by size", "members have the columns name, kind, state")
	admin.refused("get -o custom-columns=N", `"N" is no column, such as NAME:.metadata.name`)
	admin.shows("get clusters team-a/web -o jsonpath={.metadata.labels.env}", "prod")

	out, _, err := admin.run("get", "-o", "json")
	var list struct{ Items []runtime.RawExtension }
	if err == nil {
		err = json.Unmarshal([]byte(out), &list)
	}
	if err != nil || len(list.Items) != 3 || !strings.Contains(string(list.Items[0].Raw), `"kind": "MemberCluster"`) {
		t.Errorf("as JSON: %v\n%s", err, out)
	}
	for _, args := range []string{"get tokens", "get requests", "get bundles", "get placements"} {
		if out, said, err := admin.run(strings.Fields(args)...); err != nil || out != "" ||
			said != "No "+strings.Fields(args)[1]+" found.\n" {
			t.Errorf("muster %s: %q, %q, %v", args, out, said, err)
		}
	}

	admin.refused("get members wep", "there is no wep among the members; did you mean team-a/web?")
	admin.refused("get clusters edge -n team-a", "there is no edge in namespace team-a among the clusters")
	admin.refused("get nodes",
		"there is no nodes among the members, tokens, requests, bundles, repos, helmops, placements, runs")
	admin.refused("get -l ==", "--selector ==")
	admin.refused("get -o html", "html")
	admin.refused("get --context elsewhere", "elsewhere")

	if names, _, _ := admin.run("__complete", "get", "clusters", ""); !strings.Contains(names, "team-a/web\nteam-b/web\n") {
		t.Errorf("completed: %s", names)
	}
	if names, _, _ := admin.run("__complete", "bundle", ".", "--render", "--cluster", ""); !strings.Contains(names,
		"team-a/web\nteam-b/web\n") {
		t.Errorf("completed: %s", names)
	}
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "a.yaml"), []byte("apiVersion: v1\nkind: ConfigMap\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, said, err := admin.run("bundle", directory, "--name", "shop", "--render", "--cluster", "team-a/web"); err != nil ||
		said != "Bundle shop is not for Cluster team-a/web: no target matches; the Cluster is in no ClusterGroup\n" {
		t.Errorf("%v %s", err, said)
	}
	admin.refused("bundle "+directory+" --render --cluster wep", "there is no wep among the clusters; did you mean team-a/web?")
	if names, _, _ := admin.run("__complete", "get", "--namespace", ""); !strings.Contains(names, "team-a\nteam-b\n") {
		t.Errorf("completed: %s", names)
	}
	if names, _, _ := admin.run("__complete", "get", "--context", ""); !strings.Contains(names, "default\n") {
		t.Errorf("completed: %s", names)
	}
}

func TestAListOfNothingIsOne(t *testing.T) {
	var out strings.Builder
	g := &get{
		IOStreams: genericiooptions.IOStreams{Out: &out}, access: newAccess(),
		format: genericclioptions.NewPrintFlags("").WithDefaultOutput("json"),
	}
	if err := g.print(&printers.JSONPrinter{}, found{}); err != nil || !strings.Contains(out.String(), `"items": []`) {
		t.Errorf("%v\n%s", err, &out)
	}
}

func TestGetShowsWhatAUserMaySeeAndNamesWhatNot(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	cluster := fleetOfThree(t)
	clusters := of(t, cluster, cluster.Account(t, "sees-clusters", "sees-clusters"))
	out, said, err := clusters.run("get")
	if ExitCode(err) != exitPartly || strings.Count(out, "\n") != 3 ||
		!strings.Contains(said, "Not shown: listing MemberClusters of "+cluster.Config.Host+
			": memberclusters.cluster.kubernetes-fleet.io is forbidden") {
		t.Errorf("%v\n%s\n%s", err, out, said)
	}
	if out, said, err := clusters.run("get", "-o", "name"); ExitCode(err) != exitPartly || strings.Count(out, "\n") != 2 ||
		!strings.Contains(said, "the list is not complete") {
		t.Errorf("for a script: %v\n%s\n%s", err, out, said)
	}
	for args, want := range map[string]int{
		"get clusters": 0, "get clusters -A": 0, "get -n team-a": 0, "get mc": exitFailed, "get nothing": exitFailed,
		"get clusters -A -n team-a": exitUsage, "get --nothing": exitUsage, "tree": exitUsage, "gte": exitUsage,
		"get clusters --exit-code": exitNotWell, "get clusters -w -o json": exitUsage,
	} {
		if _, said, err := clusters.run(strings.Fields(args)...); ExitCode(err) != want {
			t.Errorf("muster %s ends with %d, want %d: %s", args, ExitCode(err), want, said)
		}
	}
	clusters.refused("get mc", "memberclusters.cluster.kubernetes-fleet.io is forbidden")

	token := cluster.Account(t, "sees-team-a", "")
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "sees"}, RoleRef: rbacv1.RoleRef{
		APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "sees-clusters",
	},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "sees-team-a"}}}
	if err := cluster.Client(t).Create(context.Background(), binding); err != nil {
		t.Fatal(err)
	}
	tenant := of(t, cluster, token)
	tenant.refused("get", "clusters.fleet.cattle.io is forbidden", "use --namespace for one workspace")
	testkube.Eventually(t, "the right counts", func() error { _, _, err := tenant.run("get", "-n", "team-a"); return err })
	tenant.shows("get -n team-a", membersHeader, "team-a/web Cluster Awaited - - - - no agent has come")
	tenant.refused("get -n team-b", `clusters.fleet.cattle.io is forbidden`, `in the namespace "team-b"`)

	stranger := of(t, cluster, "none")
	stranger.refused("get", "does not accept the credential of the kubeconfig")
}

func TestGetSaysWhatIsNoHub(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	cluster := testkube.Turn(t, "no-hub")
	cluster.Config = rest.CopyConfig(cluster.Config)
	of(t, cluster, cluster.Account(t, "cli-admin", "cluster-admin")).
		refused("get", cluster.Config.Host+" serves no Clusters (fleet.cattle.io/v1alpha1)", "the chart fleet-crd is not installed there",
			"choose the hub with --context")

	nobody := user{t: t, kubeconfig: filepath.Join(t.TempDir(), "none")}
	nobody.refused("get", "there is no kubeconfig for the hub: set --kubeconfig, or the variable KUBECONFIG")
	cluster.Config.Host = "https://127.0.0.1:1"
	of(t, cluster, "any").refused("get", "https://127.0.0.1:1", "connection refused")
}
