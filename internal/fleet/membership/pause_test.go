package membership

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

func TestAPauseIsAnAnnotationOrTheFieldOfAClusterOnly(t *testing.T) {
	marked := func(value string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Annotations: map[string]string{fleet.AnnotationPaused: value}}
	}
	for name, row := range map[string]struct {
		o    metav1.Object
		want bool
	}{
		"a Cluster by its field":       {&fleet.Cluster{Spec: fleet.ClusterSpec{Paused: true}}, true},
		"a Cluster by its annotation":  {&fleet.Cluster{ObjectMeta: marked("true")}, true},
		"a Cluster with another value": {&fleet.Cluster{ObjectMeta: marked("false")}, false},
		"a MemberCluster":              {&clusterv1beta1.MemberCluster{ObjectMeta: marked("true")}, true},
		"a placement":                  {&placement.ResourcePlacement{ObjectMeta: marked("true")}, true},
		"nothing":                      {&clusterv1beta1.MemberCluster{}, false},
	} {
		if got := Paused(row.o); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
