package bundle

import (
	"maps"
	"slices"
	"sync"
	"time"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/logging"
)

// store holds the BundleDeployments from the watch.
type store struct {
	kubeclient.Events[*fleet.BundleDeployment]
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
	s := &store{changed: changed, reported: reported, synced: make(chan struct{}), byName: map[string]*fleet.BundleDeployment{},
		deleted: map[string]bool{}, lost: map[string]bool{}}
	s.Events = kubeclient.Events[*fleet.BundleDeployment]{Read: reduced, Put: s.put, Drop: s.drop, List: s.replace}
	return s
}

// watchResult handles the result of an attempt to watch, with the cause if it failed. It reports
// whether a watch is established again, or failed for a cause not yet in the log.
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

// reduced drops the fields never read by the deployer.
func reduced(obj any) *fleet.BundleDeployment {
	deployment := obj.(*fleet.BundleDeployment)
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

func (s *store) drop(deployment *fleet.BundleDeployment) {
	name := deployment.Name
	s.mu.Lock()
	delete(s.byName, name)
	s.deleted[name] = true
	s.mu.Unlock()
	s.changed(name)
	s.reported(name)
}

// UpdateResourceVersion implements cache.ResourceVersionUpdater.
func (s *store) UpdateResourceVersion(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

// replace stores a list. One with an older resource version comes from a restored hub.
func (s *store) replace(list []*fleet.BundleDeployment, version string) {
	fresh := make(map[string]*fleet.BundleDeployment, len(list))
	for _, deployment := range list {
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
}
