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

// fewAtOnce is the page size for large objects.
const fewAtOnce = 20

// large lists the kinds of objects with deliveries, or as much data: up to 1.5 MiB each.
var large = []string{"Work", "Bundle", "BundleDeployment", "Content", "ResourceEnvelope", "ClusterResourceEnvelope", "Secret", "ConfigMap"}

// isLarge reports whether a list has large objects, whatever its Go type.
func isLarge(list client.ObjectList) bool {
	if _, metadata := list.(*metav1.PartialObjectMetadataList); metadata {
		return false
	}
	kind := list.GetObjectKind().GroupVersionKind().Kind
	if kind == "" { // a list with its own Go type
		kind = reflect.TypeOf(list).Elem().Name()
	}
	return slices.Contains(large, strings.TrimSuffix(kind, "List"))
}

// Each reads the objects of a kind page by page, and calls a function with each.
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
