package kubeclient

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// pageSize is the number of objects in a page of a list.
const pageSize = 500

// paged is a store for objects in such numbers that it reads them in pages.
type paged interface {
	IsPaged() bool
	Transformer() cache.TransformFunc
}

// inPages strips each page of a list before it reads the next one. It is for API servers without
// streamed lists (Kubernetes before 1.32): all Pods of a large cluster at once are hundreds of MiB.
//
// Such servers have no pages of a list "from any version", so inPages lists the newest version.
func inPages(listWatch *cache.ListWatch, strip cache.TransformFunc) *cache.ListWatch {
	list := listWatch.ListWithContextFunc
	with := *listWatch
	with.ListWithContextFunc = func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		if options.ResourceVersion == "0" {
			options.ResourceVersion, options.ResourceVersionMatch = "", ""
		}
		page, err := list(ctx, options)
		if err != nil {
			return page, err
		}
		return page, meta.EachListItem(page, func(item runtime.Object) error {
			stripped, err := strip(item)
			if err == nil {
				reflect.ValueOf(item).Elem().Set(reflect.ValueOf(stripped).Elem())
			}
			return err
		})
	}
	return &with
}
