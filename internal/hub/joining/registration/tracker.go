package registration

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// cost is the category of a request in the limits.
type cost string

const (
	// free: the request is granted, or the hub is working on it. The hub never refuses a burst of
	// joins.
	free cost = ""
	// waiting: the request was refused, or waits for a decision.
	waiting cost = "Waiting"
	// queued: the request waits for the heartbeats of other new Clusters of its token.
	queued cost = "Queued"
	// foreign: the request has a label for another manager, and the manager has not taken it up.
	foreign cost = "Foreign"
)

func costOf(r *fleet.ClusterRegistration) cost {
	switch {
	case r.Status.Granted || r.DeletionTimestamp != nil:
		return free
	case r.Labels[fleet.LabelClusterManagement] != "":
		if takenUp(r) {
			return free
		}
		return foreign
	}
	return costOfState(r.Status.State, r.Status.Reason)
}

func costOfState(state fleet.RegistrationState, reason string) cost {
	switch {
	case state == fleet.RegistrationDenied || state == fleet.RegistrationConflict || state == fleet.RegistrationPending:
		return waiting
	case state != fleet.RegistrationWaiting:
		return free
	case reason == reasons.Preparing || reason == reasons.TokenNotIssued || reason == reasons.Failed || reason == reasons.KeyProved:
		return free
	case reason == reasons.TooManyNewClusters:
		return queued
	}
	return waiting
}

// takenUp reports whether another manager has begun to answer a request.
func takenUp(r *fleet.ClusterRegistration) bool {
	return r.Status.Granted || r.Status.ClusterName != "" || len(r.OwnerReferences) > 0
}

// groups keeps things in groups, each thing in at most one.
type groups[T, G comparable] struct {
	of      map[T]G
	members map[G]map[T]bool
}

func newGroups[T, G comparable]() groups[T, G] {
	return groups[T, G]{of: map[T]G{}, members: map[G]map[T]bool{}}
}

func (g groups[T, G]) put(thing T, group G) {
	g.remove(thing)
	g.of[thing] = group
	if g.members[group] == nil {
		g.members[group] = map[T]bool{}
	}
	g.members[group][thing] = true
}

func (g groups[T, G]) remove(thing T) (group G, found bool) {
	if group, found = g.of[thing]; found {
		delete(g.of, thing)
		if delete(g.members[group], thing); len(g.members[group]) == 0 {
			delete(g.members, group)
		}
	}
	return group, found
}

// tracker is the hub's memory of requests and Clusters in this process. It counts requests and new
// Clusters by events, so the hub need not list them. Each entry ends with its request or Cluster.
type tracker struct {
	joins *controller.Joins
	mu    sync.Mutex
	// requests holds all requests except the free ones. waiting holds the waiting ones by workspace.
	// clients holds the waiting ones of shared accounts by cluster.
	requests groups[types.NamespacedName, place]
	waiting  groups[types.NamespacedName, string]
	clients  groups[types.NamespacedName, share]
	// newClusters holds the Clusters created for requests and still without a heartbeat.
	newClusters groups[types.NamespacedName, origin]
	// identities holds this hub's knowledge of the identity of each Cluster. After a restart the next
	// heartbeat, or answerLife, counts.
	identities map[types.NamespacedName]identity
	// granting holds the Clusters under a grant.
	granting kube.Memory[types.NamespacedName, bool]
	// firstSeen holds the resourceVersions of the requests' first appearance, by UID, until their
	// status has it.
	firstSeen kube.Memory[types.UID, string]
	// signatures holds the result of the verification of each signed request, by UID.
	signatures kube.Memory[types.UID, verification]
}

func newTracker(joins *controller.Joins) *tracker {
	return &tracker{joins: joins, requests: newGroups[types.NamespacedName, place](), waiting: newGroups[types.NamespacedName, string](),
		clients: newGroups[types.NamespacedName, share](), newClusters: newGroups[types.NamespacedName, origin](),
		identities: map[types.NamespacedName]identity{}}
}

// identity is the memory of a Cluster's identity. It holds the account, if this hub has granted it,
// the newest heartbeat before the grant, and whether the agent has sent one since.
type identity struct {
	account types.UID
	before  time.Time
	proved  bool
}

// given stores the account granted to a Cluster. Only a new account needs a new proof: at a
// repeated grant the agent may already have read the answer.
func (t *tracker) given(cluster types.NamespacedName, account types.UID, before time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.identities[cluster].account != account {
		t.identities[cluster] = identity{account: account, before: before.Truncate(time.Second)} // the resolution of a status
	}
}

// beaten notes a heartbeat: it proves the identity of a Cluster's agent. A heartbeat in the status
// may appear after the replacement of the identity.
func (t *tracker) beaten(cluster types.NamespacedName, seen time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.identities[cluster]
	known.proved = known.proved || seen.After(known.before)
	t.identities[cluster] = known
}

// proved reports whether the agent of a Cluster has sent a heartbeat since the grant of the
// identity.
func (t *tracker) proved(cluster types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.identities[cluster].proved
}

