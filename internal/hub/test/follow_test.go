package hub_test

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// follow watches a kind from now on until the test ends, also after a broken connection.
func (f fixture) follow(list client.ObjectList, options ...client.ListOption) <-chan watch.Event {
	f.t.Helper()
	f.check(f.List(context.Background(), list, options...))
	return f.followSince(list.GetResourceVersion(), f.cluster.Config, list, options...)
}

// followSince watches a kind after a resource version, with the rights of a configuration.
func (f fixture) followSince(version string, as *rest.Config, list client.ObjectList, options ...client.ListOption) <-chan watch.Event {
	f.t.Helper()
	watching, err := client.NewWithWatch(as, client.Options{Scheme: f.Scheme(), Mapper: f.RESTMapper()})
	f.check(err)
	source := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
		own := append([]client.ListOption{&client.ListOptions{Raw: &raw}}, options...)
		return watching.Watch(ctx, list.DeepCopyObject().(client.ObjectList), own...)
	}}
	events, err := toolswatch.NewRetryWatcherWithContext(f.t.Context(), version, source)
	f.check(err)
	f.t.Cleanup(events.Stop)
	return events.ResultChan()
}
