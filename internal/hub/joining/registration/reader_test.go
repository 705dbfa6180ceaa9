package registration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// readerRig has a reader for requests of the workspace ws.
type readerRig struct {
	*testing.T
	*reader
	clock  *clocktesting.FakeClock
	writes atomic.Int32
	// fails is the error of the next write.
	fails error
}

func newReaderRig(t *testing.T, requests ...string) *readerRig {
	t.Helper()
	rig := &readerRig{T: t, clock: clocktesting.NewFakeClock(time.Now())}
	scheme := runtime.NewScheme()
	rig.check(errors.Join(fleet.AddToScheme(scheme), clientgoscheme.AddToScheme(scheme)))
	count := func() error {
		rig.writes.Add(1)
		time.Sleep(time.Millisecond) // so that others wait meanwhile
		err := rig.fails
		rig.fails = nil
		return err
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if _, is := o.(*rbacv1.Role); is {
				if err := count(); err != nil {
					return err
				}
			}
			o.SetUID(types.UID(o.GetName())) // the fake client sets none
			return c.Create(ctx, o, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			if err := count(); err != nil {
				return err
			}
			return c.Update(ctx, o, options...)
		},
	})
	for _, name := range requests {
		builder = builder.WithObjects(&fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: name}})
	}
	c := builder.Build()
	account := kube.CoreMetadata("ServiceAccount")
	account.Namespace, account.Name, account.UID = "ws", "token", "1"
	rig.reader = &reader{deps: controller.Deps{Client: c, Live: c, Clock: rig.clock}, account: account, waiting: sets.New[string](),
		ended: sets.New[string](), announced: sets.New[string]()}
	return rig
}

// again returns a rig of another process.
func (r *readerRig) again() *readerRig {
	next := &readerRig{T: r.T, clock: r.clock}
	next.reader = &reader{deps: r.deps, account: r.account, waiting: sets.New[string](), ended: sets.New[string](),
		announced: sets.New[string]()}
	return next
}

func (r *readerRig) check(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// ends ends the right to read a request, at once.
func (r *readerRig) ends(request string) {
	r.Helper()
	for {
		wait, err := r.end(r.Context(), request)
		if r.check(err); wait == 0 {
			return
		}
		r.clock.Step(wait)
	}
}

// names returns the names in the Role. A rule without names would be for all requests.
func (r *readerRig) names() []string {
	r.Helper()
	role, binding := r.objects(nil)
	r.check(r.deps.Live.Get(r.Context(), client.ObjectKeyFromObject(role), role))
	r.check(r.deps.Live.Get(r.Context(), client.ObjectKeyFromObject(binding), binding))
	var names []string
	for _, rule := range role.Rules {
		if len(rule.ResourceNames) == 0 {
			r.Error("a rule is for all requests")
		}
		names = append(names, rule.ResourceNames...)
	}
	return names
}

func (r *readerRig) has(want ...string) {
	r.Helper()
	if diff := cmp.Diff(want, r.names()); diff != "" {
		r.Errorf("the readable requests (-want +got):\n%s", diff)
	}
}

func TestANewRequestIsReadableWithTheNextWriteForItsAccount(t *testing.T) {
	r := newReaderRig(t)
	c := &Controller{readers: newReaders()}
	c.readers.of[roleOf(types.NamespacedName{Namespace: "ws", Name: "token"}, "")] = r.reader
	announce := func(name, account string, change func(*fleet.ClusterRegistration)) *fleet.ClusterRegistration {
		request := &fleet.ClusterRegistration{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: name, Annotations: map[string]string{
				fleet.AnnotationRequester: "system:serviceaccount:ws:" + account,
			}},
			Spec: fleet.ClusterRegistrationSpec{AnswerKey: []byte("key")},
		}
		change(request)
		c.announce(request)
		return request
	}
	same := func(*fleet.ClusterRegistration) {}
	announce("new", "token", same)
	announce("other", "of-another-token", same)
	announce("legacy", "token", func(r *fleet.ClusterRegistration) { r.Spec.AnswerKey = nil })
	announce("decided", "token", func(r *fleet.ClusterRegistration) { r.Status.State = fleet.RegistrationGranted })
	gone := announce("gone", "token", same)
	wait, err := c.endReadingOf(t.Context(), client.ObjectKeyFromObject(gone))
	if r.check(err); wait != 0 || r.writes.Load() != 0 {
		t.Errorf("it waits %s, and writes %d times", wait, r.writes.Load())
	}
	r.check(r.add(t.Context(), "next"))
	r.has("new", "next")
	r.check(r.add(t.Context(), "new"))
	if writes := r.writes.Load(); writes != 1 {
		t.Errorf("it writes %d times", writes)
	}
}

