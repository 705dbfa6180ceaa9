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

// Placed is the store of a watch of the metadata of one kind: the objects that the hub placed on the member, by name.
type Placed struct {
	// Kind is the kind in orders and replies.
	Kind protocol.Kind
	// Report writes into the status of the objects, given by name and generation, why they are not deployed.
	Report func(ctx context.Context, placed map[string]int64, sentence string) error
	// First is signalled with the first object; nil if nothing waits for that.
	First chan<- struct{}
	// Store signals that the objects changed, or that the hub gives the right to see them now.
	kubeclient.Store[*metav1.PartialObjectMetadata]

	known chan struct{}
	once  sync.Once
	names map[string]seen
	// begun says that there has been an object.
	begun bool
	// idle are the objects that need nothing more from the program, as they were then. It outlasts
	// a break of the watch.
	idle map[string]seen
	// reported is what was reported last of each object: the program may have written the status
	// since.
	reported map[string]notice
	// fromProgram says that the objects were listed by the program, unsure that they do not count
	// before the agent has listed them.
	fromProgram, unsure bool
	handover            handover
}

// seen is an object as the watch showed it.
type seen struct {
	uid        types.UID
	generation int64
	// version is the resource version.
	version string
}

// sameSpec says whether two objects are one, with the same spec.
func (s seen) sameSpec(other seen) bool {
	return s.uid == other.uid && s.generation == other.generation
}

// isBehind says whether the hub shows an older version than before, because it was restored: a
// generation counts anew from there.
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

// Followed takes the result of an attempt to watch. A hub that does not serve the kind, or gives no right to it, has placed nothing.
func (p *Placed) Followed(err error) {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		p.once.Do(func() { close(p.known) })
	}
}

// Offered says whether the hub gives the right to see the objects.
func (p *Placed) Offered() bool { return p.IsListed() }

// Begun says whether there has been an object since the store was made.
func (p *Placed) Begun() bool {
	p.Lock()
	defer p.Unlock()
	return p.begun
}

// ReportReason reports why the objects are not deployed, where that was not reported before.
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

// forgetReports has everything reported again, because the program writes the statuses now.
func (p *Placed) forgetReports() {
	p.Lock()
	defer p.Unlock()
	clear(p.reported)
}

// setIdle stores which objects need nothing more, by generation.
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

// needsProgram says whether an object needs the program.
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

// waitListed returns true when the objects are listed, or false when ctx ends.
func (p *Placed) waitListed(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-p.known:
		return true
	}
}

// put stores an object. An update is a change only if the object was idle before it.
func (p *Placed) put(object *metav1.PartialObjectMetadata) bool {
	now := seen{object.UID, object.Generation, object.ResourceVersion}
	_, known := p.names[object.Name]
	p.names[object.Name] = now
	if !p.begun {
		p.begun = true
		kubeclient.Notify(p.First)
	}
	idle, rests := p.idle[object.Name]
	if !rests {
		return !known
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
	return !known || !idle.sameSpec(now)
}

func (p *Placed) drop(object *metav1.PartialObjectMetadata) {
	delete(p.names, object.Name)
	delete(p.idle, object.Name)
	delete(p.reported, object.Name)
}

// reset forgets what is there, because all of it is listed anew. What comes back as it was is idle
// still: otherwise each break of the watch, such as a restart of the hub's API server, would start
// the program on every idle member at once.
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
