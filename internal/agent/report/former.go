package report

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

// ofFormer returns JSON pointers to the parts of the report from a former agent, such as
// KubeFleet's. They are its properties, its conditions, and resources not counted by this agent. A
// write of this agent does not remove them.
//
// The agentStatus of other agent types is not included. Pointers into a list start with its last
// entry, to keep the positions of the others.
func ofFormer(report, own clusterv1beta1.InternalMemberClusterStatus) (pointers []string) {
	for name := range report.Properties {
		if _, mine := own.Properties[name]; !mine {
			pointers = append(pointers, pointer("properties", name))
		}
	}
	for _, usage := range []struct {
		field    string
		has, own corev1.ResourceList
	}{
		{"capacity", report.ResourceUsage.Capacity, own.ResourceUsage.Capacity},
		{"allocatable", report.ResourceUsage.Allocatable, own.ResourceUsage.Allocatable},
		{"available", report.ResourceUsage.Available, own.ResourceUsage.Available},
	} {
		for name := range usage.has {
			if _, mine := usage.own[name]; !mine {
				pointers = append(pointers, pointer("resourceUsage", usage.field, string(name)))
			}
		}
	}
	slices.Sort(pointers)
	for i, condition := range slices.Backward(report.Conditions) {
		if !slices.ContainsFunc(own.Conditions, func(c metav1.Condition) bool { return c.Type == condition.Type }) {
			pointers = append(pointers, pointer("conditions", fmt.Sprint(i)))
		}
	}
	return pointers
}

// pointer returns the JSON pointer (RFC 6901) to a field of the status.
func pointer(fields ...string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	path := "/status"
	for _, field := range fields {
		path += "/" + escape.Replace(field)
	}
	return path
}

// dropFormer removes the parts of a former agent from the report. After a failure, the next write
// tries again.
func (r *Reporter) dropFormer(ctx context.Context, own clusterv1beta1.InternalMemberClusterStatus) {
	if r.report == nil {
		return
	}
	pointers := ofFormer(r.report.Status, own)
	if len(pointers) == 0 {
		return
	}
	if err := r.Remove(ctx, r.report.ResourceVersion, pointers); err != nil && ctx.Err() == nil {
		logr.FromContextOrDiscard(ctx).Info("Failed to remove the report of a former agent", "reason", r.Explain(err))
	}
}
