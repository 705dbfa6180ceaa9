package customization

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestTemplatesOfTheNamespaceAreFilled(t *testing.T) {
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", Labels: map[string]string{"env": "prod", "odd": "x"}}}
	for name, row := range map[string]struct {
		by                  Rules
		helm                *fleet.HelmOptions
		labels, annotations map[string]string
		want                map[string]string
		wrong               string
	}{
		"a label and an annotation": {
			labels:      map[string]string{"env": "${ .ClusterLabels.env }", "team": "a"},
			annotations: map[string]string{"at": "${ .ClusterName }/${ .ClusterLabels.env }"},
			want:        map[string]string{"env": "prod", "team": "a", "at": "edge/prod"},
		},
		"a label that the Cluster lacks": {
			labels: map[string]string{"env": "${ .ClusterLabels.region }"}, wrong: "namespaceLabels.env: ",
		},
		"a result that is no value of a label": {
			labels: map[string]string{"env": "${ .ClusterLabels.env } and more"}, wrong: "namespaceLabels.env: the result is no value of a label",
		},
		"templates are turned off": {
			helm: &fleet.HelmOptions{DisablePreProcess: true}, annotations: map[string]string{"at": "${ .ClusterName }"},
			want: map[string]string{"at": "${ .ClusterName }"},
		},
		"a deployment of an earlier version": {
			by: Former, annotations: map[string]string{"at": "${ .ClusterName }"}, want: map[string]string{"at": "${ .ClusterName }"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bundle := &fleet.Bundle{}
			bundle.Spec.Helm, bundle.Spec.NamespaceLabels, bundle.Spec.NamespaceAnnotations = row.helm, row.labels, row.annotations
			options, err := Options(row.by, bundle, nil, cluster)
			if row.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), row.wrong) {
					t.Fatalf("the error is %v", err)
				}
				return
			}
			got := map[string]string{}
			for _, all := range []map[string]string{options.NamespaceLabels, options.NamespaceAnnotations} {
				for key, value := range all {
					got[key] = value
				}
			}
			if diff := cmp.Diff(row.want, got); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}
