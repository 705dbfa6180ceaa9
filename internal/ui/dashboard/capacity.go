package dashboard

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
)

// readUsage reads the resources of the member's nodes from the report.
func (m *shownMember) readUsage(ctx context.Context, v *visitor, record client.Object) {
	var report clusterv1beta1.InternalMemberCluster
	if err := v.Get(ctx, client.ObjectKey{Namespace: membership.Namespace(record), Name: record.GetName()}, &report); err != nil {
		if client.IgnoreNotFound(err) != nil {
			m.note(fmt.Errorf("nodes and resources: %w", err))
		}
		return
	}
	if nodes := report.Status.Nodes; nodes != nil && nodes.Total > 0 {
		m.Usage = append(m.Usage, usage{
			"Nodes ready", strconv.Itoa(int(nodes.Ready)), strconv.Itoa(int(nodes.Total)), float64(nodes.Ready) / float64(nodes.Total),
		})
	}
	reported := report.Status.ResourceUsage
	names := map[corev1.ResourceName]string{corev1.ResourceCPU: "CPU", corev1.ResourceMemory: "Memory"}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		all, free := reported.Allocatable[name], reported.Available[name]
		if all.IsZero() {
			continue
		}
		used := all.DeepCopy()
		used.Sub(free)
		m.Usage = append(m.Usage, usage{
			names[name] + " requested", readable(used), readable(all), used.AsApproximateFloat64() / all.AsApproximateFloat64(),
		})
	}
}

// readable returns a quantity of memory in GiB, or in MiB below one GiB. It returns other
// quantities unchanged.
func readable(q resource.Quantity) string {
	if q.Format != resource.BinarySI {
		return q.String()
	}
	mebibytes := q.AsApproximateFloat64() / (1 << 20)
	if mebibytes < 1<<10 {
		return fmt.Sprintf("%.0f MiB", mebibytes)
	}
	return fmt.Sprintf("%.1f GiB", mebibytes/(1<<10))
}
