package hub_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// shows waits until the columns of a deployment are these.
func (p place) shows(bundle string, want fleet.BundleDeploymentDisplay) fleet.BundleDeployment {
	p.t.Helper()
	return p.deployment(bundle, func(d fleet.BundleDeployment) error {
		if d.Status.Display != want {
			return fmt.Errorf("it shows %+v", d.Status.Display)
		}
		return nil
	})
}

func falseCondition(kind, message string) map[string]any {
	return map[string]any{"type": kind, "status": "False", "message": message, "reason": "Error"}
}

func trueCondition(kind string) map[string]any { return map[string]any{"type": kind, "status": "True"} }

func TestTheColumnsOfADeploymentAreTheHubsWhateverItsAgentIs(t *testing.T) {
	f := newFixture(t)
	p := f.place("c1", nil)
	f.bundle("app", configMap+"targets: [{clusterSelector: {}}]\n")
	d := p.shows("app", fleet.BundleDeploymentDisplay{State: "WaitApplied"})

	reportDeployment(t, f.Client, d, func(s map[string]any) {
		s["conditions"] = []any{trueCondition("Installed"), trueCondition("Deployed"), trueCondition("Monitored")}
	})
	d = p.shows("app", fleet.BundleDeploymentDisplay{Deployed: "True", Monitored: "True", State: "Ready"})
	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(fleet.GroupVersion.WithKind("BundleDeployment"))
	f.check(f.get(raw, d.Namespace, d.Name))
	status := raw.Object["status"].(map[string]any)
	if status["release"] != "default/app:1" || fmt.Sprint(status["unheardOf"]) != "map[a:1]" || len(status["conditions"].([]any)) != 3 {
		t.Errorf("what the agent wrote is %v", status)
	}

	// An agent that writes something else there is overruled.
	reportDeployment(t, f.Client, d, func(s map[string]any) { s["display"] = map[string]any{"state": "ErrApplied", "deployed": "mine"} })
	p.shows("app", fleet.BundleDeploymentDisplay{Deployed: "True", State: "Ready"})

	reportDeployment(t, f.Client, d, func(s map[string]any) {
		s["conditions"] = []any{falseCondition("Installed", "it is gone"), trueCondition("Deployed"), falseCondition("Monitored", "no watch")}
		s["nonModified"], s["ready"] = false, false
	})
	p.shows("app", fleet.BundleDeploymentDisplay{Deployed: "True", Monitored: "False: no watch", State: "NotReady"})
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "NotReady(1) [Cluster c1: it is gone]")
}

// TestAClusterCountsTheGitReposOfItsBundles: two Bundles say that they come from one repository, a
// third from another.
func TestAClusterCountsTheGitReposOfItsBundles(t *testing.T) {
	f := newFixture(t)
	p := f.place("c1", nil)
	for name, repository := range map[string]string{"app": "web", "base": "web", "more": "other", "own": ""} {
		b := f.bundle(name, configMap+"targets: [{clusterSelector: {}}]\n")
		if repository != "" {
			f.change(b, func() { b.Labels = map[string]string{fleet.LabelRepoName: repository} })
		}
	}
	counts := func(ready, desired int) {
		t.Helper()
		f.eventually(fmt.Sprintf("%d of %d are ready", ready, desired), func() error {
			var cluster fleet.Cluster
			if err := f.get(&cluster, f.workspace, "c1"); err != nil {
				return err
			}
			if is := cluster.Status; is.ReadyGitRepos != ready || is.DesiredReadyGitRepos != desired {
				return fmt.Errorf("%d of %d are", is.ReadyGitRepos, is.DesiredReadyGitRepos)
			}
			return nil
		})
	}
	counts(0, 2)
	reportDeployment(t, f.Client, p.shows("more", fleet.BundleDeploymentDisplay{State: "WaitApplied"}), func(map[string]any) {})
	counts(1, 2)
	reportDeployment(t, f.Client, p.shows("app", fleet.BundleDeploymentDisplay{State: "WaitApplied"}), func(map[string]any) {})
	reportDeployment(t, f.Client, p.shows("base", fleet.BundleDeploymentDisplay{State: "WaitApplied"}), func(map[string]any) {})
	counts(2, 2)
	f.check(f.Delete(context.Background(), &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "more"}}))
	counts(1, 1)
}

