// Package drift observes whether the objects of a release exist, are ready and as deployed, and
// reverts drift.
//
// It writes objects only to revert drift. Its invariant: it compares an object by requests only if
// a deployed field may have changed since the last comparison.
package drift

import (
	"cmp"
	"context"
	"encoding/binary"
	"hash/fnv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-fleet/muster/internal/delivery/manifest"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/readiness"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/kube"
)

// Key is an object of a release.
type Key struct {
	Kind                      schema.GroupVersionKind
	Resource, Namespace, Name string
}

// String formats the object for messages.
func (k Key) String() string { return kube.Name(k.Kind.Kind, k.Namespace, k.Name) }

// query returns the watch of the kind of the object.
func (k Key) query() applied.Query {
	return applied.Query{GroupVersionResource: k.Kind.GroupVersion().WithResource(k.Resource)}
}

// name returns the namespace and name of the object.
func (k Key) name() types.NamespacedName {
	return types.NamespacedName{Namespace: k.Namespace, Name: k.Name}
}

// Object returns the query for the object.
func (k Key) Object() applied.Query {
	return applied.Query{GroupVersionResource: k.query().GroupVersionResource, NamespacedName: k.name()}
}

// Detector watches the objects of releases and compares changed ones.
type Detector struct {
	cluster *release.Cluster
	watcher applied.Watcher[summary]

	mu sync.Mutex
	// ends has the ended Jobs since the last observation.
	ends map[applied.Query]summary
}

// New makes a detector without objects. It calls changed with each changed object, and listed with
// the users of newly listed kinds. Neither may block.
func New(cluster *release.Cluster, changed func(object applied.Query), listed func(users []string)) *Detector {
	d := &Detector{cluster: cluster}
	d.watcher.Objects, d.watcher.Label, d.watcher.Summarize, d.watcher.Listed = cluster.Dynamic, release.LabelSet, summarize, listed
	d.watcher.Changed = func(object applied.Query, before, after *summary) {
		d.keepEnd(object, cmp.Or(after, before))
		if before == nil || after == nil || !before.same(*after) {
			changed(object)
		}
	}
	return d
}

// Run watches until ctx ends.
func (d *Detector) Run(ctx context.Context) error { return d.watcher.Run(ctx) }

// Use watches the kinds of a release for a user, instead of the user's previous ones; a nil set
// watches none.
func (d *Detector) Use(user string, s *Set) {
	queries := map[applied.Query]bool{}
	for _, key := range s.Keys() {
		queries[key.query()] = true
	}
	d.watcher.Use(user, queries)
}

// summary is the stored part of a watched object.
type summary struct {
	uid     types.UID
	created time.Time
	// fields is the field digest, content the digest of everything except the status.
	fields, content uint64
	readiness       readiness.Result
	// ended is the end of a Job; empty for a running Job.
	ended string
	// replicas is the number in the spec, or manifest.NoReplicas.
	replicas int64
}

func (s summary) same(other summary) bool {
	s.created, other.created = time.Time{}, time.Time{}
	return s == other
}

func summarize(object *unstructured.Unstructured) summary {
	return summary{
		uid: object.GetUID(), created: object.GetCreationTimestamp().Time,
		fields: fieldDigest(object), content: applied.ContentDigest(object), readiness: readiness.Of(object),
		ended:    applied.EndOf(object),
		replicas: manifest.Replicas(object),
	}
}

// fieldDigest returns a digest of the owning release and the deployed fields of an object. Upstream
// agents do not use server-side apply, so each write to their objects changes the digest.
func fieldDigest(object *unstructured.Unstructured) uint64 {
	digest := fnv.New64a()
	digest.Write([]byte(object.GetUID()))
	digest.Write([]byte(release.NameOf(object)))
	if object.GetDeletionTimestamp() != nil {
		digest.Write([]byte("deleting"))
	}
	if owned := applied.FieldDigest(object, release.FieldManager); owned != 0 {
		digest.Write(binary.BigEndian.AppendUint64(nil, owned))
		return digest.Sum64()
	}
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource != "" {
			continue
		}
		digest.Write([]byte(entry.Manager))
		if entry.Time != nil {
			digest.Write(binary.BigEndian.AppendUint64(nil, uint64(entry.Time.Unix()))) //nolint:gosec // any bits do
		}
	}
	return digest.Sum64()
}
