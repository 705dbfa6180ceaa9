package bundle

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// settleTime is how long a write is believed without being seen in the cache: a deployment that was made and deleted at once is never seen.
const settleTime = 10 * time.Second

// settling remembers the deployments that were just written, until the cache has them: what is not there yet must not be written again.
type settling struct {
	mu     sync.Mutex
	writes map[types.NamespacedName]write
}

// write is what the server answered.
type write struct {
	version, deploymentID string
	at                    time.Time
}

func (s *settling) store(d *fleet.BundleDeployment, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writes == nil {
		s.writes = map[types.NamespacedName]write{}
	}
	s.writes[keyOf(d)] = write{version: d.ResourceVersion, deploymentID: d.Spec.DeploymentID, at: now}
}

func (s *settling) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.writes, key)
}

// find returns the write that the cache, which has this of the deployment or nothing, does not show yet.
func (s *settling) find(key types.NamespacedName, cached *fleet.BundleDeployment, now time.Time) (write, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, known := s.writes[key]
	if !known {
		return write{}, false
	}
	seen := false
	if cached != nil {
		order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, w.version)
		seen = err != nil || order >= 0
	}
	if seen || now.Sub(w.at) >= settleTime {
		delete(s.writes, key)
		return write{}, false
	}
	return w, true
}

func keyOf(d *fleet.BundleDeployment) types.NamespacedName {
	return types.NamespacedName{Namespace: d.Namespace, Name: d.Name}
}
