package contentaccess

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestMain(m *testing.M) { os.Exit(testkube.Main(m)) }

// rig has a controller that nothing wakes, on a control plane without a hub, and
// counts what it writes.
type rig struct {
	client.Client
	t      *testing.T
	writes atomic.Int64
	// mute loses the answer to the next update.
	mute bool
	*Controller
}

func newRig(t *testing.T) *rig {
	r := &rig{Client: testkube.Start(t, "contentaccess").Client(t), t: t}
	r.restart()
	r.check(r.DeleteAllOf(context.Background(), &rbacv1.ClusterRoleBinding{}, client.MatchingLabels{"fleet.cattle.io/managed": "true"}))
	return r
}

// restart forgets all that the process knows.
func (r *rig) restart() { r.Controller = New(controller.Deps{Client: r, Live: r}) }

func (r *rig) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	r.writes.Add(1)
	return r.Client.Create(ctx, object, options...)
}

func (r *rig) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	r.writes.Add(1)
	err := r.Client.Update(ctx, object, options...)
	if r.mute && err == nil {
		r.mute, err = false, context.DeadlineExceeded
	}
	return err
}

func (r *rig) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// namespaces makes so many namespaces. Their accounts share the returned binding, as long as it has
// room.
func (r *rig) namespaces(count int) (name string, made []*corev1.Namespace) {
	for i := range count {
		made = append(made, r.namespace(fmt.Sprintf("%s-%d", strings.ToLower(r.t.Name()), i)))
	}
	return r.Controller.bindings[0].name, made
}

func (r *rig) namespace(name string) *corev1.Namespace {
	r.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	r.check(r.Client.Create(context.Background(), namespace))
	return namespace
}

