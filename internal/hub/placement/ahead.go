package placement

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// patience is how long the cache may lag behind what was written; then it is believed, because somebody else may have deleted it.
const patience = 5 * time.Second

// ahead remembers the Works that were written and that the cache has not shown yet. Deciding before it has would pick twice.
type ahead struct {
	mu      sync.Mutex
	written map[types.NamespacedName]map[types.NamespacedName]note
}

type note struct {
	version string
	until   time.Time
}

func (a *ahead) note(of types.NamespacedName, work *placement.Work, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.written == nil {
		a.written = map[types.NamespacedName]map[types.NamespacedName]note{}
	}
	if a.written[of] == nil {
		a.written[of] = map[types.NamespacedName]note{}
	}
	a.written[of][client.ObjectKeyFromObject(work)] = note{version: work.ResourceVersion, until: now.Add(patience)}
}

func (a *ahead) forget(of types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.written, of)
}

// of says how long to wait at most until the cache has what was written of a placement.
func (a *ahead) of(key types.NamespacedName, cached map[string]*holding, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	notes := a.written[key]
	for _, h := range cached {
		for _, work := range h.works {
			written, known := notes[client.ObjectKeyFromObject(work)]
			if !known {
				continue
			}
			if order, err := resourceversion.CompareResourceVersion(work.ResourceVersion, written.version); err != nil || order >= 0 {
				delete(notes, client.ObjectKeyFromObject(work))
			}
		}
	}
	var wait time.Duration
	for name, n := range notes {
		if left := n.until.Sub(now); left > 0 {
			wait = max(wait, left)
		} else {
			delete(notes, name)
		}
	}
	return wait
}
