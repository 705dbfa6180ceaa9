package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestReportStaysWithinWhatTheHubTakes(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	all := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceName("example.com/" + long): resource.MustParse("1"),
	}
	for i := range 200 {
		all[corev1.ResourceName(fmt.Sprintf("a.example.com/%d", i))] = resource.MustParse("1")
	}
	f := facts{
		summary: summary{capacity: all, allocatable: all, available: all}, unhealthy: long, leaving: long, unpruned: Unpruned{
			Reason: "Blocked", Message: long,
		},
	}
	status := (&Reporter{}).status(f, nil, time.Now())
	for _, usage := range []corev1.ResourceList{status.ResourceUsage.Capacity, status.ResourceUsage.Allocatable,
		status.ResourceUsage.Available} {
		if _, cpu := usage[corev1.ResourceCPU]; len(usage) != maxResources || !cpu {
			t.Errorf("%d resources, want %d with the processors: %v", len(usage), maxResources, usage)
		}
		for name := range usage {
			if len(name) > maxResourceName {
				t.Errorf("a resource has a name of %d characters", len(name))
			}
		}
	}
	for _, c := range status.AgentStatus[0].Conditions {
		if len(c.Message) > maxMessage {
			t.Errorf("%s has a message of %d characters", c.Type, len(c.Message))
		}
	}
}
