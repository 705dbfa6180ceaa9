package bundle

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
)

func TestAContentThatIsThereForOneBundleIsSharedWithoutReadingIt(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := fleet.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	reads := 0
	api := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			reads++
			return c.Get(ctx, key, o, options...)
		},
	}).Build()
	c := newContents(controller.Deps{Client: api, Live: api, Clock: clock.RealClock{}})
	of := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: "fleet-default", Name: name}
	}
	content := func() *fleet.Content { return &fleet.Content{ObjectMeta: metav1.ObjectMeta{Name: "s-1"}} }

	if c.share(of("first"), "s-1") {
		t.Fatal("a Content that nobody has seen is shared")
	}
	if err := c.ensure(t.Context(), of("first"), content()); err != nil {
		t.Fatal(err)
	}
	if !c.share(of("second"), "s-1") || !c.has(of("second")) || reads != 1 {
		t.Errorf("it is not shared, or was read %d times", reads)
	}
	lost := c.lost("s-1")
	slices.SortFunc(lost, func(a, b types.NamespacedName) int { return strings.Compare(a.Name, b.Name) })
	if diff := cmp.Diff([]types.NamespacedName{of("first"), of("second")}, lost); diff != "" {
		t.Errorf("who lost it (-want +got):\n%s", diff)
	}
	if c.share(of("second"), "s-1") || c.has(of("first")) {
		t.Error("a Content that was deleted is shared")
	}

	if err := c.ensure(t.Context(), of("first"), content()); err != nil {
		t.Fatal(err)
	}
	c.share(of("second"), "s-1")
	c.setDesired(of("first"), "")
	c.setDesired(of("second"), "s-2")
	if got := []string{(<-c.freed).Object.GetName(), (<-c.freed).Object.GetName()}; !slices.Equal(got, []string{"s-1", "s-1"}) ||
		len(c.bundles["s-1"]) != 0 {
		t.Errorf("freed is %v, and %v refer to it", got, c.bundles["s-1"])
	}
}

func TestAHubThatStartsKeepsContentsUntilItHasSeenTheBundles(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(fleet.AddToScheme(scheme), metav1.AddMetaToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	long := metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Now().Add(-time.Hour)), Generation: 1}
	used, unused := &fleet.Content{ObjectMeta: *long.DeepCopy()}, &fleet.Content{ObjectMeta: *long.DeepCopy()}
	used.Name, unused.Name = "s-used", "s-unused"
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(used, unused).
		WithIndex(&fleet.BundleDeployment{}, indexContent, func(client.Object) []string { return nil }).Build()
	c := newContents(controller.Deps{Client: api, Live: api, Clock: now})
	collect := func(when string, want time.Duration, left ...string) {
		t.Helper()
		for _, name := range []string{"s-used", "s-unused"} {
			result, err := c.collect(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
			if err != nil || result.RequeueAfter != want {
				t.Errorf("%s: of %s %v, again after %s", when, name, err, result.RequeueAfter)
			}
		}
		var contents fleet.ContentList
		if err := api.List(t.Context(), &contents); err != nil {
			t.Fatal(err)
		}
		var names []string
		for i := range contents.Items {
			names = append(names, contents.Items[i].Name)
		}
		slices.Sort(names)
		if diff := cmp.Diff(left, names); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	collect("at once", keepUnused, "s-unused", "s-used")
	c.setDesired(types.NamespacedName{Namespace: "fleet-default", Name: "for-nobody-yet"}, "s-used")
	now.SetTime(now.Now().Add(keepUnused))
	collect("later", 0, "s-used")
}
