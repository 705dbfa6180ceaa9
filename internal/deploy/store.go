package deploy

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/client-go/tools/cache"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// store is the copy of the member's BundleDeployments that a watch keeps up to date.
type store struct {
	// changed is told of one whose specification changed, reported of one whose status did.
	changed, reported func(name string)

	mu     sync.Mutex
	synced chan struct{}
	once   sync.Once
	byName map[string]*fleet.BundleDeployment
}

func newStore(changed, reported func(string)) *store {
	return &store{changed: changed, reported: reported, synced: make(chan struct{}), byName: map[string]*fleet.BundleDeployment{}}
}

func (s *store) get(name string) *fleet.BundleDeployment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byName[name]
}

func (s *store) all() []*fleet.BundleDeployment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.byName))
}

// Transformer implements cache.TransformingStore.
func (*store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if deployment, ok := obj.(*fleet.BundleDeployment); ok {
			deployment.ManagedFields = nil
			deployment.Spec.StagedOptions = fleet.BundleDeploymentOptions{}
		}
		return obj, nil
	}
}

func (s *store) put(deployment *fleet.BundleDeployment) {
	s.mu.Lock()
	old := s.byName[deployment.Name]
	s.byName[deployment.Name] = deployment
	s.mu.Unlock()
	s.tell(old, deployment)
}

func (s *store) tell(old, fresh *fleet.BundleDeployment) {
	if old == nil || old.UID != fresh.UID || old.Generation != fresh.Generation || (old.DeletionTimestamp == nil) != (fresh.DeletionTimestamp == nil) ||
		!maps.Equal(old.Labels, fresh.Labels) {
		s.changed(fresh.Name)
	}
	s.reported(fresh.Name)
}

// Add implements cache.ReflectorStore.
func (s *store) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s *store) Update(obj any) error {
	s.put(obj.(*fleet.BundleDeployment))
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *store) Delete(obj any) error {
	name := obj.(*fleet.BundleDeployment).Name
	s.mu.Lock()
	delete(s.byName, name)
	s.mu.Unlock()
	s.changed(name)
	s.reported(name)
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *store) Replace(list []any, _ string) error {
	fresh := make(map[string]*fleet.BundleDeployment, len(list))
	for _, obj := range list {
		deployment := obj.(*fleet.BundleDeployment)
		fresh[deployment.Name] = deployment
	}
	s.mu.Lock()
	old := s.byName
	s.byName = fresh
	s.mu.Unlock()
	for name, deployment := range fresh {
		s.tell(old[name], deployment)
	}
	for name := range old {
		if fresh[name] == nil {
			s.changed(name)
			s.reported(name)
		}
	}
	s.once.Do(func() { close(s.synced) })
	return nil
}

// Resync implements cache.ReflectorStore.
func (*store) Resync() error { return nil }
