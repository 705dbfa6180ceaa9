package membership

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestAQuarantineIsEveryValueButFalse(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "": true, "yes": true, "false": false} {
		annotations := map[string]string{fleet.AnnotationQuarantined: value}
		for _, o := range []metav1.Object{
			&fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}},
			&clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}},
		} {
			if got := Quarantined(o); got != want {
				t.Errorf("%T with the value %q: %t", o, value, got)
			}
		}
	}
	if Quarantined(&fleet.Cluster{}) {
		t.Error("without the annotation it is quarantined")
	}
}

func TestAQuarantineNamesItsUserAndItsReason(t *testing.T) {
	for want, annotations := range map[string]map[string]string{
		"":                      nil,
		" by ada":               {fleet.AnnotationQuarantinedBy: "ada"},
		" (odd traffic)":        {fleet.AnnotationQuarantineReason: "odd \n traffic"},
		" by ada (odd traffic)": {fleet.AnnotationQuarantinedBy: "ada", fleet.AnnotationQuarantineReason: "odd traffic"},
	} {
		if got := QuarantinedBy(&fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web"}}
	if got := EndQuarantine(cluster); got != "muster quarantine clusters/web --undo" {
		t.Error(got)
	}
}
