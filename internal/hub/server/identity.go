package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/muster-fleet/muster/internal/hub/runtime/identity"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/process"
)

// follow works or stands still, as the identity of the hub requires. It begins anew after each
// change of the identity. So a promotion reaches all members, and a fenced hub runs no controller.
func follow(ctx context.Context, keeper *identity.Keeper, work, standStill func(context.Context) error) error {
	if err := errors.Join(metrics.Registry.Register(identity.Metrics{}), metrics.Registry.Register(settings.Metrics{})); err != nil {
		return fmt.Errorf("registering the metrics of the hub's identity and settings: %w", err)
	}
	defer metrics.Registry.Unregister(identity.Metrics{})
	defer metrics.Registry.Unregister(settings.Metrics{})
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	following.Go(func() { keeper.Follow(ctx) })
	for ctx.Err() == nil {
		if err := keeper.Load(ctx); err != nil {
			return err
		}
		run := work
		if keeper.Stopped() != "" {
			run = standStill
		}
		during, stop := context.WithCancel(ctx)
		following.Go(func() {
			keeper.Changed(during)
			stop()
		})
		err := run(during)
		changed := during.Err() != nil
		stop()
		switch {
		case !changed:
			return err
		case err != nil && ctx.Err() == nil:
			logr.FromContextOrDiscard(ctx).Info("Stopped for another identity", "reason", err.Error())
		}
	}
	return nil
}

// standStill serves the metrics and the probes of a hub that changes nothing. It is not ready, and
// says why.
func standStill(ctx context.Context, restConfig *rest.Config, options Options, why string) error {
	logr.FromContextOrDiscard(ctx).Info("The hub stands still", "reason", why)
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: NewScheme(), Metrics: metricsserver.Options{BindAddress: process.BindAddress(options.MetricsAddress)},
		HealthProbeBindAddress: process.BindAddress(options.ProbeAddress),
	})
	if err != nil {
		return fmt.Errorf("connecting to the hub cluster at %s: %w", restConfig.Host, err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("identity", func(*http.Request) error { return errors.New(why) }); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