// TestAClusterCountsTheHelmOpsOfItsBundles: a Bundle says that it comes from a HelmOp, another from
// a GitRepo of the same name.
func TestAClusterCountsTheHelmOpsOfItsBundles(t *testing.T) {
	f := newFixture(t)
	p := f.place("c1", nil)
	for name, label := range map[string]string{"app": fleet.LabelHelmOpName, "more": fleet.LabelHelmOpName, "base": fleet.LabelRepoName} {
		b := f.bundle(name, configMap+"targets: [{clusterSelector: {}}]\n")
		from := "web"
		if name == "more" {
			from = "db"
		}
		f.change(b, func() { b.Labels = map[string]string{label: from} })
	}
	counts := func(ready, desired, readyRepos int) {
		t.Helper()
		f.eventually(fmt.Sprintf("%d of %d are ready", ready, desired), func() error {
			var cluster fleet.Cluster
			if err := f.get(&cluster, f.workspace, "c1"); err != nil {
				return err
			}
			is := cluster.Status
			if is.ReadyHelmOps != ready || is.DesiredReadyHelmOps != desired || is.ReadyGitRepos != readyRepos || is.DesiredReadyGitRepos != 1 {
				return fmt.Errorf("%d of %d are, and %d of %d GitRepos", is.ReadyHelmOps, is.DesiredReadyHelmOps, is.ReadyGitRepos,
					is.DesiredReadyGitRepos)
			}
			return nil
		})
	}
	counts(0, 2, 0)
	reportDeployment(t, f.Client, p.shows("app", fleet.BundleDeploymentDisplay{State: "WaitApplied"}), func(map[string]any) {})
	counts(1, 2, 0)
	reportDeployment(t, f.Client, p.shows("base", fleet.BundleDeploymentDisplay{State: "WaitApplied"}), func(map[string]any) {})
	counts(1, 2, 1)
	f.check(f.Delete(context.Background(), &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "more"}}))
	counts(1, 1, 1)
}

func TestAnErrorOfAnEarlierDeploymentIDDoesNotCountForANewOne(t *testing.T) {
	f := newFixture(t)
	p := f.place("c1", nil)
	b := f.bundle("app", configMap+"targets: [{clusterSelector: {}}]\n")
	d := p.deployment("app", there)
	failed := func(d fleet.BundleDeployment, message string) {
		reportDeployment(t, f.Client, d, func(s map[string]any) {
			s["appliedDeploymentID"], s["ready"], s["conditions"] = "s-older:1", false, []any{falseCondition("Deployed", message)}
		})
	}
	failed(d, "no such chart")
	p.shows("app", fleet.BundleDeploymentDisplay{Deployed: "False: no such chart", State: "ErrApplied"})
	f.change(b, func() { b.Spec.ForceSyncGeneration = 1 })
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "WaitApplied(1) [Cluster c1")
	next := p.shows("app", fleet.BundleDeploymentDisplay{Deployed: "False: no such chart", State: "WaitApplied"})
	if next.Spec.DeploymentID == d.Spec.DeploymentID {
		t.Fatal("the deployment ID is the same")
	}
	failed(next, "no such repository")
	p.shows("app", fleet.BundleDeploymentDisplay{Deployed: "False: no such repository", State: "ErrApplied"})
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "ErrApplied(1) [Cluster c1: no such repository]")
}

func TestTheSecretOfADeploymentHasTheStagedValuesToo(t *testing.T) {
	f := newFixture(t)
	p := f.place("c1", nil)
	b := f.bundle("app", configMap+"helm: {values: {a: 1}}\ntargets: [{clusterSelector: {}}]\n")
	has := func(values, staged string) {
		t.Helper()
		p.eventually("the values", func() error {
			var d fleet.BundleDeployment
			var secret corev1.Secret
			if err := p.get(&d, p.namespace, "app"); err != nil {
				return err
			}
			if err := p.get(&secret, p.namespace, "app"); err != nil {
				return err
			}
			if string(secret.Data["values"]) != values || string(secret.Data["stagedValues"]) != staged {
				return fmt.Errorf("they are %s", secret.Data)
			}
			if got := hash([]byte(values + staged)); got != d.Spec.ValuesHash {
				return fmt.Errorf("they hash to %s, the deployment says %s", got, d.Spec.ValuesHash)
			}
			return nil
		})
	}
	has(`{"a":1}`, `{"a":1}`)
	f.change(b, func() { b.Spec.Paused = true })
	p.deployment("app", func(d fleet.BundleDeployment) error {
		if !d.Spec.Paused {
			return fmt.Errorf("it is not paused")
		}
		return nil
	})
	f.change(b, func() { b.Spec.Helm.Values.Raw = []byte(`{"a":2}`) })
	has(`{"a":1}`, `{"a":2}`)
	f.change(b, func() { b.Spec.Paused = false })
	has(`{"a":2}`, `{"a":2}`)
}

func TestAChartWhoseVersionIsARangeIsRefused(t *testing.T) {
	f := newFixture(t)
	p := f.place("c1", nil)
	b := f.bundle("app", "helm: {repo: 'https://charts.example.com', chart: web, version: 1.x.x}\ntargets: [{clusterSelector: {}}]\n")
	f.untilBundle("app", fleet.ConditionProcessed, corev1.ConditionFalse, "ErrApplied(1) [Cluster c1: helm.version", "1.x.x", "write the one")
	p.without("app")
	f.change(b, func() { b.Spec.Helm.Version = "1.2.3" })
	p.deployment("app", there)
	// What the CLI packed is there, whatever it was asked for.
	f.bundle("packed", `
helm: {repo: 'https://charts.example.com', chart: web, version: 1.x.x}
resources: [{name: web/Chart.yaml, content: "{apiVersion: v2, name: web, version: 1.2.3}"}]
targets: [{clusterSelector: {}}]
`)
	p.deployment("packed", there)
}
