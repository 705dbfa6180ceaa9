package supervise

import (
	"context"
	"maps"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/kubeclient"
)

// Placed is the store of a watch of the metadata of one kind: the hub's objects for the member, by
// name.
type Placed struct {
	// Kind is the kind in orders and replies.
	Kind protocol.Kind
	// Report writes the reason for a missing deployment into the status of the objects, given by name
	// and generation.
	Report func(ctx context.Context, placed map[string]int64, sentence string) error
	// First signals the first object; may be nil.
	First chan<- struct{}
	// Store signals changed objects, or a new right to see them.
	kubeclient.Store[*metav1.PartialObjectMetadata]

	known chan struct{}
	once  sync.Once
	names map[string]seen
	// begun is set after the first object.
	begun bool
	// idle holds the objects that no longer need the program, in their state at the time. It outlasts
	// a break of the watch.
	idle map[string]seen
	// reported holds the last report about each object, because the program may have written the
	// status since.
	reported map[string]notice
	// fromProgram is set if the program listed the objects, unsure if they do not count until the
	// agent has listed them.
	fromProgram, unsure bool
	handover            handover
}

// seen is an object from the watch.
type seen struct {
	uid        types.UID
	generation int64
	// version is the resource version.
	version string
}

// sameSpec reports whether two versions are the same object with the same spec.
func (s seen) sameSpec(other seen) bool {
	return s.uid == other.uid && s.generation == other.generation
}

// isBehind reports whether the hub shows an older version than before, because it was restored. A
// generation starts again then.
func (s seen) isBehind(before seen) bool {
	order, err := resourceversion.CompareResourceVersion(s.version, before.version)
	return err == nil && order < 0
}

// notice is a report about one object.
type notice struct {
	uid        types.UID
	generation int64
	sentence   string
}

// NewPlaced makes an empty store.
func NewPlaced(kind protocol.Kind, changed chan struct{}) *Placed {
	p := &Placed{Kind: kind, known: make(chan struct{}), names: map[string]seen{}, reported: map[string]notice{}}
	p.handover.changed = make(chan struct{}, 1)
	p.Store = kubeclient.Store[*metav1.PartialObjectMetadata]{Changed: changed, Put: p.put, Drop: p.drop, Reset: p.reset, Strip: stripPlaced}
	return p
}

// Followed handles the result of an attempt to watch. A hub without the kind, or without the right
// to it, has placed nothing.
func (p *Placed) Followed(err error) {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		p.once.Do(func() { close(p.known) })
	}
}

// Offered reports whether the hub gives the right to see the objects.
func (p *Placed) Offered() bool { return p.IsListed() }

// Begun reports whether the store has ever had an object.
func (p *Placed) Begun() bool {
	p.Lock()
	defer p.Unlock()
	return p.begun
}

// ReportReason reports the reason for a missing deployment to all objects without the same report.
func (p *Placed) ReportReason(ctx context.Context, sentence string) error {
	p.Lock()
	fresh, notices := map[string]int64{}, map[string]notice{}
	for name, object := range p.names {
		said := notice{object.uid, object.generation, sentence}
		if p.reported[name] != said {
			fresh[name], notices[name] = object.generation, said
		}
	}
	p.Unlock()
	if len(fresh) == 0 {
		return nil
	}
	if err := p.Report(ctx, fresh, sentence); err != nil {
		return err
	}
	p.Lock()
	defer p.Unlock()
	maps.Copy(p.reported, notices)
	return nil
}

// forgetReports clears the reports, because the program writes the statuses now.
func (p *Placed) forgetReports() {
	p.Lock()
	defer p.Unlock()
	clear(p.reported)
}

// setIdle stores the objects that no longer need the program, by generation.
func (p *Placed) setIdle(generations map[string]int64) {
	p.Lock()
	defer p.Unlock()
	p.idle = map[string]seen{}
	for name, generation := range generations {
		object := p.names[name]
		object.generation = generation
		p.idle[name] = object
	}
}

// needsProgram reports whether an object needs the program.
func (p *Placed) needsProgram() bool {
	p.Lock()
	defer p.Unlock()
	for name, object := range p.names {
		if idle, rests := p.idle[name]; !rests || !idle.sameSpec(object) {
			return true
		}
	}
	return false
}

// waitListed returns true once the objects are listed, or false if ctx ends.
func (p *Placed) waitListed(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-p.known:
		return true
	}
}

// put stores an object. An update counts as a change only if the object was idle before.
func (p *Placed) put(object *metav1.PartialObjectMetadata) bool {
	now := seen{object.UID, object.Generation, object.ResourceVersion}
	_, seenBefore := p.names[object.Name]
	p.names[object.Name] = now
	if !p.begun {
		p.begun = true
		kubeclient.Notify(p.First)
	}
	idle, rests := p.idle[object.Name]
	if !rests {
		return !seenBefore
	}
	if idle.uid == "" {
		idle.uid = now.uid // the program saw the object before the agent did
	}
	if now.uid != idle.uid || now.isBehind(idle) {
		delete(p.idle, object.Name)
		return true
	}
	idle.version = now.version
	p.idle[object.Name] = idle
	return !seenBefore || !idle.sameSpec(now)
}

func (p *Placed) drop(object *metav1.PartialObjectMetadata) {
	delete(p.names, object.Name)
	delete(p.idle, object.Name)
	delete(p.reported, object.Name)
}

// reset clears the objects before a new list. Unchanged objects stay idle. Otherwise each break of
// the watch, such as a restart of the hub's API server, would start the program on every idle
// member at once.
func (p *Placed) reset() {
	clear(p.names)
	p.fromProgram, p.unsure = false, false
	p.once.Do(func() { close(p.known) })
}

func stripPlaced(o *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: o.Name, Namespace: o.Namespace, UID: o.UID, ResourceVersion: o.ResourceVersion, Generation: o.Generation,
	}}
}
