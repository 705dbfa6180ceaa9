package drift

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/readiness"
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

// Set is the objects of a release, with the result of the last comparison of each. A set is used by one goroutine at a time.
type Set struct {
	release release.Summary
	keys    []Key
	results map[Key]result
	// noted are the stamps of the objects that earlier comparisons found unmodified.
	noted map[Key]uint64
	// diff is what the comparisons left out, as JSON; empty before the first.
	diff string
	// former are objects of earlier revisions that are still there.
	former []Key
}

// result is the result of a comparison; modified is nil if nothing was changed.
type result struct {
	summary
	modified *fleet.ModifiedStatus
	// agents: the object is of the release that this agent runs by, which no other Bundle gets.
	agents bool
}

// outdated says whether an object has to be compared again. A user who changes a field by hand owns
// it from then on, so the field digest does not change when the user changes it again, or back.
func (r result) outdated(is summary) bool {
	return r.fields != is.fields || r.modified != nil && r.content != is.content
}

// NewSet makes the set of the objects of a release; their manifests are not kept.
func (d *Detector) NewSet(s release.Summary, objects []*unstructured.Unstructured) (*Set, error) {
	set := &Set{release: s, results: map[Key]result{}}
	for _, object := range objects {
		key, err := d.keyOf(s, object)
		if err != nil {
			return nil, err
		}
		if key.Name != "" {
			// An object that the API server named cannot be found again by its manifest.
			set.keys = append(set.keys, key)
		}
	}
	return set, nil
}

// keyOf returns the key of a manifest of a release.
func (d *Detector) keyOf(s release.Summary, object *unstructured.Unstructured) (Key, error) {
	gvk := object.GroupVersionKind()
	mapping, err := d.cluster.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return Key{}, fmt.Errorf("looking up %s: %w", gvk, err)
	}
	key := Key{Kind: gvk, Resource: mapping.Resource.Resource, Name: object.GetName()}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if key.Namespace = object.GetNamespace(); key.Namespace == "" {
			key.Namespace = s.Namespace
		}
	}
	return key, nil
}

// Keys are the objects of the release, with the former ones that are still there; none of a nil set.
func (s *Set) Keys() []Key {
	if s == nil {
		return nil
	}
	return slices.Concat(s.keys, s.former)
}

// Observation is how the objects of a release are.
type Observation struct {
	// Unsynced says which kind is not listed yet, and why if that is known; empty if all are.
	Unsynced  string
	NonReady  []fleet.NonReadyStatus
	Modified  []fleet.ModifiedStatus
	Resources []fleet.DeployedResource
	// Changed is how many objects were changed or deleted downstream; Modified names the first of them. Correctable is how many of these can be
	// set back: no object of another release and no former one.
	Changed, Correctable int
	Counts               fleet.ResourceCounts
}

// Observe says how the objects of a release are, by their summaries and by a comparison of those
// whose field digest changed, or that were never found unmodified as they are.
func (d *Detector) Observe(ctx context.Context, s *Set, options fleet.BundleDeploymentOptions) (Observation, error) {
	o := Observation{Counts: fleet.ResourceCounts{DesiredReady: len(s.keys)}}
	if err := s.leaveOut(options.Diff); err != nil {
		return o, err
	}
	watched := make(map[Key]summary, len(s.keys))
	var stale []Key
	for _, key := range s.keys {
		is, sight := d.watcher.Get(key.query(), key.name(), "")
		if sight == applied.Unsure {
			o.Unsynced = fmt.Sprintf("listing %s of %s", key.Kind.Kind, key.Kind.GroupVersion())
			if err := d.watcher.Failure(key.query()); err != nil {
				o.Unsynced += ": " + err.Error()
			}
			return o, nil
		}
		if _, compared := s.results[key]; !compared && sight == applied.Present && s.isNoted(key, is) {
			s.results[key] = result{summary: is}
		}
		if known, ok := s.results[key]; sight == applied.Absent || !ok || known.outdated(is) {
			stale = append(stale, key)
		}
		if sight == applied.Present {
			watched[key] = is
		}
	}
	if err := d.compareAll(ctx, s, stale, options.Diff); err != nil {
		return o, err
	}
	for _, key := range s.keys {
		found := s.results[key]
		if is, ok := watched[key]; ok {
			found.summary = is
		}
		if err := d.count(ctx, s, &o, key, found, options); err != nil {
			return o, err
		}
	}
	return o, d.countFormer(ctx, s, &o)
}

// note counts an object that is not as it was deployed.
func (o *Observation) note(found result, options fleet.BundleDeploymentOptions) {
	o.Changed++
	if found.correctable(options) {
		o.Correctable++
	}
	if len(o.Modified) < maxNamed {
		o.Modified = append(o.Modified, *found.modified)
	}
}

// correctable says whether an object may be set back. An object of another release may be if the options take ownership.
func (r result) correctable(options fleet.BundleDeploymentOptions) bool {
	return !r.modified.Delete && !r.agents && (!r.modified.Exist || options.Helm != nil && options.Helm.TakeOwnership)
}

