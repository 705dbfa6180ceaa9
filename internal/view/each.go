package view

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// worksAtOnce is how many Works are read with one request: each holds up to 900 KiB of what is placed.
const worksAtOnce = 20

// Each calls a function with each object of a kind, which it reads page by page.
func Each(ctx context.Context, c client.Reader, kind client.ObjectList, do func(client.Object), options ...client.ListOption) error {
	pages := pager.New(func(ctx context.Context, page metav1.ListOptions) (runtime.Object, error) {
		list := kind.DeepCopyObject().(client.ObjectList)
		return list, c.List(ctx, list, append(slices.Clone(options), &client.ListOptions{Limit: page.Limit, Continue: page.Continue})...)
	})
	if _, ok := kind.(*placement.WorkList); ok {
		pages.PageSize, pages.PageBufferSize = worksAtOnce, 1
	}
	return pages.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		do(o.(client.Object))
		return nil
	})
}
