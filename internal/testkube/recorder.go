package testkube

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/ui/explain"
)

// recordingsVariable names the directory of the recordings for the tests of internal/ui/explain.
// Without it nothing is stored.
const recordingsVariable = "MUSTER_RECORDINGS"

// recorder keeps the first object with each reason, for each kind in package explain. An object
// with the reason as its first finding replaces an object with another finding before it.
type recorder struct {
	mu  sync.Mutex
	dir string
	// firsts are the recordings with the reason as the first finding, by kind and reason.
	firsts map[string]bool
}

var recordings recorder

// record keeps recordings of the objects on a control plane from now on, until the test binary
// ends.
func record(config *rest.Config) error {
	dir := os.Getenv(recordingsVariable)
	if dir == "" {
		return nil
	}
	recordings.mu.Lock()
	if recordings.firsts == nil {
		recordings.dir, recordings.firsts = dir, map[string]bool{}
	}
	recordings.mu.Unlock()
	cl, err := client.NewWithWatch(config, client.Options{Scheme: scheme()})
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	for _, list := range []client.ObjectList{
		&fleet.ClusterList{}, &fleet.ClusterRegistrationList{}, &fleet.ClusterRegistrationTokenList{}, &fleet.BundleList{},
		&fleet.BundleDeploymentList{},
		&clusterv1beta1.MemberClusterList{}, &placement.ClusterResourcePlacementList{}, &placement.ResourcePlacementList{}, &placement.WorkList{},
		&placement.ClusterStagedUpdateRunList{}, &placement.StagedUpdateRunList{},
	} {
		go func() {
			for {
				recordings.watch(cl, list)
				time.Sleep(time.Second) // the kind is not served, or the control plane is restarted
			}
		}()
	}
	return nil
}

// watch checks each version of the objects of a kind until the watch ends.
func (r *recorder) watch(cl client.WithWatch, list client.ObjectList) {
	watch, err := cl.Watch(context.Background(), list)
	if err != nil {
		return
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		if o, ok := event.Object.(client.Object); ok {
			if err := r.look(o); err != nil {
				panic(err) // a user of recordings wants all of them
			}
		}
	}
}

// look keeps an object for each reason that it is the first to have. It ignores conditions without
// message and time, because they come from a test that simulates a member.
func (r *recorder) look(o client.Object) error {
	said := map[string]bool{}
	for i, f := range explain.Of(o) {
		if f.Reason != "" && !said[f.Reason] && (f.Condition == "" || f.Message != "" && !f.Since.IsZero()) {
			said[f.Reason] = true
			if err := r.keep(o, f.Kind, f.Reason, i == 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// keep writes an object into the file of its kind, unless the file already has an object for the
// reason that is as good.
func (r *recorder) keep(o client.Object, kind, reason string, first bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	path, key := filepath.Join(r.dir, kind+".yaml"), kind+" "+reason
	if r.firsts[key] {
		return nil
	}
	recordings, err := readRecordings(path)
	if err != nil {
		return err
	}
	recorded, found := recordings[reason]
	wasFirst := found && isFirst(recorded, o, reason)
	r.firsts[key] = first || wasFirst
	if found && (wasFirst || !first) {
		return nil
	}
	if recordings[reason], err = pruned(o, kind, reason); err != nil {
		return err
	}
	text, err := yaml.Marshal(recordings)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// readRecordings returns the recordings of a file, by reason.
func readRecordings(path string) (map[string]map[string]any, error) {
	known := map[string]map[string]any{}
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return known, nil
	}
	if err != nil {
		return nil, err
	}
	return known, yaml.UnmarshalStrict(text, &known)
}

// isFirst reports whether a recording, of the kind of an object, has a reason as its first finding.
func isFirst(recorded map[string]any, like client.Object, reason string) bool {
	o, ok := like.DeepCopyObject().(client.Object)
	if !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(recorded, o) != nil {
		return false
	}
	found := explain.Of(o)
	return len(found) > 0 && found[0].Reason == reason
}

// pruned returns an object with only the fields that package explain reads for a reason. It drops
// the spec, because it may hold secrets. Of the members of a placement it keeps only the ones with
// the reason.
func pruned(o client.Object, kind, reason string) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	recording := map[string]any{"kind": kind, "apiVersion": apiVersionOf(o)}
	if metadata, ok := content["metadata"].(map[string]any); ok {
		recording["metadata"] = only(metadata, "namespace", "name", "creationTimestamp", "deletionTimestamp")
	}
	if status, ok := content["status"].(map[string]any); ok {
		kept := only(status, "conditions", "state", "reason", "message", "granted", "placementStatuses", "obstacles", "manifestConditions")
		members, _ := kept["placementStatuses"].([]any)
		if with := saying(reason, members); len(with) > 0 {
			kept["placementStatuses"] = with
		}
		recording["status"] = kept
	}
	return recording, nil
}

// saying returns the members with a condition for a reason.
func saying(reason string, members []any) (with []any) {
	for _, member := range members {
		conditions, _, _ := unstructured.NestedSlice(member.(map[string]any), "conditions")
		if slices.ContainsFunc(conditions, func(c any) bool { return c.(map[string]any)["reason"] == reason }) {
			with = append(with, member)
		}
	}
	return with
}

func only(fields map[string]any, names ...string) map[string]any {
	kept := maps.Clone(fields)
	maps.DeleteFunc(kept, func(name string, _ any) bool { return !slices.Contains(names, name) })
	return kept
}

func apiVersionOf(o client.Object) string {
	kinds, _, err := scheme().ObjectKinds(o)
	if err != nil || len(kinds) == 0 {
		return ""
	}
	return kinds[0].GroupVersion().String()
}
