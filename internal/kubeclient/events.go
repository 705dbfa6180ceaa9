package kubeclient

import "k8s.io/client-go/tools/cache"

// Events is a cache.ReflectorStore with a function for each event of a reflector. It holds no
// objects and no lock. Store is the one for owners with objects under a lock.
type Events[T any] struct {
	// Read returns the kept part of an object from the server. It may get its own result again: a
	// reflector reads the objects of a streamed list before they arrive.
	Read func(any) T
	// Put gets a new or changed object, Drop a deleted one. List gets all objects, and the resource
	// version of the list.
	Put, Drop func(T)
	List      func(objects []T, version string)
}

// Transformer implements cache.TransformingStore.
func (e Events[T]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return e.Read(obj), nil }
}

// Add implements cache.ReflectorStore.
func (e Events[T]) Add(obj any) error { return e.Update(obj) }

// Update implements cache.ReflectorStore.
func (e Events[T]) Update(obj any) error {
	e.Put(e.Read(obj))
	return nil
}

// Delete implements cache.ReflectorStore.
func (e Events[T]) Delete(obj any) error {
	e.Drop(e.Read(obj))
	return nil
}

// Replace implements cache.ReflectorStore.
func (e Events[T]) Replace(list []any, version string) error {
	objects := make([]T, len(list))
	for i, obj := range list {
		objects[i] = e.Read(obj)
	}
	e.List(objects, version)
	return nil
}

// Resync implements cache.ReflectorStore.
func (Events[T]) Resync() error { return nil }
