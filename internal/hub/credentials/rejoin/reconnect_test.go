package rejoin

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestMain(m *testing.M) { os.Exit(testkube.Main(m)) }

// TestAnErrorOfAMomentCostsNoAgentItsToken has the API server refuse one write, whichever, as while
// it counts a ResourceQuota that others change.
func TestAnErrorOfAMomentCostsNoAgentItsToken(t *testing.T) {
	cluster := testkube.Start(t, "reconnect")
	ctx := context.Background()
	c, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: cluster.Client(t).Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	for refused := range 5 {
		workspace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "clusters-"}}
		if err := c.Create(ctx, workspace); err != nil {
			t.Fatal(err)
		}
		writes := 0
		refuse := func() error {
			if writes++; writes == refused+1 {
				return apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "quota", nil)
			}
			return nil
		}
		once := interceptor.NewClient(c, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				if err := refuse(); err != nil {
					return err
				}
				return c.Create(ctx, o, options...)
			},
			SubResourceCreate: func(ctx context.Context, c client.Client, of string, o, sub client.Object,
				options ...client.SubResourceCreateOption) error {
				if err := refuse(); err != nil {
					return err
				}
				return c.SubResource(of).Create(ctx, o, sub, options...)
			},
		})
		i := New(controller.Deps{Client: once, Live: c, Clock: clock.RealClock{}, SystemNamespace: "cattle-fleet-system"})
		if token := i.Token(ctx, workspace.Name); token == "" || writes <= refused {
			t.Errorf("write %d of %d is refused: there is no token", refused, writes)
		}
	}
}

// TestTokensOfWorkspacesForWhichNobodyAsksAreForgotten has workspaces come and go.
func TestTokensOfWorkspacesForWhichNobodyAsksAreForgotten(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	i := New(controller.Deps{Clock: clock})
	known := func() (count int) {
		i.workspaces.ForgetWhere(func(string, *workspace) bool { count++; return false })
		return count
	}
	for day := range 10 {
		for n := range 100 {
			i.workspaces.Set(fmt.Sprintf("clusters-%d-%d", day, n), &workspace{token: "t", issued: clock.Now()})
		}
		i.workspaces.Set(fmt.Sprintf("failed-%d", day), &workspace{failed: clock.Now()})
		busy := &workspace{}
		busy.mu.Lock()
		i.workspaces.Set("busy", busy)
		i.sweep(clock.Now())
		if count := known(); count != 102 {
			t.Errorf("on day %d %d workspaces are known, want those of the day", day, count)
		}
		clock.Step(sharedFor)
	}
}
