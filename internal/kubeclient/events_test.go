package kubeclient

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"
)

// cut is the kept part of an object.
type cut string

func TestEachEventReachesOneFunctionWithTheKeptPart(t *testing.T) {
	var got []string
	events := Events[cut]{
		Read: func(obj any) cut {
			if kept, before := obj.(cut); before {
				return kept
			}
			return cut(obj.(string)[:1])
		},
		Put:  func(c cut) { got = append(got, "put "+string(c)) },
		Drop: func(c cut) { got = append(got, "drop "+string(c)) },
		List: func(all []cut, version string) { got = append(got, fmt.Sprintf("list %q at %s", all, version)) },
	}
	var store cache.ReflectorStore = events
	streamed, err := store.(cache.TransformingStore).Transformer()("streamed")
	for _, failure := range []error{
		err, store.Replace([]any{streamed, "listed"}, "5"), store.Add("added"), store.Update("updated"), store.Delete("deleted"),
		store.Resync(), store.Replace(nil, "6"),
	} {
		if failure != nil {
			t.Error(failure)
		}
	}
	want := []string{`list ["s" "l"] at 5`, "put a", "put u", "drop d", `list [] at 6`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
