// Package cause finds the reasons why a delivered object is not ready. It follows a workload to its
// Pods by the UIDs of their owners. Bundles and Works both use it.
//
// It writes nothing, and reads with the rights of the deploying account. Its invariants: it reads
// only unready objects, with bounded lists and no watch. No text holds the environment or arguments
// of a container, and the text of an application is one short line.
package cause

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// maxCauses is the maximum number of causes of one object.
	maxCauses = 3
	// patience limits the time to find the causes of one object.
	patience = 10 * time.Second
)

// Object identifies an unready object.
type Object struct {
	schema.GroupVersionResource
	types.NamespacedName
	UID types.UID
}

// runs are the resources with Pods.
var runs = []schema.GroupResource{
	{Group: "apps", Resource: "deployments"}, {Group: "apps", Resource: "replicasets"}, {Group: "apps", Resource: "statefulsets"},
	{Group: "apps", Resource: "daemonsets"}, {Group: "batch", Resource: "jobs"}, {Resource: "replicationcontrollers"},
}

// look is one search for the causes of an object.
type look struct {
	member dynamic.Interface
	of     Object
	causes []string
	// unread has the kinds with a failed read, and the reason.
	unread []string
}

// Find returns the causes of an unready object, the worst first, in the words of Kubernetes. It
// returns failed reads only if it found no cause.
func Find(ctx context.Context, member dynamic.Interface, object Object) []string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	l := &look{member: member, of: object}
	switch {
	case slices.Contains(runs, object.GroupResource()):
		l.workload(ctx)
	case object.GroupResource() == pods.GroupResource():
		l.pod(ctx)
	case object.GroupResource() == claims.GroupResource():
		l.claim(ctx, object.Name)
	default: // the object needs no Pods, so a missing right to read Events is not reported
		if l.add(l.warning(ctx, object.UID)); len(l.causes) == 0 {
			return nil
		}
	}
	if len(l.causes) == 0 {
		l.add(l.warning(ctx, object.UID))
	}
	if len(l.causes) == 0 {
		return l.unread[:min(len(l.unread), maxCauses)]
	}
	return l.causes
}

// add adds a cause, unless the text is empty or known, or the limit is reached.
func (l *look) add(text string) {
	text = kube.Clip(withoutRandom(text, l.of.Name), maxText)
	if text != "" && len(l.causes) < maxCauses && !slices.Contains(l.causes, text) {
		l.causes = append(l.causes, text)
	}
}

// failed notes an error of a read. A deleted object is no cause.
func (l *look) failed(kind string, err error) {
	var text string
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return
	case apierrors.IsForbidden(err):
		text = kind + " may not be read: " + oneLine(err.Error())
	default:
		text = kind + " cannot be read: " + oneLine(err.Error())
	}
	if text = kube.Clip(text, maxText); !slices.Contains(l.unread, text) {
		l.unread = append(l.unread, text)
	}
}

// workload reads the conditions of a workload, and its Pods.
func (l *look) workload(ctx context.Context) {
	object, err := l.member.Resource(l.of.GroupVersionResource).Namespace(l.of.Namespace).Get(ctx, l.of.Name, metav1.GetOptions{})
	if err != nil || object.GetUID() != l.of.UID {
		l.failed(l.of.Resource, err)
		return
	}
	l.add(refusal(object))
	selector := selectorOf(object)
	if selector == "" {
		return
	}
	owners := map[types.UID]bool{l.of.UID: true}
	if l.of.Resource == "deployments" {
		if owners, err = l.replicaSets(ctx, selector); err != nil {
			l.failed("ReplicaSets", err)
			return
		}
	}
	found, err := l.pods(ctx, selector, owners)
	l.failed("Pods", err)
	l.explain(ctx, found)
}

// pod reads a directly delivered Pod.
func (l *look) pod(ctx context.Context) {
	object, err := l.member.Resource(pods).Namespace(l.of.Namespace).Get(ctx, l.of.Name, metav1.GetOptions{})
	if err != nil || object.GetUID() != l.of.UID {
		l.failed("Pods", err)
		return
	}
	var found []finding
	if pod, err := decode[corev1.Pod](object); err == nil {
		if f, is := findingOf(pod); is {
			found = append(found, f)
		}
	}
	l.explain(ctx, found)
}

// explain adds the causes of the worst Pods. The volumes of a waiting Pod explain more than its
// own status, and an Event replaces a status without a reason.
func (l *look) explain(ctx context.Context, found []finding) {
	for _, f := range worst(found) {
		if len(l.causes) >= maxCauses {
			return
		}
		l.add(f.text)
		before := len(l.causes)
		for _, name := range f.claims[:min(len(f.claims), maxCauses)] {
			l.claim(ctx, name)
		}
		if f.severity == quiet && len(l.causes) == before {
			l.add(l.warning(ctx, f.pod))
		}
	}
}

// claim adds the reason why a PersistentVolumeClaim is not bound.
func (l *look) claim(ctx context.Context, name string) {
	object, err := l.member.Resource(claims).Namespace(l.of.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		l.add(fmt.Sprintf("PersistentVolumeClaim %s: not found", name))
		return
	}
	if err != nil {
		l.failed("PersistentVolumeClaims", err)
		return
	}
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	if phase == string(corev1.ClaimBound) {
		return
	}
	event, err := l.event(ctx, object.GetUID(), func(*corev1.Event) bool { return true })
	l.failed("Events", err)
	if event == "" && object.GetUID() == l.of.UID {
		return // its own status reports the phase
	}
	l.add(strings.TrimSuffix(fmt.Sprintf("PersistentVolumeClaim %s: %s: %s", name, phase, event), ": "))
}

// warning returns the last Warning Event of an object.
func (l *look) warning(ctx context.Context, uid types.UID) string {
	text, err := l.event(ctx, uid, func(e *corev1.Event) bool { return e.Type == corev1.EventTypeWarning })
	l.failed("Events", err)
	return text
}

// refusal returns the reason for a failed creation of Pods by a ReplicaSet, such as a quota. A
// Deployment repeats the condition of its ReplicaSet.
func refusal(object *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, one := range conditions {
		condition, _ := one.(map[string]any)
		if condition["type"] == "ReplicaFailure" && condition["status"] == string(corev1.ConditionTrue) {
			reason, _ := condition["reason"].(string)
			message, _ := condition["message"].(string)
			return said(reason, message)
		}
	}
	return ""
}

// selectorOf returns the selector of the Pods of a workload; empty if there is none.
func selectorOf(object *unstructured.Unstructured) string {
	field, _, _ := unstructured.NestedMap(object.Object, "spec", "selector")
	if len(field) == 0 {
		return ""
	}
	wanted, err := decode[metav1.LabelSelector](&unstructured.Unstructured{Object: field})
	if object.GetKind() == "ReplicationController" {
		labels, _, _ := unstructured.NestedStringMap(object.Object, "spec", "selector")
		wanted, err = &metav1.LabelSelector{MatchLabels: labels}, nil
	}
	if err != nil {
		return ""
	}
	selector, err := metav1.LabelSelectorAsSelector(wanted)
	if err != nil {
		return ""
	}
	return selector.String()
}
