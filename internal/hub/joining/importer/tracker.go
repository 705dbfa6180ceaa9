package importer

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

const (
	// perWorkspace bounds the hub's concurrent connections to clusters of a workspace. It is a small
	// part of the workers, so the unresponsive servers of one workspace delay no other.
	perWorkspace = workers / 8
	// stagger separates the starts of re-imports: a change of the hub's settings must not restart all
	// agents at once.
	stagger = 500 * time.Millisecond
)

// tracker is the hub's memory of imports in this process: one entry per Cluster, for the life of
// the Cluster.
type tracker struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]*entry
	// claims maps the ID of a cluster, in a workspace, to its Cluster.
	claims map[types.NamespacedName]types.NamespacedName
	// lastStart is the start of the last scheduled re-import.
	lastStart time.Time
	// connections counts the Clusters of a workspace with a connection; queues holds the waiting ones,
	// in order.
	connections map[string]int
	queues      map[string][]types.NamespacedName
	// free yields the next Cluster to connect.
	free chan event.GenericEvent
}

type entry struct {
	uid types.UID
	// history belongs to the single reconcile of the Cluster; the tracker's lock guards the rest.
	history history
	// clusterID is the ID found by the import. Two concurrent imports of one cluster see each other
	// only here.
	clusterID string
	// connected: the Cluster holds a connection, or was enqueued to take one.
	connected bool
}

func newTracker() *tracker {
	return &tracker{entries: map[types.NamespacedName]*entry{}, claims: map[types.NamespacedName]types.NamespacedName{},
		connections: map[string]int{}, queues: map[string][]types.NamespacedName{},
		free: make(chan event.GenericEvent, workers)}
}

func (t *tracker) entry(key types.NamespacedName) *entry {
	if t.entries[key] == nil {
		t.entries[key] = &entry{}
	}
	return t.entries[key]
}

// history returns the memory of a Cluster for its reconcile to read and change.
func (t *tracker) history(cluster *fleet.Cluster) *history {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entry(client.ObjectKeyFromObject(cluster))
	if e.uid != cluster.UID {
		t.dropClaim(client.ObjectKeyFromObject(cluster))
		e.uid, e.history = cluster.UID, history{}
	}
	return &e.history
}

// forget drops a deleted Cluster, or one without an import.
func (t *tracker) forget(ctx context.Context, key types.NamespacedName) {
	t.release(ctx, key)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropClaim(key)
	delete(t.entries, key)
}

// nextStart schedules a re-import.
func (t *tracker) nextStart(now time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lastStart = t.lastStart.Add(stagger); t.lastStart.Before(now) {
		t.lastStart = now
	}
	return t.lastStart
}

// claim assigns the cluster with this ID to a Cluster, unless another Cluster of the workspace has
// it, and returns the holder. Any server can give any ID, so an ID means nothing in another
// workspace.
func (t *tracker) claim(key types.NamespacedName, id string) types.NamespacedName {
	t.mu.Lock()
	defer t.mu.Unlock()
	cluster := types.NamespacedName{Namespace: key.Namespace, Name: id}
	if holder, claimed := t.claims[cluster]; claimed {
		return holder
	}
	t.dropClaim(key)
	t.claims[cluster], t.entry(key).clusterID = key, id
	return key
}

func (t *tracker) unclaim(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropClaim(key)
}

func (t *tracker) dropClaim(key types.NamespacedName) {
	if e := t.entries[key]; e != nil && e.clusterID != "" {
		delete(t.claims, types.NamespacedName{Namespace: key.Namespace, Name: e.clusterID})
		e.clusterID = ""
	}
}

// acquire takes a connection of the workspace. If none is free, the tracker enqueues the Cluster
// once one is.
func (t *tracker) acquire(key types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, workspace := t.entry(key), key.Namespace
	if !e.connected && t.connections[workspace] < perWorkspace {
		e.connected = true
		t.connections[workspace]++
	}
	if !e.connected && !slices.Contains(t.queues[workspace], key) {
		t.queues[workspace] = append(t.queues[workspace], key)
	}
	return e.connected
}

// release ends every reconcile: a connection of the Cluster, used or not, goes to the next in the
// queue.
func (t *tracker) release(ctx context.Context, key types.NamespacedName) {
	next, found := t.handOver(key)
	if !found {
		return
	}
	select {
	case t.free <- event.GenericEvent{Object: &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: next.Namespace, Name: next.Name}}}:
	case <-ctx.Done(): // the hub ends, and forgets everything here
	}
}

func (t *tracker) handOver(key types.NamespacedName) (next types.NamespacedName, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, workspace := t.entries[key], key.Namespace
	if e == nil || !e.connected {
		return next, false
	}
	e.connected = false
	if queue := t.queues[workspace]; len(queue) > 0 {
		next, t.queues[workspace] = queue[0], queue[1:]
		t.entry(next).connected = true
		return next, true
	}
	delete(t.queues, workspace)
	if t.connections[workspace]--; t.connections[workspace] == 0 {
		delete(t.connections, workspace)
	}
	return next, false
}
