package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/bootstrap"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/bundles/agentchart"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestAClusterJoinsInOneLine(t *testing.T) {
	t.Parallel()
	hub, edge, branch := withPods(t, "cli-fleet"), withPods(t, "cli-edge"), withPods(t, "cli-branch")
	admin := contexts(t, hub, edge, branch)
	admin.runs("init", "The hub is running")

	admin.refused("join --context cli-edge", "the hub is missing: use --hub-context CONTEXT, or --token and --hub-url")
	admin.refused("join --context cli-edgy --hub-context cli-fleet",
		"the kubeconfig has no context cli-edgy; did you mean cli-edge?; it has cli-branch, cli-edge, cli-fleet")
	admin.refused("join --context cli-fleet --hub-context cli-fleet", "the contexts cli-fleet and cli-fleet lead to the same cluster")
	admin.refused("join --context cli-edge --hub-context cli-branch", "it is not a hub; install the hub with muster init")

	importedBefore(t, edge)
	for range 2 { // again, and nothing changes
		out := admin.runs("join --context cli-edge --hub-context cli-fleet --name edge --labels env=prod", "Cluster clusters/edge is ",
			"\nclusters/edge Cluster ")
		if strings.Contains(out, "eyJ") {
			t.Errorf("it prints a token:\n%s", out)
		}
	}
	admin.untilReady("clusters/edge")
	var clusters fleet.ClusterList
	c, ctx := hub.Client(t), context.Background()
	if err := c.List(ctx, &clusters, client.InNamespace("clusters")); err != nil || len(clusters.Items) != 1 ||
		clusters.Items[0].Labels["env"] != "prod" {
		t.Errorf("the Clusters: %v, %+v", err, clusters.Items)
	}
	admin.refused("join --context cli-edge --hub-context cli-fleet --name edge-2",
		"cluster cli-edge is a member already, as Cluster clusters/edge: use --name edge, or run muster leave clusters/edge first")
	var tokens fleet.ClusterRegistrationTokenList
	if err := c.List(ctx, &tokens, client.InNamespace("clusters")); err != nil || len(tokens.Items) > 0 {
		t.Errorf("tokens are left: %v, %+v", err, tokens.Items)
	}
	admin.refused("join --context cli-edge --token t --hub-url https://other:6443",
		"cluster cli-edge is a member of the hub at "+hub.Config.Host+", as Cluster clusters/edge: muster move takes it here")
	admin.refused("join --context cli-edge --hub-context cli-fleet -n other",
		"cluster cli-edge is a member already, as Cluster clusters/edge: muster move takes it to workspace other")
	admin.refused("move clusters/web --context cli-edge --hub-context cli-fleet -n other",
		"cluster cli-edge is Cluster clusters/edge of the hub at "+hub.Config.Host+
			", not clusters/web: it has moved already, or the --context is wrong")
	admin.refused("move branch --context cli-branch --hub-context cli-fleet -n other", "cluster cli-branch is not a Cluster of any hub")
	admin.runs("move clusters/edge --context cli-edge --hub-context cli-fleet -n other",
		"It was Cluster clusters/edge of the hub at "+hub.Config.Host, "other/cluster-")
	testkube.Eventually(t, "it has left where it was", func() error {
		if out, _, err := admin.run("get", "members", "clusters/edge"); err != nil || !strings.Contains(out, " Left ") {
			return fmt.Errorf("not so: %v %q", err, strings.Fields(out))
		}
		return nil
	})
	out, said, err := admin.run("doctor", "--context", "cli-edge", "--hub-context", "cli-fleet")
	for _, line := range []string{"cli-edge\n  ok       answers    Kubernetes v", "  ok       rights     you may install the agent\n",
		"  ok       agent      Deployment cattle-fleet-system/fleet-agent runs ",
		"cli-fleet\n  ok       answers ", "  ok       clock      agrees", "  ok       kinds      the fleet's are served\n",
		"  ok       hub        fleet-controller-"} {
		if err != nil || !strings.Contains(out, line) {
			t.Errorf("doctor, without %q: %v\n%s%s", line, err, out, said)
		}
	}

	for range 2 {
		admin.runs("join --context cli-branch --hub-context cli-fleet --member --name branch --labels env=dev", "branch MemberCluster")
	}
	var record clusterv1beta1.MemberCluster
	if err := c.Get(ctx, client.ObjectKey{Name: "branch"}, &record); err != nil || record.Labels["env"] != "dev" {
		t.Errorf("the MemberCluster: %v, %+v", err, record.ObjectMeta)
	}
	testkube.Eventually(t, "the token that the agent began with is exchanged for a credential that is renewed", func() error {
		if err := c.Get(ctx, client.ObjectKey{Name: "branch"}, &record); err != nil ||
			meta.IsStatusConditionTrue(record.Status.Conditions, "CredentialExchanged") {
			return err
		}
		return fmt.Errorf("not so: %+v", record.Status.Conditions)
	})
	powerful := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: memberAgent.Namespace, Name: "taken-hub-cluster-access"}}
	if err := c.Create(ctx, powerful); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		admin.refused("join --context cli-edge --hub-context cli-fleet --member --name taken",
			"ServiceAccount fleet-system/taken-hub-cluster-access on the hub has another owner")
	}
	theirs := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: memberToken.Namespace, Name: memberToken.Name}, StringData: map[string]string{"token": "theirs"},
	}
	if err := edge.Client(t).Create(ctx, theirs); err != nil {
		t.Fatal(err)
	}
	admin.refused("join --context cli-edge --hub-context cli-fleet --member --name other",
		"Secret default/hub-kubeconfig-secret on cluster cli-edge has another owner")
}

