package bundle

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/logging"
)

// store holds the BundleDeployments from the watch.
type store struct {
	// changed is called after a change of a specification, reported after a possible change of a
	// status.
	changed, reported func(name string)

	mu     sync.Mutex
	synced chan struct{}
	once   sync.Once
	byName map[string]*fleet.BundleDeployment
	// version is the last resource version of the hub.
	version string
	// interrupted is set while no watch is established; watchedSince is the start of the current
	// watch.
	interrupted  bool
	watchedSince time.Time
	outage       logging.Outage
	// deleted are the BundleDeployments with a watched deletion since the last interruption, lost the
	// ones unknown to a restored hub.
	deleted, lost map[string]bool
}

// missing describes how a BundleDeployment went missing.
type missing struct {
	// watched is set if the watch saw the deletion, without an interruption since, and other
	// BundleDeployments exist.
	watched bool
	// restored is set if the hub was restored from an earlier state without the BundleDeployment.
	restored bool
	// watchedSince is the start of the current watch.
	watchedSince time.Time
}

func newStore(changed, reported func(string)) *store {
	return &store{changed: changed, reported: reported, synced: make(chan struct{}), byName: map[string]*fleet.BundleDeployment{},
		deleted: map[string]bool{}, lost: map[string]bool{}}
}

// watchResult handles the result of an attempt to watch, with the cause if it failed. It reports
// whether a watch is established again, or failed for a cause that the log does not name yet.
func (s *store) watchResult(cause string, now time.Time) (resumed, news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cause != "" {
		s.interrupted = true
		clear(s.deleted)
		return false, s.outage.IsNews(cause)
	}
	s.outage.End()
	resumed, s.interrupted = s.interrupted || s.watchedSince.IsZero(), false
	if resumed {
		s.watchedSince = now
	}
	return resumed, false
}

func (s *store) missing(name string) missing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return missing{watched: s.deleted[name] && len(s.byName) > 0, restored: s.lost[name], watchedSince: s.watchedSince}
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

// Transformer implements cache.TransformingStore. A reflector calls it only for the objects of a
// watch-list. Update and Replace reduce the objects of lists and events themselves.
func (*store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if deployment, ok := obj.(*fleet.BundleDeployment); ok {
			return reduced(deployment), nil
		}
		return obj, nil
	}
}

// reduced drops the fields that the deployer never reads.
func reduced(deployment *fleet.BundleDeployment) *fleet.BundleDeployment {
	deployment.ManagedFields = nil
	deployment.Spec.StagedOptions = fleet.BundleDeploymentOptions{}
	return deployment
}

func (s *store) put(deployment *fleet.BundleDeployment) {
	s.mu.Lock()
	old := s.byName[deployment.Name]
	s.byName[deployment.Name] = deployment
	delete(s.deleted, deployment.Name)
	delete(s.lost, deployment.Name)
	s.mu.Unlock()
	s.notify(old, deployment)
}

func (s *store) notify(old, fresh *fleet.BundleDeployment) {
	if old == nil || old.UID != fresh.UID || old.Generation != fresh.Generation ||
		(old.DeletionTimestamp == nil) != (fresh.DeletionTimestamp == nil) ||
		!maps.Equal(old.Labels, fresh.Labels) {
		s.changed(fresh.Name)
	}
	s.reported(fresh.Name)
}

// Add implements cache.ReflectorStore.
func (s *store) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s *store) Update(obj any) error {
	s.put(reduced(obj.(*fleet.BundleDeployment)))
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *store) Delete(obj any) error {
	name := obj.(*fleet.BundleDeployment).Name
	s.mu.Lock()
	delete(s.byName, name)
	s.deleted[name] = true
	s.mu.Unlock()
	s.changed(name)
	s.reported(name)
	return nil
}

// UpdateResourceVersion implements cache.ResourceVersionUpdater.
func (s *store) UpdateResourceVersion(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

// Replace implements cache.ReflectorStore. A list with an older resource version comes from a
// restored hub.
func (s *store) Replace(list []any, version string) error {
	fresh := make(map[string]*fleet.BundleDeployment, len(list))
	for _, obj := range list {
		deployment := reduced(obj.(*fleet.BundleDeployment))
		fresh[deployment.Name] = deployment
	}
	s.mu.Lock()
	old, restored := s.byName, applied.Older(version, s.version)
	s.byName, s.version = fresh, version
	clear(s.deleted)
	for name := range fresh {
		delete(s.lost, name)
	}
	for name := range old {
		if fresh[name] == nil && restored {
			s.lost[name] = true
		}
	}
	s.mu.Unlock()
	for name, deployment := range fresh {
		s.notify(old[name], deployment)
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
