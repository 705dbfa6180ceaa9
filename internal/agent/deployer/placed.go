package deployer

import (
	"context"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Placed is the store that a watch of the metadata of BundleDeployments keeps up to date: their names.
type Placed struct {
	// Changed tells that there are others than before; its buffer is 1.
	Changed chan struct{}

	listed chan struct{}
	once   sync.Once
	mu     sync.Mutex
	names  map[string]bool
}

// NewPlaced makes an empty store.
func NewPlaced() *Placed {
	return &Placed{Changed: make(chan struct{}, 1), listed: make(chan struct{}), names: map[string]bool{}}
}

// Count is how many there are.
func (p *Placed) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.names)
}

// Names are those of all.
func (p *Placed) Names() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.names))
}

// await returns when they have been listed, or false when ctx ends.
func (p *Placed) await(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-p.listed:
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

func name(obj any) string { return obj.(*metav1.PartialObjectMetadata).Name }

// Transformer implements cache.TransformingStore.
func (*Placed) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if whole, ok := obj.(*metav1.PartialObjectMetadata); ok {
			return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Name: whole.Name, Namespace: whole.Namespace, UID: whole.UID, ResourceVersion: whole.ResourceVersion,
			}}, nil
		}
		return obj, nil
	}
}

// Add implements cache.ReflectorStore.
func (p *Placed) Add(obj any) error { return p.change(func() { p.names[name(obj)] = true }) }

// Update implements cache.ReflectorStore.
func (*Placed) Update(any) error { return nil }

// Delete implements cache.ReflectorStore.
func (p *Placed) Delete(obj any) error { return p.change(func() { delete(p.names, name(obj)) }) }

// Replace implements cache.ReflectorStore.
func (p *Placed) Replace(list []any, _ string) error {
	defer p.once.Do(func() { close(p.listed) })
	return p.change(func() {
		p.names = make(map[string]bool, len(list))
		for _, obj := range list {
			p.names[name(obj)] = true
		}
	})
}

// Resync implements cache.ReflectorStore.
func (*Placed) Resync() error { return nil }
