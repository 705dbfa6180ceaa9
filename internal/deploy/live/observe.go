package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent/readiness"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

const (
	// maxNamed is how many objects a status names that are not as they should be, as upstream agents do; the counts are of all.
	maxNamed = 10
	// maxListed is how many objects a status lists at all.
	maxListed = 500
	// comparing is how many objects of one release are compared at a time.
	comparing = 8
)

// Set is the objects of a release, and what was found out about each. One goroutine at a time uses it.
type Set struct {
	release  release.Summary
	keys     []Key
	compared map[Key]verdict
}

// verdict is the result of a comparison; it holds as long as the fingerprint.
type verdict struct {
	record   record
	modified *fleet.ModifiedStatus
}

// NewSet remembers which objects a release has; the objects themselves are not kept.
func (w *Watcher) NewSet(s release.Summary, objects []*unstructured.Unstructured) (*Set, error) {
	set := &Set{release: s, compared: map[Key]verdict{}}
	for _, object := range objects {
		key, err := w.keyOf(s, object)
		if err != nil {
			return nil, err
		}
		if key.Name != "" {
			// One that the API server names cannot be told from others later.
			set.keys = append(set.keys, key)
		}
	}
	return set, nil
}

// keyOf is where an object of a release is to be found.
func (w *Watcher) keyOf(s release.Summary, object *unstructured.Unstructured) (Key, error) {
	gvk := object.GroupVersionKind()
	mapping, err := w.cluster.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return Key{}, fmt.Errorf("looking up %s: %w", gvk, err)
	}
	key := Key{Kind: gvk, Name: object.GetName()}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if key.Namespace = object.GetNamespace(); key.Namespace == "" {
			key.Namespace = s.Namespace
		}
	}
	return key, nil
}

// Keys are the objects of the release.
func (s *Set) Keys() []Key { return s.keys }

// Observation is how the objects of a release are.
type Observation struct {
	// Unsynced says which kind has not been listed yet, and why if that is known; empty if all have been.
	Unsynced  string
	NonReady  []fleet.NonReadyStatus
	Modified  []fleet.ModifiedStatus
	Resources []fleet.DeployedResource
	// Changed is how many objects were changed downstream, those that are gone included; Modified names the first of them.
	Changed int
	Counts  fleet.ResourceCounts
}

// Observe says how the objects are, by what the watches told, and by a comparison of those that somebody changed.
func (w *Watcher) Observe(ctx context.Context, s *Set, options fleet.BundleDeploymentOptions) (Observation, error) {
	o := Observation{Counts: fleet.ResourceCounts{DesiredReady: len(s.keys)}}
	records := make(map[Key]record, len(s.keys))
	var stale []Key
	for _, key := range s.keys {
		r, found, synced := w.get(key)
		if !synced {
			o.Unsynced = w.trouble(key.Kind)
			return o, nil
		}
		if known, ok := s.compared[key]; !found || !ok || known.record.print != r.print {
			stale = append(stale, key)
		}
		if found {
			records[key] = r
		}
	}
	if err := w.compareAll(ctx, s, stale, options.Diff); err != nil {
		return o, err
	}
	for _, key := range s.keys {
		seen := s.compared[key]
		r, watched := records[key]
		if !watched {
			r = seen.record
		}
		if err := w.count(ctx, s, &o, key, verdict{record: r, modified: seen.modified}, options.IgnoreOptions); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (w *Watcher) count(ctx context.Context, s *Set, o *Observation, key Key, found verdict, ignore *fleet.IgnoreOptions) error {
	r, modified := found.record, found.modified
	if modified != nil {
		o.Changed++
		if len(o.Modified) < maxNamed {
			o.Modified = append(o.Modified, *modified)
		}
	}
	if modified != nil && modified.Create {
		o.Counts.Missing++
		return nil
	}
	if len(o.Resources) < maxListed {
		o.Resources = append(o.Resources, fleet.DeployedResource{
			Kind: key.Kind.Kind, APIVersion: key.Kind.GroupVersion().String(), Namespace: key.Namespace, Name: key.Name,
			CreatedAt: r.created.UTC().Format(time.RFC3339),
		})
	}
	if !r.readiness.Stands() && ignore != nil && len(ignore.Conditions) > 0 {
		var err error
		if r.readiness, err = w.without(ctx, s, key, ignore.Conditions); err != nil {
			return err
		}
	}
	switch {
	case !r.readiness.Stands():
		o.Counts.NotReady++
		if len(o.NonReady) < maxNamed {
			o.NonReady = append(o.NonReady, nonReady(key, r))
		}
	case modified != nil:
		o.Counts.Modified++
	default:
		o.Counts.Ready++
	}
	return nil
}

func nonReady(key Key, r record) fleet.NonReadyStatus {
	n := fleet.NonReadyStatus{
		UID: r.uid, Kind: key.Kind.Kind, APIVersion: key.Kind.GroupVersion().String(), Namespace: key.Namespace, Name: key.Name,
		Summary: fleet.ReadinessSummary{
			State: string(r.readiness.State), Error: r.readiness.State == readiness.Failed,
			Transitioning: r.readiness.State == readiness.Progressing || r.readiness.State == readiness.Terminating,
		},
	}
	if r.readiness.Message != "" {
		n.Summary.Message = []string{r.readiness.Message}
	}
	return n
}

// without is the readiness of an object with some of its conditions left out.
func (w *Watcher) without(ctx context.Context, s *Set, key Key, ignored []map[string]string) (readiness.Result, error) {
	objects, err := w.client(s.release, key)
	if err != nil {
		return readiness.Result{}, err
	}
	object, err := objects.Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return readiness.Result{}, fmt.Errorf("reading %s: %w", key, err)
	}
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return readiness.Result{}, fmt.Errorf("reading the conditions of %s: %w", key, err)
	}
	conditions = slices.DeleteFunc(conditions, func(condition any) bool {
		fields, ok := condition.(map[string]any)
		return ok && slices.ContainsFunc(ignored, func(wanted map[string]string) bool {
			for field, value := range wanted {
				if fields[field] != value {
					return false
				}
			}
			return len(wanted) > 0
		})
	})
	if err := unstructured.SetNestedSlice(object.Object, conditions, "status", "conditions"); err != nil {
		return readiness.Result{}, fmt.Errorf("leaving out conditions of %s: %w", key, err)
	}
	return readiness.Of(object), nil
}

