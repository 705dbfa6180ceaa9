package bundle

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

// asked are the requests about single ConfigMaps of a namespace, in the order in
// which they were sent.
type asked struct {
	http.RoundTripper
	prefix string
	mu     *sync.Mutex
	lines  *[]string
}

func (a asked) RoundTrip(request *http.Request) (*http.Response, error) {
	if name, is := strings.CutPrefix(request.URL.Path, a.prefix); is {
		a.mu.Lock()
		*a.lines = append(*a.lines, request.Method+" "+name)
		a.mu.Unlock()
	}
	return a.RoundTripper.RoundTrip(request)
}

// startAsking starts a deployer, and returns what it has asked about single ConfigMaps so far.
func (r *rig) startAsking() (run *running, lines func() []string) {
	r.t.Helper()
	var mu sync.Mutex
	var all []string
	prefix := "/api/v1/namespaces/" + r.target + "/configmaps/"
	run = r.startOn(r.reach(func(to http.RoundTripper) http.RoundTripper { return asked{to, prefix, &mu, &all} }))
	return run, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), all...)
	}
}

// untilNoted waits until it is noted of a release which of its objects are unmodified.
func (r *rig) untilNoted(name string) { r.untilNotedAfter(name, "") }

// untilNotedAfter waits for a note of the first revision of a release that is not the earlier one,
// and returns it.
func (r *rig) untilNotedAfter(name, earlier string) (note string) {
	r.t.Helper()
	r.eventually("it is noted what was compared of "+name, func() error {
		secret := &corev1.Secret{}
		if err := r.kube.Get(r.t.Context(), client.ObjectKey{Namespace: r.target, Name: "sh.helm.release.v1." + name + ".v1"},
			secret); err != nil {
			return err
		}
		if note = string(secret.Data["muster-compared"]); note == earlier {
			return fmt.Errorf("the note is %q: %v", note, secret.Annotations)
		}
		return nil
	})
	return note
}

// applyAs sets the key of a ConfigMap by server-side apply as a field manager.
func (r *rig) applyAs(manager, name, value string) {
	r.t.Helper()
	object := r.configMap(name)
	object.APIVersion, object.Kind, object.Data = "v1", "ConfigMap", map[string]string{"key": value}
	current := &corev1.ConfigMap{}
	r.check(r.kube.Get(r.t.Context(), client.ObjectKeyFromObject(object), current))
	object.Labels, object.Annotations = current.Labels, current.Annotations
	//nolint:staticcheck // the typed one needs a type of its own
	r.check(r.kube.Patch(r.t.Context(), object, client.Apply, client.FieldOwner(manager), client.ForceOwnership))
}

func TestDeployerThatStartsComparesOnlyWhatChangedWhileItWasAway(t *testing.T) {
	r := newRig(t)
	releases, each := []string{"one", "two", "three"}, 8
	first, _ := r.startAsking()
	for _, name := range releases {
		var files []fleet.BundleResource
		for i := range each {
			files = append(files, configMap(fmt.Sprintf("%s-%d", name, i), "deployed"))
		}
		r.deploy(name, fleet.BundleDeploymentOptions{}, files...)
		r.untilNoted(name)
	}
	first.stop()
	until := func(parts map[string][]string) {
		t.Helper()
		for _, name := range releases {
			if is := parts[name]; len(is) > 0 {
				r.until(name, fleet.StateModified, is...)
				continue
			}
			r.until(name, fleet.StateReady)
		}
	}
	restart := func(change func(), modified map[string][]string, most int) {
		t.Helper()
		change()
		for _, name := range releases { // the deployer has to write it
			placed := r.get(name)
			placed.Status = fleet.BundleDeploymentStatus{}
			r.check(r.kube.Status().Update(t.Context(), placed))
		}
		run, lines := r.startAsking()
		until(modified)
		run.stop()
		if got := lines(); len(got) > most {
			t.Errorf("it asked %d times about single objects, want %d at most: %v", len(got), most, got)
		}
	}
	restart(func() {}, nil, 0)
	restart(func() { r.edit("two-3", `{"data":{"key":"by hand"}}`) },
		map[string][]string{"two": {`two-3 modified {"data":{"key":"deployed"}}`}}, 3)
	restart(func() {
		r.edit("two-3", `{"data":{"key":"deployed"}}`)
		r.applyAs(release.FieldManager, "one-0", "by an imitator")
	}, map[string][]string{"one": {`one-0 modified`}}, 5)
	restart(func() {
		r.check(r.kube.Delete(t.Context(), r.configMap("three-1")))
		r.applyAs(release.FieldManager, "one-0", "deployed")
	}, map[string][]string{"three": {"three-1 missing"}}, 5)
}

// TestHowDriftIsFoundChangesWithoutADeployment changes diff and correctDrift as the hub does: with
// the same deployment ID.
func TestHowDriftIsFoundChangesWithoutADeployment(t *testing.T) {
	r := newRig(t)
	run := r.start()
	placed := r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	note := r.untilNotedAfter("web", "")
	set := func(pointers ...string) {
		t.Helper()
		r.change(placed, func() {
			placed.Spec.Options.Diff = nil
			if len(pointers) > 0 {
				placed.Spec.Options.Diff = &fleet.DiffOptions{
					ComparePatches: []fleet.ComparePatch{{APIVersion: "v1", Kind: "ConfigMap", Name: "web", JSONPointers: pointers}},
				}
			}
		})
	}
	r.edit("web", `{"data":{"key":"by hand"}}`)
	r.until("web", fleet.StateModified)
	set("/data")
	r.until("web", fleet.StateReady)
	set("/metadata/labels")
	r.until("web", fleet.StateModified)

	run.stop()
	set("/data")
	run = r.start()
	r.until("web", fleet.StateReady)
	r.untilNotedAfter("web", note) // as it is without its data
	run.stop()
	set()
	r.start()
	r.until("web", fleet.StateModified)

	r.change(placed, func() { placed.Spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true} })
	r.untilData("web", "one")
	found := r.until("web", fleet.StateReady)
	if found.Spec.DeploymentID != placed.Spec.DeploymentID || r.revisions("web") != 1 {
		t.Errorf("it was deployed anew: %+v", found.Status)
	}
}
