package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

func TestWhatAFormerAgentHasReported(t *testing.T) {
	own := clusterv1beta1.InternalMemberClusterStatus{
		Properties:    map[string]clusterv1beta1.PropertyValue{"a/count": {Value: "1"}},
		ResourceUsage: clusterv1beta1.ResourceUsage{Capacity: corev1.ResourceList{"cpu": resource.MustParse("1")}},
		Conditions:    []metav1.Condition{{Type: "Collected"}},
	}
	if got := ofFormer(own, own); len(got) > 0 {
		t.Errorf("of its own report it would remove %v", got)
	}
	report := *own.DeepCopy()
	report.Properties["b/x~y"] = clusterv1beta1.PropertyValue{Value: "2"}
	report.ResourceUsage.Capacity["nvidia.com/gpu"] = resource.MustParse("1")
	report.ResourceUsage.Available = corev1.ResourceList{"cpu": resource.MustParse("1")}
	report.Conditions = []metav1.Condition{{Type: "Before"}, {Type: "Collected"}, {Type: "After"}}
	report.AgentStatus = []clusterv1beta1.AgentStatus{{Type: "ServiceExportImportController"}}
	want := []string{
		"/status/properties/b~1x~0y", "/status/resourceUsage/available/cpu", "/status/resourceUsage/capacity/nvidia.com~1gpu",
		"/status/conditions/2", "/status/conditions/0",
	}
	if diff := cmp.Diff(want, ofFormer(report, own)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