// compareAll renews the verdicts of some objects.
func (w *Watcher) compareAll(ctx context.Context, s *Set, keys []Key, diff *fleet.DiffOptions) error {
	if len(keys) == 0 {
		return nil
	}
	wanted, err := w.wanted(ctx, s, keys)
	if err != nil {
		return err
	}
	var (
		mu       sync.Mutex
		failures []error
		working  sync.WaitGroup
	)
	places := make(chan struct{}, comparing)
	for _, key := range keys {
		places <- struct{}{}
		working.Go(func() {
			defer func() { <-places }()
			modified, r, err := w.compare(ctx, s, key, wanted[key], diff)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failures = append(failures, err)
				return
			}
			s.compared[key] = verdict{record: r, modified: modified}
		})
	}
	working.Wait()
	return errors.Join(failures[:min(len(failures), 1)]...)
}

// wanted are the objects as Helm applied them.
func (w *Watcher) wanted(ctx context.Context, s *Set, keys []Key) (map[Key]*unstructured.Unstructured, error) {
	objects, err := w.cluster.Objects(ctx, s.release)
	if err != nil {
		return nil, err
	}
	asked := make(map[Key]bool, len(keys))
	for _, key := range keys {
		asked[key] = true
	}
	wanted := make(map[Key]*unstructured.Unstructured, len(keys))
	for _, object := range objects {
		key, err := w.keyOf(s.release, object)
		if err != nil {
			return nil, err
		}
		if !asked[key] {
			continue
		}
		object.SetNamespace(key.Namespace)
		object.SetLabels(with(object.GetLabels(), map[string]string{"app.kubernetes.io/managed-by": "Helm"}))
		object.SetAnnotations(with(object.GetAnnotations(), map[string]string{
			releaseName: s.release.Name, "meta.helm.sh/release-namespace": s.release.Namespace,
		}))
		wanted[key] = object
	}
	return wanted, nil
}

func with(values, more map[string]string) map[string]string {
	merged := maps.Clone(values)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, more)
	return merged
}

// Correct sets back what was changed. With force, what cannot be set back is replaced.
func (w *Watcher) Correct(ctx context.Context, s *Set, force bool) error {
	var keys []Key
	for _, key := range s.keys {
		if s.compared[key].modified != nil {
			keys = append(keys, key)
		}
	}
	wanted, err := w.wanted(ctx, s, keys)
	if err != nil {
		return err
	}
	for _, key := range keys {
		objects, err := w.client(s.release, key)
		if err != nil {
			return err
		}
		_, err = w.apply(ctx, objects, wanted[key])
		if err != nil && force {
			if err := objects.Delete(ctx, key.Name, metav1.DeleteOptions{}); err != nil {
				return fmt.Errorf("replacing %s, which cannot be set back: %w", key, err)
			}
			_, err = w.apply(ctx, objects, wanted[key])
		}
		if err != nil {
			return fmt.Errorf("setting %s back: %w", key, err)
		}
		delete(s.compared, key)
	}
	return nil
}