func TestAFloodOfNewRequestsMakesABoundedNumberReadable(t *testing.T) {
	r := newReaderRig(t)
	flood := func(from int) {
		for i := range 2 * maxAnnounced {
			r.announce(fmt.Sprintf("flood-%d", from+i))
		}
	}
	flood(0)
	r.check(r.add(t.Context(), "good"))
	flood(10_000) // the first ones had no turn yet
	r.check(r.add(t.Context(), "better"))
	if names := r.names(); len(names) != maxAnnounced+2 || !slices.Contains(names, "good") || !slices.Contains(names, "better") {
		t.Errorf("%d requests are readable", len(names))
	}
	// Requests that had their turn, or are gone, make room.
	r.check(r.add(t.Context(), "flood-0"))
	r.ends("flood-1")
	for _, name := range []string{"next", "over"} {
		if !r.announce(name) {
			t.Errorf("%s finds no room", name)
		}
	}
	if r.announce("excess") {
		t.Error("there is room for one too many")
	}
}

func TestAnAccountReadsItsOpenRequests(t *testing.T) {
	r := newReaderRig(t)
	r.ends("never") // nothing is written for a request that was not readable
	if writes := r.writes.Load(); writes != 0 {
		t.Errorf("it writes %d times", writes)
	}
	for _, name := range []string{"b", "a", "a"} {
		r.check(r.add(t.Context(), name))
	}
	r.has("a", "b")
	if writes := r.writes.Load(); writes != 2 {
		t.Errorf("it writes %d times", writes)
	}
	if wait, err := r.end(t.Context(), "a"); err != nil || wait != endedFor {
		t.Errorf("the right ends within %s: %v", wait, err)
	}
	r.has("a", "b")
	r.check(r.add(t.Context(), "c")) // it removes what has ended
	r.has("b", "c")
	r.check(r.add(t.Context(), "a"))
	if _, err := r.end(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	r.check(r.add(t.Context(), "a")) // again, before it was removed
	r.ends("b")
	r.has("a", "c")
	r.ends("a")
	r.ends("c")
	r.has()
	r.check(r.add(t.Context(), "d"))
	r.has("d")
}

func TestRequestsThatWaitForTheirRightShareAWrite(t *testing.T) {
	r := newReaderRig(t)
	var all sync.WaitGroup
	var want []string
	for i := range 100 {
		name := fmt.Sprintf("request-%03d", i)
		want = append(want, name)
		all.Go(func() {
			if err := r.add(t.Context(), name); err != nil {
				t.Error(err)
			}
			if !slices.Contains(r.names(), name) {
				t.Errorf("%s is not readable after its write", name)
			}
		})
	}
	all.Wait()
	r.has(want...)
	if writes := r.writes.Load(); writes > 50 {
		t.Errorf("100 requests take %d writes", writes)
	}
	before := r.writes.Load()
	for _, name := range want {
		if _, err := r.end(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
	r.ends(want[0])
	r.has()
	if writes := r.writes.Load() - before; writes != 1 {
		t.Errorf("their removal takes %d writes", writes)
	}
}

func TestAnotherHubGoesOnWithTheRequestsThatExist(t *testing.T) {
	r := newReaderRig(t, "open", "ended")
	for _, name := range []string{"open", "ended", "gone"} {
		r.check(r.add(t.Context(), name))
	}
	next := r.again()
	next.ends("ended")
	next.has("open")
}

// TestAHubKilledBeforeTheRoleBindingLeavesNothingUnreadable leaves a Role that names two requests,
// without its RoleBinding.
func TestAHubKilledBeforeTheRoleBindingLeavesNothingUnreadable(t *testing.T) {
	for name, goesOn := range map[string]func(*readerRig) error{
		"one request is reconciled":  func(r *readerRig) error { return r.add(t.Context(), "a") },
		"the Role itself is checked": func(r *readerRig) error { return r.dropGone(t.Context()) },
	} {
		r := newReaderRig(t, "a", "b")
		r.check(r.add(t.Context(), "a"))
		r.check(r.add(t.Context(), "b"))
		_, binding := r.objects(nil)
		r.check(r.deps.Client.Delete(t.Context(), binding))
		next := r.again()
		next.check(goesOn(next))
		if next.has("a", "b"); t.Failed() {
			t.Errorf("failed if %s", name)
		}
	}
}

func TestAFailedWriteOfTheRightIsRepeated(t *testing.T) {
	r := newReaderRig(t, "a", "b")
	r.fails = errors.New("the API server is away")
	if err := r.add(t.Context(), "a"); err == nil {
		t.Error("the failure is not said")
	}
	r.check(r.add(t.Context(), "a"))
	r.check(r.add(t.Context(), "b"))
	other := r.again() // changes the Role meanwhile
	other.ends("b")
	if err := r.add(t.Context(), "c"); err == nil {
		t.Error("it overwrites a Role that another client has changed")
	}
	r.check(r.add(t.Context(), "c"))
	r.has("a", "c")
}

// TestAHubThatStartsReadsOnlyTheRolesWithRequests starts with a granted request of each of two
// accounts. The Role of only one account still names its request.
func TestAHubThatStartsReadsOnlyTheRolesWithRequests(t *testing.T) {
	reads := 0
	rig := newReaderRig(t)
	role, binding := rig.objects([]string{"left"})
	role.UID, binding.UID = "role", "binding"
	account := rig.account.DeepCopy()
	scheme := rig.deps.Client.Scheme()
	other := role.DeepCopy()
	other.Name, other.Annotations = "registration-reconnect-2", map[string]string{annotationReadable: "0"}
	request := func(name, requester string) *fleet.ClusterRegistration {
		return &fleet.ClusterRegistration{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: name, Annotations: map[string]string{
				fleet.AnnotationRequester: "system:serviceaccount:ws:" + requester,
			}},
			Spec: fleet.ClusterRegistrationSpec{AnswerKey: []byte("key")},
		}
	}
	left, over := request("left", "reconnect-1"), request("over", "reconnect-2")
	role.Name, binding.Name, account.Name = "registration-reconnect-1", "registration-reconnect-1", "reconnect-1"
	live := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
		options ...client.GetOption) error {
		if _, is := o.(*rbacv1.Role); is {
			reads++
		}
		return c.Get(ctx, key, o, options...)
	}}
	cl := fake.NewClientBuilder().WithScheme(scheme).WithObjects(role, binding, other, left, over, &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "reconnect-1", UID: account.UID},
	}).WithInterceptorFuncs(live).Build()
	c := &Controller{Deps: Deps{Deps: controller.Deps{Client: cl, Live: cl, Clock: rig.clock}}, readers: newReaders()}
	for _, r := range []*fleet.ClusterRegistration{over, left} {
		wait, err := c.withdrawAnswer(t.Context(), r)
		if readable := r == left; err != nil || wait > 0 != readable || reads > 0 != readable {
			t.Errorf("request %s: it waits %s after %d reads: %v", r.Name, wait, reads, err)
		}
	}
}

// TestARoleInTheNamespaceOfATenantIsForNoAnswers has a tenant write the annotations of a Role for
// answers into their own namespace.
func TestARoleInTheNamespaceOfATenantIsForNoAnswers(t *testing.T) {
	c := &Controller{Deps: Deps{Deps: controller.Deps{SystemNamespace: "cattle-fleet-system"}}}
	rig := newReaderRig(t)
	rig.answersIn = c.answersIn()
	role, _ := rig.objects([]string{"answer"})
	account, uid, found := c.readerOf(role)
	if !found || account != client.ObjectKeyFromObject(rig.account) || uid != rig.account.UID || !c.needsLook(role) {
		t.Errorf("the Role is for %s, %q: %t", account, uid, found)
	}
	role.Namespace = "ws"
	if _, _, found := c.readerOf(role); found || c.needsLook(role) {
		t.Error("the Role of a tenant counts")
	}
}
