package bundle

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// TestTheBundleOfRancherFleetsAgentPutsNothingInThePlaceOfThisAgent: the hub of Rancher Fleet
// delivers its own agent under the names of this one, and takes ownership. The agent of Rancher
// Fleet has deployed that, and Muster's was installed over it by helm upgrade --take-ownership.
func TestTheBundleOfRancherFleetsAgentPutsNothingInThePlaceOfThisAgent(t *testing.T) {
	const name = "fleet-agent-c1"
	r := newRigAlone(t)
	manifest := func(image string) []fleet.BundleResource {
		return []fleet.BundleResource{
			file("agent.yaml", fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: fleet-agent, namespace: %s}
spec:
  selector: {matchLabels: {app: fleet-agent}}
  template:
    metadata: {labels: {app: fleet-agent}}
    spec: {containers: [{name: fleet-agent, image: %s}]}
`, r.agent, image)),
			labelled(name, "only-theirs", keys("a")),
		}
	}
	theirs := r.theirs(name, name, r.agent)
	theirs.deploy(manifest("rancher/fleet-agent:v1")...)
	r.user().install(map[string]any{
		"apiServerURL": "https://hub.example.com", "token": "t", "tokenName": "n", "clusterNamespace": "clusters",
		"internal": map[string]any{"systemNamespace": r.agent},
	})
	before := r.agentDeployment()
	whole := func() {
		t.Helper()
		now := r.agentDeployment()
		if image := now.Spec.Template.Spec.Containers[0].Image; now.UID != before.UID || image != before.Spec.Template.Spec.Containers[0].Image {
			t.Errorf("Deployment %s of this agent is now %s and runs %s", before.UID, now.UID, image)
		}
	}
	only := r.uid(r.agent, "only-theirs")

	// What their agent has deployed is not deployed again, and not set back either.
	options := fleet.BundleDeploymentOptions{
		DefaultNamespace: r.agent, Helm: &fleet.HelmOptions{TakeOwnership: true}, CorrectDrift: &fleet.CorrectDrift{Enabled: true, Force: true},
	}
	r.applied(r.place(name, options, manifest("rancher/fleet-agent:v1")...))
	run := r.start()
	r.until(name, fleet.StateModified, "deployment.apps "+r.agent+"/fleet-agent not owned by us")
	whole()
	// What is new is refused.
	r.place(name, options, manifest("rancher/fleet-agent:v2")...)
	r.until(name, fleet.StateErrApplied, "Deployment "+r.agent+"/fleet-agent belongs to release "+r.agent+"/fleet-agent",
		"of this agent: no Bundle gets it")
	whole()

	// When the Bundle goes, so does the history of the release, and nothing else.
	r.check(r.kube.Delete(t.Context(), r.get(name)))
	r.eventually("the history is gone", func() error {
		list := &corev1.SecretList{}
		if err := r.kube.List(t.Context(), list, client.InNamespace(r.agent), client.MatchingLabels{"owner": "helm", "name": name}); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return errors.New("it is there")
		}
		return nil
	})
	r.says(run, "Release removed", name)
	whole()
	if is := r.uid(r.agent, "only-theirs"); is != only {
		t.Errorf("ConfigMap only-theirs was %s and is %q", only, is)
	}
}
