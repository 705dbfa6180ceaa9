package view

import (
	"context"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fewAtOnce is how many large objects are read with one request.
const fewAtOnce = 20

// large are the kinds of objects that may hold what is delivered, or as much: up to 1.5 MiB each.
var large = []string{"Work", "Bundle", "BundleDeployment", "Content", "ResourceEnvelope", "ClusterResourceEnvelope", "Secret", "ConfigMap"}

// isLarge says whether a list has large objects, whatever type of Go it is.
func isLarge(list client.ObjectList) bool {
	if _, metadata := list.(*metav1.PartialObjectMetadataList); metadata {
		return false
	}
	kind := list.GetObjectKind().GroupVersionKind().Kind
	if kind == "" { // of a type of its own
		kind = reflect.TypeOf(list).Elem().Name()
	}
	return slices.Contains(large, strings.TrimSuffix(kind, "List"))
}

// Each calls a function with each object of a kind, which it reads page by page.
func Each(ctx context.Context, c client.Reader, kind client.ObjectList, do func(client.Object), options ...client.ListOption) error {
	pages := pager.New(func(ctx context.Context, page metav1.ListOptions) (runtime.Object, error) {
		list := kind.DeepCopyObject().(client.ObjectList)
		return list, c.List(ctx, list, append(slices.Clone(options), &client.ListOptions{Limit: page.Limit, Continue: page.Continue})...)
	})
	if isLarge(kind) {
		pages.PageSize, pages.PageBufferSize = fewAtOnce, 1
	}
	return pages.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		do(o.(client.Object))
		return nil
	})
}