// forgetCluster drops the identity of a deleted Cluster.
func (t *tracker) forgetCluster(cluster types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.identities, cluster)
}

// trackRequest counts a request in its current category.
func (t *tracker) trackRequest(r *fleet.ClusterRegistration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.firstSeenAt(r)
	key, cost, from := client.ObjectKeyFromObject(r), costOf(r), originOf(r)
	t.uncount(key)
	if cost != free {
		t.requests.put(key, place{from, cost})
	}
	if cost == waiting && !from.shared() && !from.member {
		t.waiting.put(key, r.Namespace)
	}
	if cost == waiting && from.shared() {
		t.clients.put(key, share{from, clientOf(r)})
	}
}

func (t *tracker) uncount(key types.NamespacedName) {
	t.requests.remove(key)
	t.waiting.remove(key)
	t.clients.remove(key)
}

// firstSeenAt returns the resource version at the hub's first sight of a request; for a new
// request, the current one. It is "" if a hub has written a status without the version. Watches
// deliver requests in the order of their creation.
func (t *tracker) firstSeenAt(r *fleet.ClusterRegistration) string {
	switch {
	case r.Status.FirstSeenVersion != "":
		t.firstSeen.Forget(r.UID)
		return r.Status.FirstSeenVersion
	case r.Status.State != "" || r.Status.Granted:
		return ""
	}
	return t.firstSeen.Of(r.UID, r.ResourceVersion)
}

// forgetRequest drops a deleted request.
func (t *tracker) forgetRequest(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.uncount(key)
}

// others counts the requests besides this one, and returns the place of this one.
func (t *tracker) others(r *fleet.ClusterRegistration) others {
	t.mu.Lock()
	defer t.mu.Unlock()
	from := originOf(r)
	count := func(cost cost) int { return len(t.requests.members[place{from, cost}]) }
	o := others{queued: count(queued), waiting: count(waiting)}
	this := t.requests.of[client.ObjectKeyFromObject(r)].cost
	if r.Status.Reason != reasons.TooManyRequests {
		o.place = this
	}
	switch {
	case from.shared():
		o.shared, o.waitingOfClient = true, len(t.clients.members[share{from, clientOf(r)}])
	case !from.member:
		o.waitingInWorkspace = len(t.waiting.members[r.Namespace])
	}
	switch this {
	case queued:
		o.queued--
	case waiting:
		o.waiting--
		o.waitingOfClient = max(o.waitingOfClient-1, 0)
		o.waitingInWorkspace = max(o.waitingInWorkspace-1, 0)
	case free, foreign: // they are not counted here
	}
	return o
}

// foreign counts the requests of a token labelled for another manager, including this one.
func (t *tracker) foreign(r *fleet.ClusterRegistration) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.requests.members[place{originOf(r), foreign}])
}

// reserve reports whether the hub may create a new Cluster for a request, and counts it at once. Of
// two requests for the last place one gets it.
func (t *tracker) reserve(cluster types.NamespacedName, from origin, most int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, has := t.newClusters.of[cluster]; has {
		return true
	}
	if most > 0 && len(t.newClusters.members[from]) >= most {
		return false
	}
	t.newClusters.put(cluster, from)
	return true
}

// trackCluster counts a Cluster created for a request until its first heartbeat or its deletion. It
// then returns the origin, because the origin has room for another Cluster.
func (t *tracker) trackCluster(cluster *fleet.Cluster, gone bool) (origin, bool) {
	token, made := cluster.Annotations[fleet.AnnotationCreatedByToken]
	if !made || gone || cluster.DeletionTimestamp != nil || !cluster.Status.Agent.LastSeen.IsZero() {
		return t.release(client.ObjectKeyFromObject(cluster))
	}
	t.joins.Begin(client.ObjectKeyFromObject(cluster), cluster.CreationTimestamp.Time)
	t.reserve(client.ObjectKeyFromObject(cluster), origin{workspace: cluster.Namespace, token: token}, 0)
	return origin{}, false
}

// release no longer counts a Cluster, and returns its origin if it counted.
func (t *tracker) release(cluster types.NamespacedName) (origin, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.joins.End(cluster)
	return t.newClusters.remove(cluster)
}

// next returns queued requests of an origin with room for new Clusters.
func (t *tracker) next(from origin, most int) []types.NamespacedName {
	t.mu.Lock()
	defer t.mu.Unlock()
	var next []types.NamespacedName
	room := most - len(t.newClusters.members[from])
	for key := range t.requests.members[place{from, queued}] {
		if most > 0 && len(next) >= room {
			break
		}
		next = append(next, key)
	}
	return next
}

// queues returns the origins with queued requests.
func (t *tracker) queues() []origin {
	t.mu.Lock()
	defer t.mu.Unlock()
	var from []origin
	for place := range t.requests.members {
		if place.cost == queued {
			from = append(from, place.origin)
		}
	}
	return from
}
