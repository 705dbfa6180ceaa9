package bundle

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/controller"
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
	if got := []string{(<-c.freed).Object.GetName(), (<-c.freed).Object.GetName()}; !slices.Equal(got, []string{"s-1", "s-1"}) || len(c.bundles["s-1"]) != 0 {
		t.Errorf("freed is %v, and %v refer to it", got, c.bundles["s-1"])
	}
}
