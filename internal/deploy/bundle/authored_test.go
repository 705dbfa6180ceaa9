package bundle

import (
	"fmt"
	"testing"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestAManifestOfKubectlGetIsDeployed(t *testing.T) {
	r := newRig(t)
	r.start()
	exported := func(value string) fleet.BundleResource {
		return file("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: exported, uid: 11111111-2222-3333-4444-555555555555, "+
			"resourceVersion: '12', generation: 3, creationTimestamp: null, managedFields: [{manager: kubectl}]}\ndata: {key: "+value+"}\n")
	}
	for _, value := range []string{"one", "two"} {
		r.place("exported", fleet.BundleDeploymentOptions{DefaultNamespace: r.target}, exported(value))
		r.eventually("the data is "+value, func() error {
			if got, err := r.data("exported"); got != value {
				return fmt.Errorf("it is %q, %v", got, err)
			}
			return nil
		})
		r.until("exported", fleet.StateReady)
	}
}

func TestMistakesInManifestsAreNamed(t *testing.T) {
	r := newRig(t)
	r.start()
	const job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: job}\nspec: {template: {spec: {restartPolicy: Never, containers: " +
		"[{name: c, image: x, args: [%s]}]}}}\n"
	options := fleet.BundleDeploymentOptions{DefaultNamespace: r.target}
	of := func(metadata, data string) fleet.BundleResource {
		return file("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {"+metadata+"}\ndata: {"+data+"}\n")
	}
	r.place("frozen", options, file("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: frozen}\nimmutable: true\ndata: {key: a}\n"))
	r.place("job", options, file("a.yaml", fmt.Sprintf(job, "a")))
	r.until("frozen", fleet.StateReady)
	r.until("job", fleet.StateNotReady)
	for name, c := range map[string]struct {
		files []fleet.BundleResource
		state fleet.BundleState
		want  string
	}{
		"number": {[]fleet.BundleResource{of("name: number", "key: 4711")}, fleet.StateErrApplied, "in a.yaml: data.key is a number"},
		"unnamed": {
			[]fleet.BundleResource{of("generateName: a-", "key: a")}, fleet.StateErrApplied, "ConfigMap in a.yaml: it has no metadata.name",
		},
		"text": {
			[]fleet.BundleResource{file("a.yaml", "just text\n")}, fleet.StateErrApplied, "no file of the Bundle has a Kubernetes object",
		},
		"twice": {
			[]fleet.BundleResource{of("name: twice", "key: a"), file("b.yaml", of("name: twice", "key: b").Content)}, fleet.StateReady,
			"more than once in the manifests, with only the last one deployed: ConfigMap " + r.target + "/twice",
		},
		"owned": {
			[]fleet.BundleResource{of("name: owned, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: gone, "+
				"uid: 11111111-2222-3333-4444-555555555555}]", "key: a")},
			fleet.StateModified, "has metadata.ownerReferences, and Kubernetes deletes it",
		},
		"frozen": {
			[]fleet.BundleResource{file("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: frozen}\nimmutable: true\ndata: {key: b}\n")},
			fleet.StateErrApplied, "field is immutable when `immutable` is set: undo the change",
		},
		"job": {
			[]fleet.BundleResource{file("a.yaml", fmt.Sprintf(job, "b"))}, fleet.StateErrApplied,
			"spec.template: Invalid value: {...}: field is immutable: undo the change, or give the object another name, or delete it",
		},
	} {
		r.place(name, options, c.files...)
		r.until(name, c.state, c.want)
	}
}
