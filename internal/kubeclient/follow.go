package kubeclient

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/restore"
	"github.com/muster-fleet/muster/internal/retry"
)

// Follow keeps store equal to the objects on the server, by list and watch, until ctx ends. A field
// selector restricts the objects; with the selector of Name, rights on the one name suffice.
//
// Follow calls outcome with the error of each attempt, nil once a watch is established.
func Follow[T Object, L runtime.Object](
	ctx context.Context, resource *Resource[T, L], selector string, store cache.ReflectorStore, outcome func(error),
) {
	var example T
	FollowBy(ctx, restore.ListWatch(resource, func(options *metav1.ListOptions) { options.FieldSelector = selector }), example, store, outcome)
}

// FollowMetadata does the same for the metadata of all objects of a kind in a namespace.
func FollowMetadata(
	ctx context.Context, c *Connection, resource schema.GroupVersionResource, namespace string,
	store cache.ReflectorStore, outcome func(error),
) error {
	all, err := metadata.NewForConfigAndClient(metadata.ConfigFor(c.config), c.http)
	if err != nil {
		return fmt.Errorf("preparing the metadata client of %s: %w", c.config.Host, err)
	}
	objects := all.Resource(resource).Namespace(namespace)
	follow(ctx, c.server, restore.ListWatch(objects, func(*metav1.ListOptions) {}), &metav1.PartialObjectMetadata{}, store, outcome)
	return nil
}

// errInterrupted means a broken connection at the begin of a watch. client-go then returns a watch
// without events instead of an error.
var errInterrupted = errors.New("the API server cannot be reached")

// FollowBy does the same for the objects of a ListWatch; example is an object of its kind. A paged
// store receives stripped objects.
func FollowBy(ctx context.Context, listWatch *cache.ListWatch, example any, store cache.ReflectorStore, outcome func(error)) {
	follow(ctx, restore.NewServer(), listWatch, example, store, outcome)
}

// follow does the same together with other watches of the server.
func follow(
	ctx context.Context, server *restore.Server, listWatch *cache.ListWatch, example any, store cache.ReflectorStore, outcome func(error),
) {
	var strip cache.TransformFunc
	if large, ok := store.(paged); ok && large.IsPaged() {
		strip = large.Transformer()
		listWatch = inPages(listWatch, strip)
	}
	surviving := restore.SurviveTogether(server, listWatch)
	begin := surviving.WatchFuncWithContext
	surviving.WatchFuncWithContext = func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		w, err := begin(ctx, options)
		said := err
		if err == nil && reflect.TypeOf(w) == reflect.TypeOf(watch.NewEmptyWatch()) {
			said = errInterrupted
		}
		if ctx.Err() == nil && !apierrors.IsResourceExpired(said) { // an expired version is listed again at once
			outcome(said)
		}
		return w, err
	}
	// The caller logs failures; the reflector would log every attempt.
	ctx = klog.NewContext(ctx, logr.Discard())
	silent, watchAgain := logr.Discard(), retry.Watch()
	reflector := cache.NewReflectorWithOptions(surviving, example, store, cache.ReflectorOptions{
		Logger:  &silent,
		Name:    "follow",
		Backoff: &watchAgain,
	})
	if strip != nil {
		reflector.WatchListPageSize = pageSize
	}
	delay := retry.Watch().DelayWithReset(clock.RealClock{}, 2*time.Minute)
	for ctx.Err() == nil {
		if err := reflector.ListAndWatchWithContext(ctx); err != nil && ctx.Err() == nil && !apierrors.IsResourceExpired(err) {
			outcome(err)
		}
		if retry.Wait(ctx, clock.RealClock{}, delay()) != nil {
			return
		}
	}
}

// Name selects one object.
func Name(name string) string {
	return fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
}
