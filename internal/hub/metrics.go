package hub

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// serve registers metrics while this replica leads.
func serve(collectors ...prometheus.Collector) manager.RunnableFunc {
	return func(ctx context.Context) error {
		var err error
		for _, c := range collectors {
			err = errors.Join(err, metrics.Registry.Register(c))
			defer metrics.Registry.Unregister(c)
		}
		if err == nil {
			<-ctx.Done()
		}
		return err
	}
}
