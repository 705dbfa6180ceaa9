package hub_test

import (
	"context"
	"crypto/sha1" //nolint:gosec // as Rancher Fleet does
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// managed is a Cluster whose agent could replace itself; what it would report of
// that is played by hand.
type managed struct {
	*member
	name string
}

// canReplaceItself gives an agent a program to deploy with, which takes orders and does nothing.
func canReplaceItself(o *agent.Options) { o.Delivery = agent.Delivery{Path: "/bin/cat"} }

func (f fixture) managed(clientID string) managed {
	f.t.Helper()
	_, values := f.token("token-"+clientID, "")
	m := managed{f.join(values, map[string]any{"clientID": clientID}, canReplaceItself), naming.Cluster(clientID)}
	m.deleteAfter()
	return m
}

// deleteAfter deletes the Cluster after the test: the agents of other tests would wait for one
// that never returns.
func (m managed) deleteAfter() {
	m.t.Cleanup(func() {
		cluster := fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: m.workspace, Name: m.name}}
		m.check(m.Delete(context.Background(), &cluster))
		m.eventually(m.name+" is gone", func() error { return gone(m.get(&cluster, m.workspace, m.name)) })
	})
}

func (m managed) bundleName() string { return "fleet-agent-" + m.name }

// sent waits until the agent was sent another version than before, and returns its deployment.
func (m managed) sent(before string) fleet.BundleDeployment {
	m.t.Helper()
	var d fleet.BundleDeployment
	m.eventually(m.name+" is sent a version", func() error {
		if err := m.get(&d, naming.MemberNamespace(m.workspace, m.name), m.bundleName()); err != nil {
			return err
		}
		if label := d.Labels[fleet.LabelAgent]; label == before || label == "" {
			return fmt.Errorf("it is sent %q", label)
		}
		return nil
	})
	return d
}

// says waits for the condition of the Cluster.
func (f fixture) says(name, reason string, parts ...string) {
	f.t.Helper()
	f.eventually(name+" is "+reason, func() error {
		var cluster fleet.Cluster
		if err := f.get(&cluster, f.workspace, name); err != nil {
			return err
		}
		said := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionAgentUpToDate)
		if said == nil || said.Reason != reason || (said.Status == corev1.ConditionTrue) != (reason == "UpToDate") {
			return fmt.Errorf("it is %+v", said)
		}
		if taken := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionReconciled); taken == nil ||
			(taken.Status == corev1.ConditionTrue) != (reason != "NameTaken") {
			return fmt.Errorf("the settings of its agent are %+v", taken)
		}
		for _, part := range parts {
			if !strings.Contains(said.Message, part) {
				return fmt.Errorf("it says %q, not %q", said.Message, part)
			}
		}
		return nil
	})
}

func TestAnAgentHasABundleThatHealsAndThatALabelRemoves(t *testing.T) {
	f := newFixture(t)
	m := f.managed("managed")
	d := m.sent("")
	m.says(m.name, "Updating")
	ready(t, f.Client, d)
	m.says(m.name, "UpToDate")
	var bundle fleet.Bundle
	m.check(m.get(&bundle, m.workspace, m.bundleName()))
	want := []fleet.BundleTarget{{ClusterName: m.name,
		ClusterSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "fleet.cattle.io/non-managed-agent", Operator: metav1.LabelSelectorOpDoesNotExist},
		}}}}
	if diff := cmp.Diff(want, bundle.Spec.Targets); diff != "" {
		t.Errorf("the targets (-want +got):\n%s", diff)
	}
	if bundle.Spec.DefaultNamespace != m.agentNamespace || !bundle.Spec.Helm.TakeOwnership || bundle.Spec.Helm.ReleaseName != "fleet-agent" {
		t.Errorf("the options are %+v", bundle.Spec.BundleDeploymentOptions)
	}

	healthy := bundle.Spec
	for _, change := range []func(){
		func() { bundle.Spec.Paused = true },
		func() { bundle.Spec.Resources = []fleet.BundleResource{{Name: "more.yaml", Content: "a: b"}} },
	} {
		f.change(&bundle, change)
		m.eventually("the Bundle is healed", func() error {
			if err := m.get(&bundle, m.workspace, m.bundleName()); err != nil {
				return err
			}
			if diff := cmp.Diff(healthy, bundle.Spec); diff != "" {
				return fmt.Errorf("it has %d resources, paused: %v", len(bundle.Spec.Resources), bundle.Spec.Paused)
			}
			return nil
		})
	}
	uid := bundle.UID
	m.check(m.Delete(context.Background(), &bundle))
	m.eventually("the Bundle is there again", func() error {
		if err := m.get(&bundle, m.workspace, m.bundleName()); err != nil {
			return err
		}
		if bundle.UID == uid {
			return fmt.Errorf("it is still the old one")
		}
		return nil
	})

	cluster := fleet.Cluster{}
	m.check(m.get(&cluster, m.workspace, m.name))
	f.change(&cluster, func() { cluster.Labels = map[string]string{fleet.LabelNonManagedAgent: "true"} })
	m.says(m.name, "NotManaged", fleet.LabelNonManagedAgent)
	m.eventually("the Bundle is gone", func() error { return gone(m.get(&bundle, m.workspace, m.bundleName())) })
}

