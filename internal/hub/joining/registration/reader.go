package registration

import (
	"context"
	"fmt"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

const (
	// endedFor is the longest delay of the removal of a right after its end. One write then removes
	// many.
	endedFor = 5 * time.Second
	// annotationReadable is the number of requests in a Role. The cache holds only its metadata.
	annotationReadable = "muster/readable-requests"
	// maxAnnounced limits the names in a Role of requests that had no turn yet. A flood of requests
	// must not make the Role too large to store.
	maxAnnounced = 256
)

// reader is the right of one account to read its requests, or the Secrets with answers. It consists
// of a Role with their names, and its RoleBinding. This process is their only writer.
//
// All requests waiting for the right at one time share a write. For each write of a Role, the API
// server looks up all rights of the hub. The look-up costs more than the write itself.
type reader struct {
	deps    controller.Deps
	account *metav1.PartialObjectMetadata
	// answersIn is the namespace of the Secrets; "" for requests.
	answersIn string

	// writing is held during a read or a write of the Role.
	writing sync.Mutex
	// role is the Role as last read or written; nil if it must be read first. It has no UID if there
	// is none. bound is set if its RoleBinding exists.
	role  *rbacv1.Role
	bound bool

	mu sync.Mutex
	// readable are the requests in the Role; nil before the first read. The next write adds the
	// requests in waiting, and removes the requests in ended.
	readable, waiting, ended sets.Set[string]
	// announced are the requests in waiting or readable that had no turn yet.
	announced sets.Set[string]
	// endedAt is the time of the first entry in ended.
	endedAt time.Time
}

// readers holds the readers by the names of their Roles.
type readers struct {
	mu sync.Mutex
	of map[types.NamespacedName]*reader
	// ofRequest holds what may be readable because of a request.
	ofRequest map[types.NamespacedName]readable
}

// readable is the name of a request, or of the Secret with its answer, with the reader.
type readable struct {
	*reader
	name string
}

func newReaders() *readers {
	return &readers{of: map[types.NamespacedName]*reader{}, ofRequest: map[types.NamespacedName]readable{}}
}

// roleOf names the Role and the RoleBinding of an account, for requests or for answers in a
// namespace.
func roleOf(account types.NamespacedName, answersIn string) types.NamespacedName {
	if answersIn != "" {
		return types.NamespacedName{Namespace: answersIn, Name: naming.SafeConcat("registration", account.Namespace, account.Name)}
	}
	return types.NamespacedName{Namespace: account.Namespace, Name: naming.SafeConcat("registration", account.Name)}
}

// makeReadable lets a native agent watch its request before any other step. The agent then need not
// poll.
func (c *Controller) makeReadable(ctx context.Context, r *fleet.ClusterRegistration, o observation) error {
	switch {
	case o.native && o.standby:
		return c.makeReadableToStandby(ctx, r)
	case !o.native || o.tokenAccount == "":
		return nil
	}
	reader, err := c.reader(ctx, types.NamespacedName{Namespace: r.Namespace, Name: o.tokenAccount}, "")
	if err != nil || reader == nil {
		return err
	}
	c.readers.note(client.ObjectKeyFromObject(r), readable{reader, r.Name})
	return reader.add(ctx, r.Name)
}

// endReading ends the right to read a request or its answer, and returns the time until it is
// removed. A killed hub may have left the right.
func (c *Controller) endReading(ctx context.Context, r *fleet.ClusterRegistration, answersIn, name string) (time.Duration, error) {
	account := accountOf(r)
	if c.isOfStandby(r) {
		return 0, nil // the request owns it
	}
	if !reconnects(r) {
		token, err := c.findToken(ctx, r)
		if err != nil || token == nil {
			return 0, err
		}
		account = naming.TokenServiceAccount(token.Name, string(token.UID))
	}
	key := types.NamespacedName{Namespace: r.Namespace, Name: account}
	if readable, err := c.mayRead(ctx, roleOf(key, answersIn)); err != nil || !readable {
		return 0, err
	}
	reader, err := c.reader(ctx, key, answersIn)
	if err != nil || reader == nil {
		return 0, err
	}
	c.readers.note(client.ObjectKeyFromObject(r), readable{reader, name})
	return c.endReadingOf(ctx, client.ObjectKeyFromObject(r))
}

// endReadingOf ends the right to read a request, also of a deleted one.
func (c *Controller) endReadingOf(ctx context.Context, request types.NamespacedName) (time.Duration, error) {
	c.readers.mu.Lock()
	found := c.readers.ofRequest[request]
	c.readers.mu.Unlock()
	if found.reader == nil {
		return 0, nil
	}
	wait, err := found.end(ctx, found.name)
	if wait == 0 && err == nil {
		c.readers.note(request, readable{})
	}
	return wait, err
}

// reader returns the reader of an account, for requests or for answers in a namespace. It is nil if
// there is no such account.
func (c *Controller) reader(ctx context.Context, account types.NamespacedName, answersIn string) (*reader, error) {
	role := roleOf(account, answersIn)
	c.readers.mu.Lock()
	found := c.readers.of[role]
	c.readers.mu.Unlock()
	if found != nil {
		return found, nil
	}
	have, err := c.tokenAccount(ctx, account)
	if err != nil || have == nil {
		return nil, err
	}
	c.readers.mu.Lock()
	defer c.readers.mu.Unlock()
	if c.readers.of[role] == nil {
		c.readers.of[role] = &reader{
			deps: c.Deps.Deps, account: have, answersIn: answersIn,
			waiting: sets.New[string](), ended: sets.New[string](), announced: sets.New[string](),
		}
	}
	return c.readers.of[role], nil
}

// note stores what is readable because of a request; without a reader it removes the entry.
func (r *readers) note(request types.NamespacedName, of readable) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of.reader == nil {
		delete(r.ofRequest, request)
		return
	}
	r.ofRequest[request] = of
}