// importedBefore leaves the objects of an agent from an import by kubeconfig.
func importedBefore(t *testing.T, cluster testkube.Cluster) {
	t.Helper()
	record := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "edge"}}
	values := agentchart.Of(record, "id", settings.Agent{Image: "muster-agent:v1", TLSMode: settings.TLSSystemStore}, "cattle-fleet-system")
	values.Bootstrap = &bootstrap.Bootstrap{APIServerURL: "https://hub", Token: "t", TokenName: "n", ClusterNamespace: "clusters"}
	objects, err := agentchart.Render(values)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetNamespace() == "" {
			if err := cluster.Client(t).Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("helm"),
				client.ForceOwnership); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cluster.Client(t).Delete(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cattle-fleet-system"}}); err != nil {
		t.Fatal(err)
	}
	testkube.Eventually(t, "the namespace of the agent is gone", func() error {
		if err := cluster.Client(t).Get(t.Context(), client.ObjectKey{Name: "cattle-fleet-system"},
			&corev1.Namespace{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
}

// It takes minutes: each way to fail is waited for as long as the command waits, on real Pods.
func TestAClusterThatDoesNotJoinIsExplained(t *testing.T) {
	t.Parallel()
	hub, edge := withPods(t, "cli-vain"), withPods(t, "cli-slow")
	admin := contexts(t, hub, edge)
	admin.runs("init")

	times := admin.joinsInVain("join --context cli-slow --hub-context cli-vain -n slow --set image.repository=nobodys",
		"the agent does not run yet: its image nobodys:0.1.0 cannot be pulled")
	var tokens fleet.ClusterRegistrationTokenList
	if err := hub.Client(t).List(t.Context(), &tokens, client.InNamespace("slow")); err != nil || len(tokens.Items) == 0 ||
		len(tokens.Items) > times {
		t.Errorf("after %d times there are the tokens %+v, by which the agent could still come through: %v", times, tokens.Items, err)
	}
	for _, token := range tokens.Items {
		if token.Spec.TTL.Duration != joinTokenLife || token.Spec.ClientID == "" {
			t.Errorf("a token is not for this agent alone: %+v", token.Spec)
		}
	}
	admin.refused("join --context cli-slow --hub-context cli-vain -n slow --set fleetAgent=1", "installing the chart fleet-agent",
		"fleetAgent")
	admin.joinsInVain("join --context cli-slow --hub-context cli-vain -n slow --hub-url https://127.0.0.1:1 --set "+
		"image.repository=muster-agent",
		"the agent is running, and has sent no registration request yet: ", "Status of the agent: ", "127.0.0.1:1: connect: connection refused")
	for _, after := range []time.Duration{100 * time.Millisecond, 700 * time.Millisecond, 1500 * time.Millisecond, 3 * time.Second} {
		stopped, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(after, interrupt)
		_, said, err := admin.runIn(stopped, "join", "--context", "cli-slow", "--hub-context", "cli-vain", "-n", "slow", "--set",
			"image.repository=nobodys")
		if err == nil || !strings.Contains(said, errInterrupted.Error()) {
			t.Errorf("it was interrupted after %s, and says %v: %s", after, err, said)
		}
		interrupt()
	}
	admin.runs("join --context cli-slow --hub-context cli-vain -n slow --set image.repository=muster-agent", " online ")
	name := strings.Fields(admin.lines("get", "clusters", "-n", "slow")[1])[0]
	admin.untilReady(name)
	admin.runs("explain "+name+" --member-context cli-slow", "No problems found.", "On cluster cli-slow:\nok answers Kubernetes v",
		"ok agent Deployment cattle-fleet-system/fleet-agent runs muster-agent:0.1.0, as Cluster "+name)
	agents := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: clusterAgent.Namespace, Name: clusterAgent.Name}}
	scale := func(replicas string) {
		t.Helper()
		if err := edge.Client(t).Patch(t.Context(), agents.DeepCopy(),
			client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":`+replicas+`}}`))); err != nil {
			t.Fatal(err)
		}
	}
	agentIsUpToDate(t, hub.Client(t), "slow") // a later update would switch it on again
	scale("0")
	admin.runs("explain "+name+" --member-context cli-slow",
		"WRONG agent the agent cattle-fleet-system/fleet-agent does not run: its Deployment is scaled to 0 replicas")
	admin.refused("doctor --context cli-slow", "1 of these checks failed")
	scale("1")
	admin.runs("join --context cli-slow --hub-context cli-vain -n slow", " online ")

	// The cluster leaves, and joins again by a command from the hub.
	admin.runs("leave "+name+" --delete", " gone")
	line, _, err := admin.run("token", "create", "back", "-n", "slow", "--ttl", "1h", "--max", "1")
	if err != nil {
		t.Fatal(err)
	}
	admin.runs(strings.Replace(strings.TrimPrefix(line, "muster "), "join ", "join --context cli-slow ", 1),
		"the agent runs", "The cluster has joined")
	if lines := admin.lines("get", "clusters", "-n", "slow"); len(lines) != 2 || !strings.HasPrefix(lines[1], name+" Cluster ") ||
		strings.Contains(lines[1], " Absent ") {
		t.Errorf("it is not back: %q", lines)
	}
	admin.refused("join --context cli-slow --hub-context cli-vain -n slow --hub-ca bm9uZQ==",
		"installing the chart fleet-agent: apiServerCA is neither PEM")
}

// joinsInVain runs a failing command with rising timeouts until it reports the cause, and
// returns the number of runs. The needed time depends on the machine.
func (u user) joinsInVain(args string, want ...string) (times int) {
	u.t.Helper()
	for i, timeout := range []string{"20s", "1m0s", "3m0s"} {
		out, said, err := u.run(append(strings.Fields(args), "--timeout", timeout)...)
		if err == nil {
			u.t.Fatalf("muster %s succeeds:\n%s", args, out)
		}
		if slices.ContainsFunc(want, func(part string) bool { return !strings.Contains(out, part) }) {
			u.t.Logf("muster %s says in %s, without one of %q:\n%s%s", args, timeout, want, out, said)
			continue
		}
		if !strings.Contains(said, "the cluster has not joined after "+timeout+canBeRepeated) {
			u.t.Errorf("muster %s ends with %s", args, said)
		}
		return i + 1
	}
	u.t.Fatalf("muster %s does not say %q", args, want)
	return 0
}

func TestARequestThatIsGoneIsNotAwaited(t *testing.T) {
	at := func(name string, second int64, granted bool) fleet.ClusterRegistration {
		return fleet.ClusterRegistration{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(second, 0)},
			Status:     fleet.ClusterRegistrationStatus{Granted: granted},
		}
	}
	superseded := at("b", 1, false)
	superseded.Status.Reason = reasons.Superseded
	for name, row := range map[string]struct {
		requests []fleet.ClusterRegistration
		want     string
	}{
		"of the same second none that is superseded":           {[]fleet.ClusterRegistration{at("a", 1, false), superseded}, "a"},
		"of the same second none that is, in another order":    {[]fleet.ClusterRegistration{superseded, at("a", 1, false)}, "a"},
		"one that is superseded, as long as there is no other": {[]fleet.ClusterRegistration{superseded}, "b"},
		"nobody has asked":                             {nil, ""},
		"the newest counts":                            {[]fleet.ClusterRegistration{at("a", 2, false), at("b", 1, true)}, "a"},
		"of the same second the one that is granted":   {[]fleet.ClusterRegistration{at("a", 1, true), at("b", 1, false)}, "a"},
		"of the same second the one, in another order": {[]fleet.ClusterRegistration{at("b", 1, false), at("a", 1, true)}, "a"},
	} {
		if got := newestRequest(row.requests).Name; got != row.want {
			t.Errorf("%s: %q instead of %q", name, got, row.want)
		}
	}
}

// untilReady waits until a Cluster is ready. A restarted agent needs a while.
func (u user) untilReady(name string) {
	u.t.Helper()
	testkube.Eventually(u.t, name+" is ready", func() error {
		if lines := u.lines("get", "clusters", name); !strings.Contains(lines[1], " Ready ") {
			return errors.New(lines[1])
		}
		return nil
	})
}

// runs expects success, and returns the output with single spaces.
func (u user) runs(args string, want ...string) string {
	u.t.Helper()
	out, said, err := u.run(strings.Fields(args)...)
	if err != nil {
		u.t.Fatalf("muster %s: %v\n%s%s", args, err, out, said)
	}
	var lines []string
	for line := range strings.Lines(out) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	out = strings.Join(lines, "\n")
	for _, part := range want {
		if !strings.Contains(out, part) {
			u.t.Errorf("muster %s says, without %q:\n%s", args, part, out)
		}
	}
	return out
}