func TestTheSettingsOfAClusterReachItsAgentOnly(t *testing.T) {
	f := newFixture(t)
	m := f.managed("settings")
	first := m.sent("")
	ready(t, f.Client, first)
	m.says(m.name, "UpToDate")
	cluster := fleet.Cluster{}
	m.check(m.get(&cluster, m.workspace, m.name))
	f.change(&cluster, func() { cluster.Spec.AgentEnvVars = []corev1.EnvVar{{Name: "A", Value: "${ not a template }"}} })
	second := m.sent(first.Labels[fleet.LabelAgent])
	if first.Labels[fleet.LabelContentName] != second.Labels[fleet.LabelContentName] {
		t.Error("its settings have made another Content, which all agents share")
	}
	var values corev1.Secret
	m.check(m.get(&values, second.Namespace, second.Name))
	if got, want := string(values.Data["values"]),
		`{"fleetAgent":{"extraEnv":[{"name":"A","value":"${ not a template }"}]},"internal":{"systemNamespace":"`+
			m.agentNamespace+`"}}`; got != want {
		t.Errorf("the values are %s, want %s", got, want)
	}
}

func TestALegacyAgentIsSentNothing(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	f.legacyJoin(values, "legacy")
	f.says(naming.Cluster("legacy"), "ForeignAgent", "helm -n cattle-fleet-system upgrade")
	if err := gone(f.get(&fleet.Bundle{}, f.workspace, "fleet-agent-"+naming.Cluster("legacy"))); err != nil {
		t.Error(err)
	}
}

