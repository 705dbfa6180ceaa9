package drift

import (
	"context"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// busy is an object that others annotate a few times, each time between a read and the
// dry run that follows.
type busy struct {
	dynamic.ResourceInterface
	object *unstructured.Unstructured
	writes int
	// deployed is what deploying again would make of the data.
	deployed string
}

func (b *busy) Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error) {
	return b.object.DeepCopy(), nil
}

func (b *busy) Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (*unstructured.Unstructured, error) {
	if b.writes > 0 {
		b.writes--
		b.object.SetResourceVersion(b.object.GetResourceVersion() + "1")
		b.object.SetAnnotations(map[string]string{"deployment.kubernetes.io/revision": strconv.Itoa(b.writes)})
	}
	would := b.object.DeepCopy()
	return would, unstructured.SetNestedField(would.Object, b.deployed, "data", "key")
}

func TestOnlyADifferenceToWhatWasReadCounts(t *testing.T) {
	for _, c := range []struct {
		name     string
		writes   int
		deployed string
		changed  bool
	}{
		{"nobody writes, and nothing was changed", 0, "one", false},
		{"what others write meanwhile is no change", 3, "one", false},
		{"what was changed is one", 0, "two", true},
		{"also while others write", 3, "two", true},
	} {
		object := &unstructured.Unstructured{
			Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": "one"}},
		}
		object.SetName("web")
		object.SetResourceVersion("1")
		key := Key{Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Name: "web"}
		comparison := comparison{key: key, objects: &busy{object: object, writes: c.writes, deployed: c.deployed}, desired: object.DeepCopy()}
		got, err := comparison.run(t.Context(), object.DeepCopy())
		if err != nil || (got.modified != nil) != c.changed {
			t.Errorf("%s: got %+v, %v", c.name, got.modified, err)
		}
	}
}

func TestAnObjectThatNeverRestsIsTriedAgainLater(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"key": "one"}}}
	comparison := comparison{key: Key{Name: "web"}, objects: &busy{object: object, writes: 1000, deployed: "two"}, desired: object.DeepCopy()}
	if _, err := comparison.run(t.Context(), object.DeepCopy()); err == nil {
		t.Error("it was compared by what it no longer is")
	}
}
