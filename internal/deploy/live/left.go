package live

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Left is what of a release that was uninstalled is not gone yet.
type Left struct {
	// Count is how many objects there are.
	Count int
	// Held says which of them wait for somebody else's finalizer, or why it is not known whether they are gone.
	Held []string
}

// Left counts the objects of a set that are being deleted. The watches tell which may be there, and the API server which are; one that
// was made anew since is somebody else's.
func (w *Watcher) Left(ctx context.Context, s *Set) (Left, error) {
	var left Left
	var look []Key
	for _, key := range s.keys {
		_, found, synced := w.get(key)
		switch {
		case !synced:
			left.Count++
			if failure := w.failure(key); failure != "" && !slices.Contains(left.Held, failure) {
				left.Held = append(left.Held, failure)
			}
		case found:
			look = append(look, key)
		}
	}
	var mu sync.Mutex
	var failed error
	room, looking := make(chan struct{}, comparing), sync.WaitGroup{}
	for _, key := range look {
		room <- struct{}{}
		looking.Go(func() {
			defer func() { <-room }()
			object, err := w.fetch(ctx, key)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case apierrors.IsNotFound(err):
			case err != nil:
				failed = fmt.Errorf("reading %s: %w", key, err)
			case object.GetDeletionTimestamp() != nil:
				left.Count++
				if held := heldBy(object); len(held) > 0 {
					left.Held = append(left.Held, fmt.Sprintf("%s waits for finalizer %s", key, strings.Join(held, ", ")))
				}
			}
		})
	}
	looking.Wait()
	slices.Sort(left.Held)
	return left, failed
}

func (w *Watcher) fetch(ctx context.Context, key Key) (*unstructured.Unstructured, error) {
	mapping, err := w.cluster.Mapper.RESTMapping(key.Kind.GroupKind(), key.Kind.Version)
	if err != nil {
		return nil, err
	}
	return w.cluster.Dynamic.Resource(mapping.Resource).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
}

// failure is why a kind cannot be listed, or "".
func (w *Watcher) failure(key Key) string {
	w.mu.Lock()
	k := w.kinds[key.Kind]
	w.mu.Unlock()
	if k == nil {
		return ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failure == nil {
		return ""
	}
	return fmt.Sprintf("%s cannot be listed: %v", key.Kind.Kind, k.failure)
}

// heldBy names the finalizers that Kubernetes does not remove by itself.
func heldBy(object *unstructured.Unstructured) []string {
	return slices.DeleteFunc(object.GetFinalizers(), func(name string) bool {
		return name == metav1.FinalizerOrphanDependents || name == metav1.FinalizerDeleteDependents
	})
}