// TestARolloutTriesOneFirstStopsByItselfAndGoesOnAfterTheFix changes the settings of the hub, so
// that no other test may run beside it.
func TestARolloutTriesOneFirstStopsByItselfAndGoesOnAfterTheFix(t *testing.T) {
	f := newAlone(t, `{"agentImage":"muster-agent:v1"}`)
	settings := f.configured()
	versions := map[string]string{}
	var members []managed
	for _, name := range []string{"one", "two", "three"} {
		m := f.managed(name)
		d := m.sent("")
		ready(t, f.Client, d)
		m.says(m.name, "UpToDate")
		f.untilReady(m.name, "Ready")
		versions[m.name] = d.Labels[fleet.LabelAgent]
		members = append(members, m)
	}
	f.change(settings, func() { settings.Data["config"] = `{"agentImage":"muster-agent:broken"}` })
	first := f.updating(members)
	for _, m := range members {
		if m.name != first.name {
			m.says(m.name, "WaitingForTurn", first.name)
		}
	}
	d := first.sent(versions[first.name])
	reportDeployment(t, f.Client, d, func(status map[string]any) {
		status["display"] = map[string]any{"state": "ErrApplied"}
		status["conditions"] = []any{map[string]any{"type": "Deployed", "status": "False", "message": "no such image"}}
	})
	first.says(first.name, "DidNotComeBack", "no such image")
	for _, m := range members {
		if m.name != first.name {
			m.says(m.name, "RolloutStopped", first.name, "no such image", fleet.LabelNonManagedAgent)
			var still fleet.BundleDeployment
			f.check(f.get(&still, naming.MemberNamespace(f.workspace, m.name), m.bundleName()))
			if still.Labels[fleet.LabelAgent] != versions[m.name] {
				t.Errorf("%s was sent the broken version, too", m.name)
			}
		}
	}
	f.restartHub()
	f.losesTheFormerChart(members, first, versions)
	f.change(settings, func() { settings.Data["config"] = `{"agentImage":"muster-agent:v2"}` })
	versions[first.name] = d.Labels[fleet.LabelAgent]
	for left := members; len(left) > 0; {
		next := f.updating(left)
		reportDeployment(t, f.Client, next.sent(versions[next.name]), func(status map[string]any) {
			status["display"] = map[string]any{"state": "Ready"}
		})
		next.says(next.name, "UpToDate")
		var rest []managed
		for _, m := range left {
			if m.name != next.name {
				rest = append(rest, m)
			}
		}
		left = rest
	}
	f.change(settings, func() { settings.Data["config"] = `{"agentImage":"muster-agent:v2","manageAgent":false}` })
	for _, m := range members {
		m.says(m.name, "SwitchedOff", "manageAgent")
		m.eventually("the Bundle is gone", func() error { return gone(m.get(&fleet.Bundle{}, m.workspace, m.bundleName())) })
	}
}

// TestAnAgentThatIsKilledWhileItReplacesItselfGoesOn kills the real programs before certain writes
// of an update. The cluster runs no pods, so the process continues as if it were the new one. The
// process never comes back, so no other test may run beside this one. The test takes minutes: agent
// and deployer start again before each write.
func TestAnAgentThatIsKilledWhileItReplacesItselfGoesOn(t *testing.T) {
	f := newAlone(t, "")
	testkube.Build(t, "muster-deployer")
	_, values := f.token("new-token", "")
	var deadly atomic.Pointer[func(*http.Request) bool]
	trap := f.trap(func(r *http.Request) bool { return (*deadly.Load())(r) })
	m := managed{trap.member(values, "killed"), naming.Cluster("killed")}
	m.deleteAfter()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	f.check(os.WriteFile(kubeconfig, trap.cluster.Kubeconfig(t, trap.cluster.Account(t, m.agentNamespace, "cluster-admin")), 0o600))
	process := trap.agentProcess(m.agentNamespace, "--kubeconfig", kubeconfig)
	sent, deployed := m.sent(""), func() error {
		var d fleet.BundleDeployment
		f.check(m.get(&d, naming.MemberNamespace(m.workspace, m.name), m.bundleName()))
		if d.Spec.DeploymentID == "" || d.Status.AppliedDeploymentID != d.Spec.DeploymentID {
			return fmt.Errorf("its status is %+v", d.Status)
		}
		return nil
	}
	m.eventually("the release is installed", deployed)
	for before, row := range map[string]struct{ method, path string }{
		"the release is begun":      {http.MethodPost, "/namespaces/" + m.agentNamespace + "/secrets"},
		"the Deployment is changed": {http.MethodPatch, "/deployments/fleet-agent"},
		"the release is finished":   {http.MethodPut, "/secrets/sh.helm.release.v1.fleet-agent."},
		"the end is reported":       {http.MethodPatch, "/bundledeployments/" + m.bundleName() + "/status"},
	} {
		at := func(r *http.Request) bool { return r.Method == row.method && strings.Contains(r.URL.Path, row.path) }
		deadly.Store(&at)
		trap.armed.Store(true)
		cluster := fleet.Cluster{}
		m.check(m.get(&cluster, m.workspace, m.name))
		f.change(&cluster, func() { cluster.Spec.AgentEnvVars = []corev1.EnvVar{{Name: "KILLED_BEFORE", Value: before}} })
		sent = m.sent(sent.Labels[fleet.LabelAgent])
		trap.wait(process.Kill)
		process.Start()
		m.eventually("the release is upgraded by an agent that was killed before "+before, deployed)
		var deployment appsv1.Deployment
		m.check(m.get(&deployment, m.agentNamespace, "fleet-agent"))
		if env := deployment.Spec.Template.Spec.Containers[0].Env; !slices.Contains(env, corev1.EnvVar{Name: "KILLED_BEFORE", Value: before}) {
			t.Errorf("the environment is %v, killed before %s", env, before)
		}
	}
	m.upgraded()
}

