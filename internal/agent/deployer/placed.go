package deployer

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/kubeclient"
)

// Placed is the store of a watch of the metadata of one kind: the objects that the hub placed on the member, by name.
type Placed struct {
	// Kind is the kind in orders and replies.
	Kind Kind
	// Report writes into the status of the objects, given by name and generation, why they are not deployed.
	Report func(ctx context.Context, placed map[string]int64, sentence string) error
	// Store signals that the objects changed, or that the hub gives the right to see them now.
	kubeclient.Store[*metav1.PartialObjectMetadata]

	known chan struct{}
	once  sync.Once
	names map[string]int64
	// idle are the generations of objects that need nothing more from the program.
	idle map[string]int64
	// reported is what was reported last of each object, with the generation: the program may have written the status since.
	reported map[string]notice
}

// notice is a report about one object.
type notice struct {
	generation int64
	sentence   string
}

// NewPlaced makes an empty store.
func NewPlaced(kind Kind, changed chan struct{}) *Placed {
	p := &Placed{Kind: kind, known: make(chan struct{}), names: map[string]int64{}, reported: map[string]notice{}}
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

// ReportReason reports why the objects are not deployed, where that was not reported before.
func (p *Placed) ReportReason(ctx context.Context, sentence string) error {
	p.Lock()
	fresh := map[string]int64{}
	for name, generation := range p.names {
		if p.reported[name] != (notice{generation, sentence}) {
			fresh[name] = generation
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
	for name, generation := range fresh {
		p.reported[name] = notice{generation, sentence}
	}
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
	p.idle = generations
}

// needsProgram says whether an object needs the program.
func (p *Placed) needsProgram() bool {
	p.Lock()
	defer p.Unlock()
	for name, generation := range p.names {
		if idle, rests := p.idle[name]; !rests || idle != generation {
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
	_, known := p.names[object.Name]
	idle := p.idle[object.Name]
	p.names[object.Name] = object.Generation
	return !known || idle != 0 && idle != object.Generation
}

func (p *Placed) drop(object *metav1.PartialObjectMetadata) {
	delete(p.names, object.Name)
	delete(p.idle, object.Name)
	delete(p.reported, object.Name)
}

func (p *Placed) reset() {
	p.idle = nil
	clear(p.names)
	p.once.Do(func() { close(p.known) })
}

func stripPlaced(o *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: o.Name, Namespace: o.Namespace, UID: o.UID, ResourceVersion: o.ResourceVersion, Generation: o.Generation,
	}}
}
