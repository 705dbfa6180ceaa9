package served

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Again wakes every object in the lists when a kind is served again, and lets none of them wait for the back-off of what failed meanwhile.
func (k *Kinds) Again(reader client.Reader, lists ...client.ObjectList) source.Source {
	return source.Channel(k.Subscribe(), handler.Funcs{
		GenericFunc: func(ctx context.Context, _ event.GenericEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			for _, list := range lists {
				found := list.DeepCopyObject().(client.ObjectList)
				if err := reader.List(ctx, found, client.UnsafeDisableDeepCopy); err != nil {
					ctrl.LoggerFrom(ctx).Error(err, "Listing what a kind matters to that is served again")
					continue
				}
				_ = meta.EachListItem(found, func(o runtime.Object) error { // the function never fails
					request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o.(client.Object))}
					q.Forget(request)
					q.Add(request)
					return nil
				})
			}
		},
	})
}
