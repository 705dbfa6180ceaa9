package cause

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// pageSize and maxPages bound one list: at most 1,000 objects, 100 in memory at a time.
	pageSize = 100
	maxPages = 10
)

var (
	pods        = corev1.SchemeGroupVersion.WithResource("pods")
	claims      = corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	events      = corev1.SchemeGroupVersion.WithResource("events")
	replicaSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
)

// replicaSets returns the UIDs of the ReplicaSets of the Deployment.
func (l *look) replicaSets(ctx context.Context, selector string) (map[types.UID]bool, error) {
	found := map[types.UID]bool{}
	err := l.list(ctx, replicaSets, metav1.ListOptions{LabelSelector: selector}, func(object *unstructured.Unstructured) {
		if owner := metav1.GetControllerOf(object); owner != nil && owner.UID == l.of.UID {
			found[object.GetUID()] = true
		}
	})
	return found, err
}

// pods returns the findings of the Pods with one of the owners.
func (l *look) pods(ctx context.Context, selector string, owners map[types.UID]bool) (found []finding, err error) {
	err = l.list(ctx, pods, metav1.ListOptions{LabelSelector: selector}, func(object *unstructured.Unstructured) {
		owner := metav1.GetControllerOf(object)
		if owner == nil || !owners[owner.UID] {
			return
		}
		pod, err := decode[corev1.Pod](object)
		if err != nil {
			return // impossible: the API server serves the kind
		}
		if f, is := findingOf(pod); is {
			found = append(found, f)
		}
	})
	return found, err
}

// event returns the newest matching Event of an object; empty if there is none.
func (l *look) event(ctx context.Context, uid types.UID, wanted func(*corev1.Event) bool) (string, error) {
	var newest *corev1.Event
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(uid)).String()}
	err := l.list(ctx, events, options, func(object *unstructured.Unstructured) {
		event, err := decode[corev1.Event](object)
		if err == nil && event.InvolvedObject.UID == uid && wanted(event) && (newest == nil || timeOf(newest).Before(timeOf(event))) {
			newest = event
		}
	})
	if newest == nil {
		return "", err
	}
	return said(newest.Reason, newest.Message), nil
}

// timeOf returns the last time of an Event, by either API of Events.
func timeOf(event *corev1.Event) time.Time {
	switch {
	case event.Series != nil && !event.Series.LastObservedTime.IsZero():
		return event.Series.LastObservedTime.Time
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp.Time
	case !event.EventTime.IsZero():
		return event.EventTime.Time
	}
	return event.CreationTimestamp.Time
}

// list calls each with the objects of a resource in the namespace, page by page.
func (l *look) list(ctx context.Context, kind schema.GroupVersionResource, options metav1.ListOptions,
	each func(*unstructured.Unstructured)) error {
	options.Limit = pageSize
	// The Events of cluster-scoped objects are in the namespace default.
	namespace := cmp.Or(l.of.Namespace, metav1.NamespaceDefault)
	for range maxPages {
		page, err := l.member.Resource(kind).Namespace(namespace).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range page.Items {
			each(&page.Items[i])
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
	return nil
}

func decode[T any](object *unstructured.Unstructured) (*T, error) {
	into := new(T)
	return into, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into)
}
