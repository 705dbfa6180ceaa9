package protocol

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Event is an event of the program's watch of a kind. The agent does not watch the kind meanwhile.
type Event struct {
	Type   EventType `json:"type"`
	Object *Object   `json:"object,omitempty"`
}

// EventType is the type of an Event.
type EventType string

// The types.
const (
	// EventListing: all objects follow, each with EventPut, up to EventListed.
	EventListing EventType = "Listing"
	// EventListed: the objects since EventListing are complete, and the program watches them.
	EventListed EventType = "Listed"
	// EventPut: an object was added or changed.
	EventPut EventType = "Put"
	// EventDeleted: an object was deleted.
	EventDeleted EventType = "Deleted"
	// EventEnded: the program no longer watches the kind.
	EventEnded EventType = "Ended"
)

// Object is the part of a delivered object's metadata for the agent.
type Object struct {
	Name       string    `json:"name"`
	UID        types.UID `json:"uid,omitempty"`
	Generation int64     `json:"generation,omitempty"`
	Version    string    `json:"version,omitempty"`
}

// EventOf returns an event about an object.
func EventOf(what EventType, object metav1.Object) Event {
	return Event{Type: what, Object: &Object{object.GetName(), object.GetUID(), object.GetGeneration(), object.GetResourceVersion()}}
}

// Metadata returns the object in the agent's form.
func (o *Object) Metadata() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: o.Name, UID: o.UID, Generation: o.Generation, ResourceVersion: o.Version,
	}}
}

// Telling is a store of the program. It passes on each event, and then stores the event. A reply
// about the objects in the store therefore follows their events.
type Telling struct {
	cache.ReflectorStore
	Tell func(Event)
}

// Transformer implements cache.TransformingStore.
func (t Telling) Transformer() cache.TransformFunc {
	if inner, is := t.ReflectorStore.(cache.TransformingStore); is {
		return inner.Transformer()
	}
	return nil
}

// UpdateResourceVersion implements cache.ResourceVersionUpdater.
func (t Telling) UpdateResourceVersion(version string) {
	if inner, is := t.ReflectorStore.(cache.ResourceVersionUpdater); is {
		inner.UpdateResourceVersion(version)
	}
}

// Add implements cache.ReflectorStore.
func (t Telling) Add(obj any) error {
	t.Tell(EventOf(EventPut, obj.(metav1.Object)))
	return t.ReflectorStore.Add(obj)
}

// Update implements cache.ReflectorStore.
func (t Telling) Update(obj any) error {
	t.Tell(EventOf(EventPut, obj.(metav1.Object)))
	return t.ReflectorStore.Update(obj)
}

// Delete implements cache.ReflectorStore.
func (t Telling) Delete(obj any) error {
	t.Tell(EventOf(EventDeleted, obj.(metav1.Object)))
	return t.ReflectorStore.Delete(obj)
}

// Replace implements cache.ReflectorStore.
func (t Telling) Replace(list []any, version string) error {
	t.Tell(Event{Type: EventListing})
	for _, obj := range list {
		t.Tell(EventOf(EventPut, obj.(metav1.Object)))
	}
	t.Tell(Event{Type: EventListed})
	return t.ReflectorStore.Replace(list, version)
}
