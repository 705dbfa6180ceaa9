package audit

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/muster-fleet/muster/api/muster/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"

	ctrl "sigs.k8s.io/controller-runtime"
)

// rig is an API server that answers creations with a failure, if there is one.
type rig struct {
	client.Client
	clock   *clocktesting.FakePassiveClock
	config  *settings.Controller
	failure error
	// creates counts the creations; failures is the number of the first ones that fail, 0 for all.
	creates, failures int
}

func newRig(t *testing.T, text string) *rig {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	r := &rig{clock: clocktesting.NewFakePassiveClock(noon)}
	r.Client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if _, is := o.(*v1alpha1.AuditEntry); is {
				r.creates++
				if r.failure != nil && (r.failures == 0 || r.creates <= r.failures) {
					return r.failure
				}
			}
			return c.Create(ctx, o, options...)
		},
	})
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: naming.HubConfigMap}, Data: map[string]string{"config": text},
	}
	if err := r.Create(context.Background(), configMap); err != nil {
		t.Fatal(err)
	}
	r.config = settings.New(r.Client, nil, "system")
	if err := r.config.Load(context.Background(), r.Client); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) writer() *Writer { return &Writer{Client: r.Client, Clock: r.clock, Config: r.config} }

func (r *rig) names(t *testing.T) string {
	t.Helper()
	var list v1alpha1.AuditEntryList
	if err := r.List(context.Background(), &list, client.InNamespace("clusters")); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range list.Items {
		names = append(names, one.Name)
	}
	return strings.Join(names, " ")
}

func factOf(id string) Fact {
	return Fact{Namespace: "clusters", ID: []string{id}, Spec: v1alpha1.AuditEntrySpec{
		Reason: v1alpha1.AuditGranted, Object: v1alpha1.AuditObject{Kind: "Cluster", Namespace: "clusters", Name: "web"},
		Message: strings.Repeat("x", 5000),
	}}
}

func TestAFactHasOneEntryHoweverOftenItIsWritten(t *testing.T) {
	r := newRig(t, "")
	for range 3 { // each time by another process
		if err := r.writer().Write(context.Background(), factOf("1")); err != nil {
			t.Fatal(err)
		}
		r.clock.SetTime(r.clock.Now().Add(time.Hour))
	}
	if err := r.writer().Write(context.Background(), factOf("2")); err != nil {
		t.Fatal(err)
	}
	if got := r.names(t); got != "granted-1 granted-2" {
		t.Errorf("there are %s", got)
	}
	var first v1alpha1.AuditEntry
	if err := r.Get(context.Background(), client.ObjectKey{Namespace: "clusters", Name: "granted-1"}, &first); err != nil ||
		!first.Spec.Time.Equal(new(metav1.NewTime(noon))) {
		t.Errorf("it is of %s: %v", first.Spec.Time, err)
	}
	if n := len(first.Spec.Message); n > 2048 {
		t.Errorf("its message has %d characters", n)
	}
}

func TestAnErrorThatPassesLosesNoEntry(t *testing.T) {
	kind := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "auditentries"}
	for _, failure := range []error{
		apierrors.NewInternalError(errors.New("etcd has another leader")),
		apierrors.NewConflict(kind, "granted-1", errors.New("the ResourceQuota has changed")),
		apierrors.NewServerTimeout(kind, "create", 0),
		apierrors.NewTimeoutError("the request did not end in time", 0),
	} {
		r := newRig(t, "")
		r.failure, r.failures = failure, 2
		if err := r.writer().Write(context.Background(), factOf("1")); err != nil {
			t.Fatal(err)
		}
		if got := r.names(t); got != "granted-1" {
			t.Errorf("%v: there are %q after %d attempts", failure, got, r.creates)
		}
	}
}

func TestWhatIsRefusedStopsNobody(t *testing.T) {
	kind := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "auditentries"}
	for _, c := range []struct {
		name    string
		failure error
		repeats bool
	}{
		{"discovery does not know the kind", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: kind.Group, Kind: "AuditEntry"}}, false},
		{"the kind is served no more", apierrors.NewGenericServerResponse(http.StatusNotFound, "POST", kind, "", "404 page not found", 0, true),
			false},
		{"its definition is being deleted", apierrors.NewMethodNotSupported(kind, "create"), false},
		{"forbidden, by a quota for example", apierrors.NewForbidden(kind, "", errors.New("quota")), false},
		{"invalid", apierrors.NewInvalid(schema.GroupKind{}, "", nil), false},
		{"a webhook for all kinds fails", apierrors.NewInternalError(errors.New("failed calling webhook")), false},
		{"a webhook for all kinds never answers", context.DeadlineExceeded, false},
		{"the API server is busy", apierrors.NewTooManyRequests("busy", 1), true},
		{"the API server does not answer", errors.New("connection refused"), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, "")
			w := r.writer()
			r.failure = c.failure
			if err := w.Write(context.Background(), factOf("1")); (err != nil) != c.repeats {
				t.Fatalf("it returns %v", err)
			}
			r.failure = nil
			if err := w.Write(context.Background(), factOf("2")); err != nil {
				t.Fatal(err)
			}
			if paused := r.creates == 1; paused != kube.NotServed(c.failure) {
				t.Errorf("%d entries were tried at once", r.creates)
			}
			r.clock.SetTime(noon.Add(unservedPause))
			if err := w.Write(context.Background(), factOf("3")); err != nil || !strings.HasSuffix(r.names(t), "granted-3") {
				t.Errorf("after a while there are %s: %v", r.names(t), err)
			}
		})
	}
}

func TestWithoutEntriesNoneIsWritten(t *testing.T) {
	r := newRig(t, `{"audit":{"maxEntries":0}}`)
	for _, w := range []*Writer{nil, r.writer()} {
		if err := w.Write(context.Background(), factOf("1")); err != nil || r.creates > 0 {
			t.Errorf("%d were tried: %v", r.creates, err)
		}
	}
}

func TestEntriesAreDeletedByAgeAndNumber(t *testing.T) {
	r := newRig(t, `{"audit":{"maxAge":"2h","maxEntries":2}}`)
	c := New(controller.Deps{Client: r.Client, Clock: r.clock, Config: r.config})
	reconcile := func() time.Duration {
		t.Helper()
		result, err := c.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "clusters"}})
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	for _, id := range []string{"1", "2", "3"} {
		if err := r.writer().Write(context.Background(), factOf(id)); err != nil {
			t.Fatal(err)
		}
		r.clock.SetTime(r.clock.Now().Add(30 * time.Minute))
	}
	if wake := reconcile(); r.names(t) != "granted-2 granted-3" || wake != time.Hour {
		t.Errorf("%s are left; looks again after %s", r.names(t), wake)
	}
	r.clock.SetTime(noon.Add(150 * time.Minute))
	if wake := reconcile(); r.names(t) != "granted-3" || wake != 30*time.Minute {
		t.Errorf("%s are left; looks again after %s", r.names(t), wake)
	}
	r.clock.SetTime(noon.Add(24 * time.Hour))
	if wake := reconcile(); r.names(t) != "" || wake != 0 {
		t.Errorf("%s are left; looks again after %s", r.names(t), wake)
	}
}
