package lifecycle

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestLabelsFromFactsAreTheHubsOwn(t *testing.T) {
	type labels = map[string]string
	for what, row := range map[string]struct {
		before  labels
		made    string
		desired labels
		want    labels
		marked  string
	}{
		"a new fact becomes a label": {labels{"env": "prod"}, "", labels{"facts.muster/region": "eu"},
			labels{"env": "prod", "facts.muster/region": "eu"}, `{"facts.muster/region":"eu"}`},
		"another value replaces the hub's": {
			labels{"facts.muster/region": "eu"}, `{"facts.muster/region":"eu"}`, labels{"facts.muster/region": "us"},
			labels{"facts.muster/region": "us"}, `{"facts.muster/region":"us"}`,
		},
		"a fact that is not wanted any more is removed": {
			labels{"env": "prod", "facts.muster/region": "eu"}, `{"facts.muster/region":"eu"}`, nil, labels{"env": "prod"}, "",
		},
		"a label that a user set stays": {labels{"facts.muster/region": "mine"}, "", labels{"facts.muster/region": "eu"},
			labels{"facts.muster/region": "mine"}, ""},
		"a label that a user changed stays, also when facts are off": {
			labels{"facts.muster/region": "mine"}, `{"facts.muster/region":"eu"}`, nil, labels{"facts.muster/region": "mine"}, "",
		},
		"an edited mark removes no label outside the domains of facts": {
			labels{"env": "prod"}, `{"env":"prod"}`, nil, labels{"env": "prod"}, "",
		},
		"a mark that cannot be read makes each label the user's": {labels{"facts.muster/region": "eu"}, `{`, nil,
			labels{"facts.muster/region": "eu"}, ""},
	} {
		cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Labels: row.before}}
		if row.made != "" {
			cluster.Annotations = labels{fleet.AnnotationFactLabels: row.made}
		}
		relabel(cluster, row.desired)
		if diff := cmp.Diff(row.want, cluster.Labels); diff != "" || cluster.Annotations[fleet.AnnotationFactLabels] != row.marked {
			t.Errorf("%s: marked %s (-want +got):\n%s", what, cluster.Annotations[fleet.AnnotationFactLabels], diff)
		}
		if relabel(cluster, row.desired) {
			t.Errorf("%s: the next time differs", what)
		}
	}
}