// upgraded checks that the agent is the only release in its namespace, and that Helm takes its
// newest revision for the one in force.
func (m managed) upgraded() {
	m.t.Helper()
	var revisions corev1.SecretList
	m.check(m.List(context.Background(), &revisions, client.InNamespace(m.agentNamespace), client.MatchingLabels{"owner": "helm"}))
	var newest int
	statuses := map[int]string{}
	for _, revision := range revisions.Items {
		n, err := strconv.Atoi(revision.Labels["version"])
		m.check(err)
		newest = max(newest, n)
		statuses[n] = revision.Labels["status"]
		if revision.Labels["name"] != "fleet-agent" || strings.HasPrefix(statuses[n], "pending") {
			m.t.Errorf("there is release %s, of which revision %d is %s", revision.Labels["name"], n, statuses[n])
		}
	}
	if statuses[newest] != "deployed" {
		m.t.Errorf("the revisions are %v", statuses)
	}
}

// updating waits until one of several agents is updated, and returns which.
func (f fixture) updating(members []managed) managed {
	f.t.Helper()
	var found managed
	f.eventually("one is updated", func() error {
		var said []string
		for _, m := range members {
			var cluster fleet.Cluster
			if err := f.Get(context.Background(), types.NamespacedName{Namespace: f.workspace, Name: m.name}, &cluster); err != nil {
				return err
			}
			condition := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionAgentUpToDate)
			if condition != nil && condition.Reason == "Updating" {
				found = m
				return nil
			}
			said = append(said, fmt.Sprintf("%s %+v", m.name, condition))
		}
		return fmt.Errorf("none is: %s", strings.Join(said, "\n"))
	})
	return found
}

// TestTheBundleOfRancherFleetsAgentIsTakenOver begins with a Bundle that only claims to be of
// Rancher Fleet's hub.
func TestTheBundleOfRancherFleetsAgentIsTakenOver(t *testing.T) {
	f := newFixture(t)
	theirs := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "fleet-agent-" + naming.Cluster("in-place")}}
	set := "fleet-manage-agent/v1, Kind=Namespace" + f.workspace
	//nolint:gosec // as Rancher Fleet does
	theirs.Labels = map[string]string{"objectset.rio.cattle.io/hash": fmt.Sprintf("%x", sha1.Sum([]byte("another"+set)))}
	theirs.Annotations = map[string]string{"objectset.rio.cattle.io/id": "fleet-manage-agent",
		"objectset.rio.cattle.io/owner-gvk":  "/v1, Kind=Namespace",
		"objectset.rio.cattle.io/owner-name": f.workspace}
	theirs.Spec.Resources = []fleet.BundleResource{{Name: "agent.yaml", Content: "{apiVersion: v1, kind: ConfigMap, metadata: {name: agent}}"}}
	f.check(f.Create(context.Background(), theirs))
	m := f.managed("in-place")
	m.says(m.name, "NameTaken", theirs.Name)
	f.change(theirs, func() {
		theirs.Labels["objectset.rio.cattle.io/hash"] = fmt.Sprintf("%x", sha1.Sum([]byte(set))) //nolint:gosec // as Rancher Fleet does
	})
	ready(t, f.Client, m.sent(""))
	m.says(m.name, "UpToDate")
	var bundle fleet.Bundle
	f.check(f.get(&bundle, f.workspace, theirs.Name))
	if owner := metav1.GetControllerOf(&bundle); bundle.UID != theirs.UID || owner == nil || owner.Name != m.name ||
		!bundle.Spec.Helm.TakeOwnership {
		t.Errorf("it is %s, of %+v, with %+v", bundle.UID, owner, bundle.Spec.BundleDeploymentOptions)
	}
}
