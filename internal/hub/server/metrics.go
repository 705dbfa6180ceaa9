package server

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// serve registers metrics while this replica leads.
func serve(collectors ...prometheus.Collector) manager.RunnableFunc {
	return func(ctx context.Context) error {
		for _, c := range collectors {
			if err := metrics.Registry.Register(c); err != nil {
				return err
			}
			defer metrics.Registry.Unregister(c)
		}
		<-ctx.Done()
		return nil
	}
}