// forget drops the reader with a Role or RoleBinding of this name, and reports whether there was
// one. The next request reads both again.
func (r *readers) forget(role types.NamespacedName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, found := r.of[role]
	delete(r.of, role)
	return found
}

// add makes a request readable.
func (r *reader) add(ctx context.Context, request string) error {
	if !r.enlist(request) {
		return nil
	}
	r.writing.Lock()
	defer r.writing.Unlock()
	if err := r.load(ctx); err != nil {
		return err
	}
	if !r.enlist(request) { // another request has written it
		return nil
	}
	return r.write(ctx)
}

// enlist queues a request for the next write, unless it is readable.
func (r *reader) enlist(request string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended.Delete(request)
	r.announced.Delete(request)
	if r.readable.Has(request) {
		return false
	}
	r.waiting.Insert(request)
	return true
}

// announce queues a request that had no turn yet, and reports whether there was room for it.
func (r *reader) announce(request string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.announced.Len() >= maxAnnounced || r.readable.Has(request) {
		return false
	}
	r.announced.Insert(request)
	r.waiting.Insert(request)
	return true
}

// end removes a request with all other ended requests. It returns the time left if it is too early.
func (r *reader) end(ctx context.Context, request string) (time.Duration, error) {
	r.writing.Lock()
	defer r.writing.Unlock()
	if err := r.load(ctx); err != nil {
		return 0, err
	}
	wait, readable := r.delist(request)
	if !readable || wait > 0 {
		return wait, nil
	}
	return 0, r.write(ctx)
}

// delist queues a readable request for removal, and returns the time until then.
func (r *reader) delist(request string) (wait time.Duration, readable bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting.Delete(request); !r.readable.Has(request) {
		r.announced.Delete(request)
		return 0, false
	}
	if r.ended.Len() == 0 {
		r.endedAt = r.deps.Clock.Now()
	}
	r.ended.Insert(request)
	return endedFor - r.deps.Clock.Since(r.endedAt), true
}

// load reads the Role, unless this process knows it. It drops the names of deleted objects.
func (r *reader) load(ctx context.Context) error {
	if r.role != nil {
		return nil
	}
	role, binding := r.objects(nil)
	found, err := r.read(ctx, &rbacv1.Role{}, role)
	if err != nil {
		return err
	}
	bound, err := r.read(ctx, &rbacv1.RoleBinding{}, binding)
	if err != nil {
		return err
	}
	readable := sets.New[string]()
	for _, rule := range found.(*rbacv1.Role).Rules {
		for _, name := range rule.ResourceNames {
			object := client.Object(&fleet.ClusterRegistration{})
			if r.answersIn != "" {
				object = kube.CoreMetadata("Secret")
			}
			err := r.deps.Client.Get(ctx, types.NamespacedName{Namespace: role.Namespace, Name: name}, object)
			if client.IgnoreNotFound(err) != nil {
				return err
			} else if err == nil {
				readable.Insert(name)
			}
		}
	}
	r.role, r.bound = found.(*rbacv1.Role), bound.GetUID() != ""
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.readable = readable; !r.bound { // a hub killed before the RoleBinding has made nothing readable
		r.readable, r.waiting = sets.New[string](), r.waiting.Union(readable)
	}
	return nil
}

// read reads an object of the reader. The result has no UID if the object is missing or has another
// owner: the write then replaces or reports the object.
func (r *reader) read(ctx context.Context, found, desired client.Object) (client.Object, error) {
	key := client.ObjectKeyFromObject(desired)
	if err := r.deps.Live.Get(ctx, key, found); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading %s: %w", kube.Describe(r.deps.Client.Scheme(), desired), err)
	}
	if found.GetLabels()[fleet.LabelManaged] != "true" || !r.owns(found) {
		found.SetUID("")
	}
	return found, nil
}

// write writes the Role.
func (r *reader) write(ctx context.Context) error {
	r.mu.Lock()
	r.readable = r.readable.Difference(r.ended)
	r.ended = sets.New[string]()
	names := r.readable.Union(r.waiting)
	r.mu.Unlock()
	role, binding := r.objects(sets.List(names))
	var err error
	switch {
	case r.role.UID != "" && r.bound:
		role.UID, role.ResourceVersion = r.role.UID, r.role.ResourceVersion
		if err = r.deps.Client.Update(ctx, role, kube.FieldOwner); err != nil {
			err = fmt.Errorf("writing Role %s/%s: %w", role.Namespace, role.Name, err)
		}
	case names.Len() > 0:
		err = kube.Ensure(ctx, r.deps.Client, role, binding)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.role, r.readable = nil, nil
		return err
	}
	r.role, r.bound, r.readable = role, role.UID != "", names
	r.waiting, r.announced = r.waiting.Difference(names), r.announced.Intersection(names)
	return nil
}
