package membership

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func tainted(text string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "clusters", Name: "web", Annotations: map[string]string{fleet.AnnotationTaints: text}}
}

func TestTaintsComeFromTheAnnotationAndTheSpec(t *testing.T) {
	mc := &clusterv1beta1.MemberCluster{ObjectMeta: tainted("gpu:NoSchedule, a/b=c:NoSchedule,what")}
	mc.Spec.Taints = []clusterv1beta1.Taint{{Key: "gpu", Effect: NoSchedule}, {Key: "old", Value: "x", Effect: NoSchedule}}
	want := []clusterv1beta1.Taint{
		{Key: "gpu", Effect: NoSchedule}, {Key: "old", Value: "x", Effect: NoSchedule}, {Key: "a/b", Value: "c", Effect: NoSchedule},
		{Key: "what", Effect: NoSchedule},
	}
	if diff := cmp.Diff(want, Taints(mc)); diff != "" {
		t.Error(diff)
	}
	if got := Taints(&fleet.Cluster{ObjectMeta: tainted("")}); got != nil {
		t.Errorf("without a taint: %v", got)
	}
	lost := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{fleet.AnnotationLost: "2026-01-02T03:04:05Z"}}}
	if got := Taints(lost); len(got) != 1 || TaintText(got[0]) != "muster/lost:NoSchedule" {
		t.Errorf("the taints of a member without heartbeats: %v", got)
	}
	lost.Annotations[fleet.AnnotationTaints] = "muster/lost:NoSchedule"
	if got := Taints(lost); len(got) != 1 {
		t.Errorf("the same taint twice: %v", got)
	}
	lost.Annotations = map[string]string{fleet.AnnotationLost: ""}
	if got := Taints(lost); got != nil {
		t.Errorf("an empty mark: %v", got)
	}
	for _, text := range []string{"gpu:NoSchedule", "a/b=c:NoSchedule"} {
		if got := TaintText(ParseTaint(text)); got != text {
			t.Errorf("%s became %s", text, got)
		}
	}
}

func TestATaintHoldsBackWhatDoesNotTolerateIt(t *testing.T) {
	bundle := func(all ...[]fleet.Toleration) *fleet.Bundle {
		b := &fleet.Bundle{}
		for _, tolerations := range all {
			b.Spec.Targets = append(b.Spec.Targets, fleet.BundleTarget{Tolerations: tolerations})
		}
		return b
	}
	gpu, exists := []fleet.Toleration{{Key: "gpu", Value: "a100"}}, []fleet.Toleration{{Key: "gpu", Operator: "Exists"}}
	every, other := []fleet.Toleration{{Operator: "Exists"}}, []fleet.Toleration{{Key: "gpu", Value: "h100"}}
	agent := bundle(nil)
	agent.Labels = map[string]string{fleet.LabelAgent: "v1"}
	const one, two = "gpu=a100:NoSchedule", "gpu=a100:NoSchedule,old:NoSchedule"
	for name, row := range map[string]struct {
		taints    string
		bundle    *fleet.Bundle
		matched   []int
		delivered bool
		held      bool
	}{
		"no toleration":                      {one, bundle(nil), []int{0}, false, true},
		"the toleration of the value":        {one, bundle(gpu), []int{0}, false, false},
		"the toleration of another value":    {one, bundle(other), []int{0}, false, true},
		"the toleration of every value":      {one, bundle(exists), []int{0}, false, false},
		"one of two taints":                  {two, bundle(exists), []int{0}, false, true},
		"every taint":                        {two, bundle(every), []int{0}, false, false},
		"a target that does not match":       {one, bundle(nil, exists), []int{0}, false, true},
		"the second of the matching targets": {one, bundle(nil, exists), []int{0, 1}, false, false},
		"a Bundle that is there":             {one, bundle(nil), []int{0}, true, false},
		"the Bundle of the agent":            {one, agent, []int{0}, false, false},
		"no taint":                           {"", bundle(nil), []int{0}, false, false},
	} {
		got := HeldByTaint(&fleet.Cluster{ObjectMeta: tainted(row.taints)}, row.bundle, row.matched, row.delivered)
		if (got != "") != row.held {
			t.Errorf("%s: %q", name, got)
		}
	}
}