// remove deletes a namespace and waits until it is gone.
func (r *rig) remove(namespace *corev1.Namespace) {
	r.t.Helper()
	r.check(r.Client.Delete(context.Background(), namespace))
	testkube.Eventually(r.t, namespace.Name+" is gone", func() error {
		err := r.Get(context.Background(), types.NamespacedName{Name: namespace.Name}, &corev1.Namespace{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
}

func (r *rig) grant(namespace *corev1.Namespace) error {
	return r.Grant(context.Background(), namespace.Name, namespace.UID)
}

func (r *rig) bound(name string) *rbacv1.ClusterRoleBinding {
	r.t.Helper()
	binding := &rbacv1.ClusterRoleBinding{}
	r.check(r.Get(context.Background(), types.NamespacedName{Name: name}, binding))
	return binding
}

// binds compares the binding with what it should be, whatever the order of the namespaces.
func (r *rig) binds(name, when string, bound ...*corev1.Namespace) {
	r.t.Helper()
	want := namespaces{}
	for _, namespace := range bound {
		want[namespace.Name] = namespace.UID
	}
	if diff := cmp.Diff(want.accounts(), r.bound(name).Subjects); diff != "" {
		r.t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

func (r *rig) reconcile(name string) {
	r.t.Helper()
	_, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
	r.check(err)
}

func TestManyMembersOfOneBindingCostOneWrite(t *testing.T) {
	r := newRig(t)
	name, namespaces := r.namespaces(20)
	b := r.named(name)
	b.writing.Lock() // as if another write were under way
	var granting sync.WaitGroup
	for _, namespace := range namespaces {
		granting.Go(func() {
			if err := r.grant(namespace); err != nil {
				t.Error(err)
			}
		})
	}
	testkube.Eventually(t, "all wait", func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.waiting) < len(namespaces) {
			return fmt.Errorf("%d wait", len(b.waiting))
		}
		return nil
	})
	b.writing.Unlock()
	granting.Wait()
	if writes := r.writes.Load(); writes != 1 {
		t.Errorf("it took %d writes", writes)
	}
	r.binds(name, "all are bound", namespaces...)
	for _, namespace := range namespaces {
		r.check(r.grant(namespace))
	}
	r.restart()
	for _, namespace := range namespaces {
		r.check(r.grant(namespace))
	}
	if writes := r.writes.Load(); writes != 1 {
		t.Errorf("to grant what is granted took %d writes", writes-1)
	}
}

func TestANewMemberGetsTheFullestBindingWithRoom(t *testing.T) {
	for _, c := range []struct {
		name  string
		sizes map[int]int
		want  int
	}{
		{"none is written", nil, 0},
		{"one is begun", map[int]int{3: 1}, 3},
		{"the first is full", map[int]int{0: room}, 1},
		{"members have left two", map[int]int{0: room - 2, 1: room - 1, 2: 5}, 1},
		{"the first is not the hub's", map[int]int{0: -1}, 1},
		{"all but a foreign one are full", full(map[int]int{5: -1, 9: room + 1, 0: room + 7}), 1},
		{"all are full, one less", full(map[int]int{0: room + 2, 1: room + 1, 2: room + 1}), 3},
	} {
		controller := New(controller.Deps{})
		for i, size := range c.sizes {
			b := controller.bindings[i]
			b.foreign = size < 0
			for account := range size {
				b.bound[fmt.Sprintf("member-%d-%d", i, account)] = "uid"
			}
		}
		if got := controller.place("new"); got.name != controller.bindings[c.want].name {
			t.Errorf("%s: it gets %s", c.name, got.name)
		}
	}
}

// full returns the sizes of full bindings, with some exceptions.
func full(except map[int]int) map[int]int {
	sizes := map[int]int{}
	for i := range bindings {
		sizes[i] = room
	}
	maps.Copy(sizes, except)
	return sizes
}

func TestAnAccountHasOneBinding(t *testing.T) {
	r := newRig(t)
	_, members := r.namespaces(4)
	// An earlier version chose the binding by a hash.
	for i, bound := range map[int][]*corev1.Namespace{7: members[:1], 9: members[:3]} {
		uids := namespaces{}
		for _, namespace := range bound {
			uids[namespace.Name] = namespace.UID
		}
		b := r.Controller.bindings[i]
		b.current = &rbacv1.ClusterRoleBinding{}
		r.check(b.write(context.Background(), uids))
	}
	seventh, ninth := r.Controller.bindings[7].name, r.Controller.bindings[9].name
	r.restart()
	r.check(r.grant(members[3]))
	r.reconcile(seventh)
	r.reconcile(ninth)
	r.binds(seventh, "the first of two", members[0])
	r.binds(ninth, "the fullest has the new one, and no account of another binding", members[1:]...)

	r.restart()
	r.check(r.Withdraw(context.Background(), members[0].Name))
	r.check(r.grant(members[0]))
	r.check(r.Withdraw(context.Background(), members[2].Name))
	if err := r.Get(context.Background(), types.NamespacedName{Name: seventh}, &rbacv1.ClusterRoleBinding{}); !apierrors.IsNotFound(err) {
		t.Errorf("the only account of the binding is withdrawn, and the binding is there: %v", err)
	}
	r.binds(ninth, "the account of another binding is withdrawn, and then refused", members[1], members[3])
}

func TestBundlesOfOneMomentBindTheirNewMemberOnce(t *testing.T) {
	r := newRig(t)
	name, members := r.namespaces(2)
	first := r.named(name)
	first.writing.Lock()
	var granting sync.WaitGroup
	for range 3 {
		granting.Go(func() {
			if err := r.grant(members[0]); err != nil {
				t.Error(err)
			}
		})
	}
	testkube.Eventually(t, "all wait", func() error {
		first.mu.Lock()
		defer first.mu.Unlock()
		if w := first.waiting[members[0].Name]; w == nil || w.callers < 3 {
			return fmt.Errorf("%v waits", w)
		}
		return nil
	})
	for i := range room {
		first.bound[fmt.Sprintf("former-%d", i)] = "uid" // so that the next member gets another binding
	}
	first.writing.Unlock()
	granting.Wait()
	r.check(r.grant(members[0]))
	r.check(r.grant(members[1]))
	if writes := r.writes.Load(); writes != 2 {
		t.Errorf("two members took %d writes", writes)
	}
	if !first.holds(members[0].Name) || len(first.waiting) != 0 {
		t.Errorf("the binding has %v, and %v wait", first.bound, first.waiting)
	}
	r.binds(r.Controller.bindings[1].name, "the other member", members[1])
}

func TestWhatSomebodyElseWritesIsSetBack(t *testing.T) {
	r := newRig(t)
	name, namespaces := r.namespaces(3)
	for _, namespace := range namespaces[:2] {
		r.check(r.grant(namespace))
	}
	edit := func(subjects ...rbacv1.Subject) {
		binding := r.bound(name)
		binding.Subjects = subjects
		r.check(r.Client.Update(context.Background(), binding))
	}
	edit(kube.AccountSubject("kube-system", "default"))
	r.reconcile(name)
	r.binds(name, "after an edit", namespaces[:2]...)
	r.check(r.Client.Delete(context.Background(), r.bound(name)))
	r.reconcile(name)
	r.binds(name, "after its deletion", namespaces[:2]...)

	edit()
	if err := r.grant(namespaces[2]); !apierrors.IsConflict(err) {
		t.Errorf("a binding that was edited and not read since: %v", err)
	}
	r.check(r.grant(namespaces[2]))
	r.binds(name, "with one that joins after an edit", namespaces...)

	edit(append(r.bound(name).Subjects, kube.AccountSubject("kube-system", "agent"), kube.AccountSubject(namespaces[0].Name, "default"))...)
	r.restart()
	r.reconcile(name)
	r.binds(name, "after an edit while no hub ran", namespaces...)
}

func TestAMemberWhoseNamespaceIsGoneIsNotBoundAnyMore(t *testing.T) {
	r := newRig(t)
	name, members := r.namespaces(4)
	for _, namespace := range members {
		r.check(r.grant(namespace))
	}
	r.remove(members[3])
	r.reconcile(name)
	r.binds(name, "one left", members[:3]...)
	r.remove(members[2])
	r.restart()
	r.reconcile(name)
	r.binds(name, "one left while no hub ran", members[:2]...)

	r.remove(members[1])
	r.namespace(members[1].Name)
	r.reconcile(name)
	r.binds(name, "somebody made the namespace of one anew", members[0])
	r.remove(members[0])
	r.namespace(members[0].Name)
	r.restart()
	r.reconcile(name)
	if err := r.Get(context.Background(), types.NamespacedName{Name: name}, &rbacv1.ClusterRoleBinding{}); !apierrors.IsNotFound(err) {
		t.Errorf("the binding of nobody, after somebody made the namespace of the last one anew while no hub ran: %v", err)
	}
}

func TestAMemberWhoseNamespaceIsMadeAnewIsBoundAgain(t *testing.T) {
	r := newRig(t)
	name, members := r.namespaces(1)
	r.check(r.grant(members[0]))
	r.remove(members[0])
	anew := r.namespace(members[0].Name)
	r.check(r.grant(anew))
	r.reconcile(name)
	r.binds(name, "with the other namespace", anew)
	r.restart()
	r.reconcile(name)
	r.binds(name, "by the next hub", anew)
}

func TestAnAccountStaysOnlyForANamespaceThatTheBindingTells(t *testing.T) {
	r := newRig(t)
	name, members := r.namespaces(2)
	for what, note := range map[string]string{
		"nothing": "", "no JSON": "{", "no UID": `{"%s":"%s","%s":""}`, "another UID": `{"%s":"%s","%s":"1"}`,
	} {
		for _, namespace := range members {
			r.check(r.grant(namespace))
		}
		binding := r.bound(name)
		var told []*corev1.Namespace
		if strings.Contains(note, "%") {
			note, told = fmt.Sprintf(note, members[0].Name, members[0].UID, members[1].Name), members[:1]
		}
		binding.Annotations[annotationNamespaces] = note
		r.check(r.Client.Update(context.Background(), binding))
		r.restart()
		r.reconcile(name)
		if told != nil {
			r.binds(name, what, told...)
		} else if err := r.Get(context.Background(), types.NamespacedName{Name: name}, &rbacv1.ClusterRoleBinding{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestABindingOfSomebodyElseIsLeftAlone(t *testing.T) {
	r := newRig(t)
	name, namespaces := r.namespaces(2)
	theirs := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}
	r.check(r.Client.Create(context.Background(), theirs))
	t.Cleanup(func() { r.check(r.Client.Delete(context.Background(), theirs)) })
	if err := r.grant(namespaces[0]); !kube.IsTaken(err) || !strings.Contains(err.Error(), name) {
		t.Errorf("the error is %v", err)
	}
	r.reconcile(name)
	r.binds(name, "it is as it was")
	r.check(r.grant(namespaces[0]))
	r.binds(r.Controller.bindings[1].name, "the member has another one", namespaces[0])
	r.restart()
	r.check(r.grant(namespaces[1]))
	r.binds(r.Controller.bindings[1].name, "the next member has it, too", namespaces...)
}

// TestAQuarantineEndsAlsoARightOfALostAnswer loses the answer to a write. Then another binding is
// the first choice for the member.
func TestAQuarantineEndsAlsoARightOfALostAnswer(t *testing.T) {
	r := newRig(t)
	name, members := r.namespaces(2)
	confined, other := members[0], members[1]
	r.check(r.grant(other))
	r.mute = true
	if err := r.grant(confined); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the answer is %v", err)
	}
	r.binds(name, "the write has arrived", members...)
	second := r.Controller.bindings[1]
	for i := range 5 {
		second.bound[fmt.Sprintf("former-%d", i)] = "uid"
	}
	r.check(r.Withdraw(context.Background(), confined.Name))
	r.binds(name, "withdrawn", other)
}

func TestAQuarantinedMemberIsBoundAgainOnlyAfterwards(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	name, namespaces := r.namespaces(2)
	confined, other := namespaces[0], namespaces[1]
	withdraw := func() { r.t.Helper(); r.check(r.Withdraw(ctx, confined.Name)) }
	readmit := func() { r.t.Helper(); r.check(r.Readmit(ctx, confined.Name, confined.UID)) }
	r.check(r.grant(confined))
	r.check(r.grant(other))
	withdraw()
	r.binds(name, "withdrawn", other)
	r.check(r.grant(confined))
	r.binds(name, "granted meanwhile", other)
	r.restart()
	withdraw()
	readmit()
	r.binds(name, "readmitted by a process that has not seen it bound", other)
	r.check(r.grant(confined))
	r.binds(name, "granted after that", namespaces...)
	withdraw()
	writes := r.writes.Load()
	withdraw()
	if now := r.writes.Load(); now != writes {
		t.Errorf("to withdraw it again costs %d writes", now-writes)
	}
	readmit()
	r.binds(name, "readmitted", namespaces...)
	r.restart()
	withdraw()
	r.check(r.grant(confined))
	readmit()
	r.binds(name, "readmitted after a grant meanwhile", namespaces...)
}