// count adds an object to an observation.
func (d *Detector) count(ctx context.Context, s *Set, o *Observation, key Key, found result, options fleet.BundleDeploymentOptions) error {
	is, modified, ignore := found.summary, found.modified, options.IgnoreOptions
	if modified == nil && is.uid == "" {
		o.Counts.DesiredReady-- // missing, which the options allow
		return nil
	}
	if modified != nil {
		o.note(found, options)
	}
	if modified != nil && modified.Create {
		o.Counts.Missing++
		return nil
	}
	if len(o.Resources) < maxListed {
		o.Resources = append(o.Resources, fleet.DeployedResource{
			Kind: key.Kind.Kind, APIVersion: key.Kind.GroupVersion().String(), Namespace: key.Namespace, Name: key.Name,
			CreatedAt: is.created.UTC().Format(time.RFC3339),
		})
	}
	if !is.readiness.OK() && ignore != nil && len(ignore.Conditions) > 0 {
		var err error
		if is.readiness, err = d.readinessWithout(ctx, s, key, ignore.Conditions); err != nil {
			return err
		}
	}
	switch {
	case !is.readiness.OK():
		o.Counts.NotReady++
		if len(o.NonReady) < maxNamed {
			o.NonReady = append(o.NonReady, nonReady(key, is))
		}
	case modified != nil:
		o.Counts.Modified++
	default:
		o.Counts.Ready++
	}
	return nil
}

func nonReady(key Key, is summary) fleet.NonReadyStatus {
	n := fleet.NonReadyStatus{
		UID: is.uid, Kind: key.Kind.Kind, APIVersion: key.Kind.GroupVersion().String(), Namespace: key.Namespace, Name: key.Name,
		Summary: fleet.ReadinessSummary{
			State: string(is.readiness.State), Error: is.readiness.State == readiness.Failed,
			Transitioning: is.readiness.State == readiness.Progressing || is.readiness.State == readiness.Terminating,
		},
	}
	if is.readiness.Message != "" {
		n.Summary.Message = []string{is.readiness.Message}
	}
	return n
}

// readinessWithout is the readiness of an object without the conditions that the options ignore.
func (d *Detector) readinessWithout(ctx context.Context, s *Set, key Key, ignored []map[string]string) (readiness.Result, error) {
	objects, err := d.client(s.release, key)
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

// compareAll compares some objects of a release with their manifests.
func (d *Detector) compareAll(ctx context.Context, s *Set, keys []Key, diff *fleet.DiffOptions) error {
	if len(keys) == 0 {
		return nil
	}
	manifests, err := d.manifests(ctx, s, keys)
	if err != nil {
		return err
	}
	var (
		mu      sync.Mutex
		failure error
	)
	workqueue.ParallelizeUntil(ctx, comparing, len(keys), func(i int) {
		result, err := d.compare(ctx, s, keys[i], manifests[keys[i]], diff)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failure = err
			return
		}
		s.results[keys[i]] = result
	})
	return cmp.Or(failure, ctx.Err())
}

// manifests are the manifests of some objects, as Helm applied them.
func (d *Detector) manifests(ctx context.Context, s *Set, keys []Key) (map[Key]*unstructured.Unstructured, error) {
	objects, err := d.cluster.Objects(ctx, s.release)
	if err != nil {
		return nil, err
	}
	asked := make(map[Key]bool, len(keys))
	for _, key := range keys {
		asked[key] = true
	}
	manifests := make(map[Key]*unstructured.Unstructured, len(keys))
	for _, object := range objects {
		key, err := d.keyOf(s.release, object)
		if err != nil {
			return nil, err
		}
		if !asked[key] {
			continue
		}
		object.SetNamespace(key.Namespace)
		release.Mark(object, s.release.ID())
		manifests[key] = object
	}
	return manifests, nil
}

// Correct sets back the objects that were changed. With force, an object is replaced of which a
// field cannot be changed.
func (d *Detector) Correct(ctx context.Context, s *Set, options fleet.BundleDeploymentOptions, force bool) error {
	var keys []Key
	for _, key := range s.keys {
		if found := s.results[key]; found.modified != nil && found.correctable(options) {
			keys = append(keys, key)
		}
	}
	manifests, err := d.manifests(ctx, s, keys)
	if err != nil {
		return err
	}
	for _, key := range keys {
		objects, err := d.client(s.release, key)
		if err != nil {
			return err
		}
		_, err = release.Apply(ctx, objects, manifests[key])
		if err != nil && force {
			err = replace(ctx, s.release, objects, manifests[key], err)
		}
		if err != nil {
			return fmt.Errorf("setting %s back: %w", key, err)
		}
		delete(s.results, key)
		delete(s.noted, key) // what is set back is compared again
	}
	return nil
}

// replace deletes an object that cannot be set back, and creates it as it should be.
func replace(ctx context.Context, of release.Summary, objects dynamic.ResourceInterface, manifest *unstructured.Unstructured, refused error) error {
	replacement, err := release.CheckReplace(ctx, objects, of, manifest, refused)
	if err != nil {
		return err
	}
	if err := replacement.MakeWay(ctx, objects); err != nil {
		return err
	}
	_, err = release.Apply(ctx, objects, manifest)
	return err
}
