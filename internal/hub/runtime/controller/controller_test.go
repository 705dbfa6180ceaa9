package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-fleet/muster/internal/kube"
)

func named(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func TestEveryEventReachesOneHandler(t *testing.T) {
	var got []string
	name := func(o *corev1.ConfigMap) string {
		if o == nil {
			return "nothing"
		}
		return o.Name
	}
	h := On(func(_ context.Context, before, after *corev1.ConfigMap, _ Queue) {
		got = append(got, name(before)+" to "+name(after))
	})
	ctx := t.Context()
	h.Create(ctx, event.CreateEvent{Object: named("new")}, nil)
	h.Update(ctx, event.UpdateEvent{ObjectOld: named("old"), ObjectNew: named("new")}, nil)
	h.Delete(ctx, event.DeleteEvent{Object: named("old")}, nil)
	h.Generic(ctx, event.GenericEvent{Object: named("any")}, nil)
	later := SkipInitial(h)
	later.Create(ctx, event.CreateEvent{Object: named("ignored"), IsInInitialList: true}, nil)
	later.Create(ctx, event.CreateEvent{Object: named("late")}, nil)
	later.Delete(ctx, event.DeleteEvent{Object: named("late")}, nil)
	only := OnDeleted(h)
	only.Create(ctx, event.CreateEvent{Object: named("ignored")}, nil)
	only.Delete(ctx, event.DeleteEvent{Object: named("last")}, nil)
	if diff := cmp.Diff([]string{"nothing to new", "old to new", "old to nothing", "any to any", "nothing to late", "late to nothing",
		"last to nothing"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAllObjectsOfAKindAreRequested(t *testing.T) {
	reader := fake.NewClientBuilder().WithObjects(named("a"), named("b")).Build()
	want := []reconcile.Request{
		{NamespacedName: types.NamespacedName{Namespace: "default", Name: "a"}}, {
			NamespacedName: types.NamespacedName{Namespace: "default", Name: "b"},
		},
	}
	if diff := cmp.Diff(want, All(reader, &corev1.ConfigMapList{})(t.Context(), nil)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAConflictIsReconciledAgainAndOtherErrorsAreReturned(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("written by somebody else"))
	failed := errors.New("failed")
	for _, c := range []struct {
		name   string
		err    error
		result ctrl.Result
		want   error
	}{
		{name: "none", result: ctrl.Result{RequeueAfter: 7}},
		{name: "a conflict", err: fmt.Errorf("writing: %w", conflict), result: ctrl.Result{RequeueAfter: afterConflict}},
		{name: "another error", err: failed, want: failed, result: ctrl.Result{RequeueAfter: 7}},
	} {
		result, err := RetryConflicts(nil, reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
			return ctrl.Result{RequeueAfter: 7}, c.err
		})).Reconcile(t.Context(), ctrl.Request{})
		if result != c.result || !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v", c.name, result, err)
		}
	}
}

// TestConflictsThatDoNotEndAreRetriedLessAndLessOften is what a controller meets after its API
// server was restored, until its cache is listed again.
func TestConflictsThatDoNotEndAreRetriedLessAndLessOften(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("written by somebody else"))
	answer := error(conflict)
	logged := 0
	ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(string, string) { logged++ }, funcr.Options{}))
	r := RetryConflicts(nil, reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) { return ctrl.Result{}, answer }))
	for i := range 20 {
		result, err := r.Reconcile(ctx, ctrl.Request{})
		if want := min(afterConflict<<i, conflictCap); err != nil || result.RequeueAfter != want {
			t.Errorf("conflict %d: again after %s, want %s: %v", i+1, result.RequeueAfter, want, err)
		}
		if want := max(0, i+1-quietConflicts); logged != want {
			t.Errorf("conflict %d: %d are logged, want %d", i+1, logged, want)
		}
	}
	answer = nil
	_, _ = r.Reconcile(ctx, ctrl.Request{})
	answer = conflict
	if result, err := r.Reconcile(ctx, ctrl.Request{}); err != nil || result.RequeueAfter != afterConflict {
		t.Errorf("after a reconcile without one: again after %s: %v", result.RequeueAfter, err)
	}
}

func TestAStatusThatIsRefusedIsAnEvent(t *testing.T) {
	resource := schema.GroupResource{Resource: "configmaps"}
	for name, row := range map[string]struct {
		answer error
		told   bool
	}{
		"invalid":          {apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "a", nil), true},
		"larger than etcd": {errors.New("etcdserver: request is too large"), true},
		"forbidden":        {apierrors.NewForbidden(resource, "a", nil), true},
		"no answer":        {errors.New("connection refused"), false},
		"gone":             {apierrors.NewNotFound(resource, "a"), false},
		"written":          {nil, false},
	} {
		refusing := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
				return row.answer
			},
		})
		recorder := events.NewFakeRecorder(1)
		_, err := RetryConflicts(recorder, reconcile.Func(func(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
			before := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1"}}
			after := before.DeepCopy()
			after.Status.Message = "new"
			return ctrl.Result{}, errors.Join(errors.New("another"), kube.PatchStatus(ctx, refusing, before, after))
		})).Reconcile(t.Context(), ctrl.Request{})
		if (len(recorder.Events) > 0) != row.told || row.answer != nil && !errors.Is(err, row.answer) {
			t.Errorf("%s: %d Events, %v", name, len(recorder.Events), err)
		}
	}
}
