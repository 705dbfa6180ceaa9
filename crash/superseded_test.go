package crash

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// annotationReadable is the number of requests in the Role of a token.
const annotationReadable = "muster/readable-requests"

// superseded returns the names of the requests of agents that asked again after they were killed,
// with which they lost the key to the answer. The hub denies such a request, and for an hour the
// agent may read that, because it may still run.
func superseded(planes []plane) map[types.UID]string {
	found := map[types.UID]string{}
	for _, p := range planes {
		for _, o := range p.objects {
			if o.GetKind() == "ClusterRegistration" && field(o, "status", "state") == "Denied" && field(o, "status", "reason") == "Superseded" {
				found[o.GetUID()] = o.GetName()
			}
		}
	}
	return found
}

// withoutRights removes the rights to read superseded requests from the Role of a token, which all
// its requests share.
func withoutRights(o unstructured.Unstructured, requests map[types.UID]string) {
	if _, shared := o.GetAnnotations()[annotationReadable]; o.GetKind() != "Role" || !shared {
		return
	}
	passed := slices.Collect(maps.Values(requests))
	rules, _, _ := unstructured.NestedSlice(o.Object, "rules") // none without a readable request
	removed := 0
	rules = slices.DeleteFunc(rules, func(rule any) bool {
		fields, _ := rule.(map[string]any)
		names, _ := fields["resourceNames"].([]any)
		others := slices.DeleteFunc(slices.Clone(names), func(name any) bool {
			text, _ := name.(string)
			return slices.Contains(passed, text)
		})
		fields["resourceNames"] = others
		removed += len(names) - len(others)
		return len(others) == 0
	})
	annotations := o.GetAnnotations()
	count, err := strconv.Atoi(annotations[annotationReadable])
	if removed == 0 || err != nil {
		return
	}
	o.Object["rules"] = nil
	if len(rules) > 0 {
		o.Object["rules"] = rules
	}
	annotations[annotationReadable] = strconv.Itoa(count - removed)
	o.SetAnnotations(annotations)
}

func TestOnlyTheRightToReadASupersededRequestIsLeftOut(t *testing.T) {
	const role = "kind: Role\nmetadata: {name: registration-token, annotations: {muster/readable-requests: '%'}}\nrules: "
	const rule = "{apiGroups: [fleet.cattle.io], resources: [clusterregistrations], verbs: [get]"
	passed := map[types.UID]string{"u": "request-aaaaa"}
	for name, row := range map[string]struct{ count, rules, wantCount, want string }{
		"none":         {"0", "null", "0", "null"},
		"a superseded": {"1", "[" + rule + ", resourceNames: [request-aaaaa]}]", "0", "null"},
		"another":      {"1", "[" + rule + ", resourceNames: [request-bbbbb]}]", "1", "[" + rule + ", resourceNames: [request-bbbbb]}]"},
		"both": {
			"2", "[" + rule + ", resourceNames: [request-aaaaa, request-bbbbb]}]", "1", "[" + rule + ", resourceNames: [request-bbbbb]}]",
		},
		"more by number": {"7", "null", "7", "null"},
	} {
		read := func(count, rules string) (o unstructured.Unstructured) {
			if err := yaml.Unmarshal([]byte(strings.ReplaceAll(role, "%", count)+rules), &o.Object); err != nil {
				t.Fatal(err)
			}
			return o
		}
		got := read(row.count, row.rules)
		withoutRights(got, passed)
		if diff := cmp.Diff(read(row.wantCount, row.want).Object, got.Object); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
