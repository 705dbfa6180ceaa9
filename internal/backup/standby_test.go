package backup

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestARestoredMemberClusterHasTheKeyOfItsReport(t *testing.T) {
	report := func(kind, owner, key string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "a", "ownerReferences": []any{
				map[string]any{"apiVersion": "x/v1", "kind": kind, "name": "a", "uid": owner, "controller": true},
			}},
			"status": map[string]any{"agentKey": key},
		}}
	}
	for name, c := range map[string]struct {
		report *unstructured.Unstructured
		before string
		hub    *Hub
		merge  bool
		want   string
	}{
		"of its own report":                   {report: report("MemberCluster", "a", "key"), hub: &Hub{}, want: "key"},
		"not of the report of another":        {report: report("MemberCluster", "b", "key"), hub: &Hub{}},
		"not of the report of a Cluster":      {report: report("Cluster", "a", "key"), hub: &Hub{}},
		"not of an agent without a key":       {report: report("MemberCluster", "a", ""), hub: &Hub{}},
		"not an earlier one":                  {report: report("MemberCluster", "a", ""), before: "earlier", hub: &Hub{}},
		"not at a hub without the lost key":   {report: report("MemberCluster", "a", "key")},
		"not at a hub that keeps its own key": {report: report("MemberCluster", "a", "key"), hub: &Hub{}, merge: true},
	} {
		r := &restoring{agentKeys: map[types.UID]string{}, RestoreOptions: RestoreOptions{Merge: c.merge}}
		r.done.Hub = c.hub
		r.noteAgentKey(c.report)
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetUID("a")
		if c.before != "" {
			o.SetAnnotations(map[string]string{fleet.AnnotationRestoredKey: c.before})
		}
		if got := r.desired(members, o).GetAnnotations()[fleet.AnnotationRestoredKey]; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
