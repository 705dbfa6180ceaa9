package deployer

import (
	"context"
	"maps"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Placed is the store that a watch of the metadata of one kind keeps up to date: the names of what is placed on the member.
type Placed struct {
	// Kind is what the program calls it.
	Kind Kind
	// Report tells those that are placed why nothing comes of them. It gets their generations by name.
	Report func(ctx context.Context, placed map[string]int64, sentence string) error
	// Changed tells that there are others than before, or that the hub lets the member see them now; its buffer is 1.
	Changed chan struct{}

	known chan struct{}
	once  sync.Once
	mu    sync.Mutex
	names map[string]int64
	// rested are the generations of those that the program has said need nothing more.
	rested map[string]int64
	// told is what those that are placed were told last, and in which generation, since somebody else may have written there.
	told map[string]telling
	// listed says that the hub has let the member see them.
	listed bool
}

// telling is what one was told.
type telling struct {
	generation int64
	sentence   string
}

// NewPlaced makes an empty store.
func NewPlaced(kind Kind, changed chan struct{}) *Placed {
	return &Placed{Kind: kind, Changed: changed, known: make(chan struct{}), names: map[string]int64{}, told: map[string]telling{}}
}

// Followed takes note of how an attempt to watch ended. A hub that serves no such kind, or gives no right to it, has placed nothing.
func (p *Placed) Followed(err error) {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		p.once.Do(func() { close(p.known) })
	}
}

// Offered says whether the hub lets the member see them.
func (p *Placed) Offered() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listed
}

// Placed are the generations of all by name.
func (p *Placed) Placed() map[string]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.names)
}

// Tell tells those that are placed why nothing comes of them, unless they were told just that.
func (p *Placed) Tell(ctx context.Context, sentence string) error {
	p.mu.Lock()
	fresh := map[string]int64{}
	for name, generation := range p.names {
		if p.told[name] != (telling{generation, sentence}) {
			fresh[name] = generation
		}
	}
	p.mu.Unlock()
	if len(fresh) == 0 {
		return nil
	}
	if err := p.Report(ctx, fresh, sentence); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, generation := range fresh {
		p.told[name] = telling{generation, sentence}
	}
	return nil
}

// untold has all of them told again: somebody else may write there now.
func (p *Placed) untold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.told)
}

// rest takes note of what needs nothing more in the generation given.
func (p *Placed) rest(generations map[string]int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rested = generations
}

// wanted says whether anything is placed that does not rest.
func (p *Placed) wanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, generation := range p.names {
		if rested, rests := p.rested[name]; !rests || rested != generation {
			return true
		}
	}
	return false
}

// await returns when it is known what is placed, or false when ctx ends.
func (p *Placed) await(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-p.known:
		return true
	}
}

func (p *Placed) change(change func()) error {
	p.mu.Lock()
	change()
	p.mu.Unlock()
	select {
	case p.Changed <- struct{}{}:
	default:
	}
	return nil
}

func (p *Placed) put(obj any) {
	metadata := obj.(*metav1.PartialObjectMetadata)
	p.names[metadata.Name] = metadata.Generation
}

// Transformer implements cache.TransformingStore.
func (*Placed) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if whole, ok := obj.(*metav1.PartialObjectMetadata); ok {
			return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Name: whole.Name, Namespace: whole.Namespace, UID: whole.UID, ResourceVersion: whole.ResourceVersion, Generation: whole.Generation,
			}}, nil
		}
		return obj, nil
	}
}

// Add implements cache.ReflectorStore.
func (p *Placed) Add(obj any) error { return p.change(func() { p.put(obj) }) }

// Update implements cache.ReflectorStore.
func (p *Placed) Update(obj any) error {
	metadata := obj.(*metav1.PartialObjectMetadata)
	p.mu.Lock()
	rested := p.rested[metadata.Name]
	p.put(obj)
	p.mu.Unlock()
	if rested == 0 || rested == metadata.Generation {
		return nil
	}
	return p.change(func() {})
}

// Delete implements cache.ReflectorStore.
func (p *Placed) Delete(obj any) error {
	name := obj.(*metav1.PartialObjectMetadata).Name
	return p.change(func() {
		delete(p.names, name)
		delete(p.rested, name)
		delete(p.told, name)
	})
}

// Replace implements cache.ReflectorStore.
func (p *Placed) Replace(list []any, _ string) error {
	defer p.once.Do(func() { close(p.known) })
	return p.change(func() {
		p.listed, p.rested, p.names = true, nil, make(map[string]int64, len(list))
		for _, obj := range list {
			p.put(obj)
		}
	})
}

// Resync implements cache.ReflectorStore.
func (*Placed) Resync() error { return nil }
