// Package decisions shows the members of a placement or ClusterGroup as PlacementDecisions
// (KEP-5313), for other tools. It is off by default, and acts only while the API server serves the
// kind.
//
// Decisions owns the PlacementDecisions with the label fleet.cattle.io/managed and a controlling
// placement or ClusterGroup; Kubernetes deletes them with it. The controllers of these call it. Its
// invariants: the hub never touches a PlacementDecision of another owner, writes only changes, and
// takes no member out because a definition was deleted.
package decisions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	inventory "github.com/muster-fleet/muster/api/inventory/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// The API of KEP-5313.
const (
	definition = "placementdecisions.multicluster.x-k8s.io"
	// labelKey is the same on all PlacementDecisions of a placement, labelIndex counts them from 0.
	labelKey, labelIndex = "multicluster.x-k8s.io/decision-key", "multicluster.x-k8s.io/decision-index"
	// labelWorkload links to a workload. It is the user's, on the placement or ClusterGroup.
	labelWorkload = "multicluster.x-k8s.io/placement-key"
	// perSlice is the largest number of members in a PlacementDecision.
	perSlice = 100
	// scheduler is the name of the scheduler, and of the manager in the hub's ClusterProfiles.
	scheduler = "muster"
)

// again is the wait for another owner's object or a namespace: the hub gets no event. An API server
// serves a new kind a moment after its definition.
const again, servedAgain = 30 * time.Second, 5 * time.Second

var kind = schema.GroupVersionKind{Group: inventory.GroupVersion.Group, Version: "v1alpha1", Kind: "PlacementDecision"}

// Decision is a placement or ClusterGroup with its members.
type Decision struct {
	Owner client.Object
	// Kind is the kind of the owner, Prefix stands before its name in the names of PlacementDecisions.
	Kind   schema.GroupVersionKind
	Prefix string
	// Members are the names of MemberClusters, and <workspace>/<name> of Clusters.
	Members []string
	// Reason says why they are members.
	Reason string
}

// Publish writes the PlacementDecisions of a placement or ClusterGroup, and deletes surplus ones.
// It returns the wait for what has no event; zero if nothing is left to do.
func (p *Publisher) Publish(ctx context.Context, d Decision) (time.Duration, error) {
	if p == nil || p.Config.Current().Unknown {
		return 0, nil
	}
	on := p.Config.Current().PlacementDecisions
	begun, wait, err := p.begin(ctx, on)
	if err != nil || !begun {
		return wait, err
	}
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(kind)
	if err := p.cache.List(ctx, &list, client.MatchingFields{byOwner: string(d.Owner.GetUID())}); err != nil {
		return 0, fmt.Errorf("listing the PlacementDecisions of %s: %w", d, err)
	}
	have := map[types.NamespacedName]*unstructured.Unstructured{}
	for i := range list.Items {
		have[client.ObjectKeyFromObject(&list.Items[i])] = &list.Items[i]
	}
	if !on {
		return 0, withRight(ctx, p.remove(ctx, have, nil))
	}
	want, err := p.desired(ctx, d)
	if err != nil {
		return 0, err
	}
	if shrinks(have, want) {
		if gone, err := p.Kinds.Deleted(ctx, &fleet.Cluster{}, &clusterv1beta1.MemberCluster{}); err != nil || gone != "" {
			return 0, err // members deleted with their definition are unknown, not gone
		}
	}
	return p.write(ctx, d, have, want)
}

// desired returns the PlacementDecisions of a decision, in their order.
func (p *Publisher) desired(ctx context.Context, d Decision) ([]*unstructured.Unstructured, error) {
	profiles := p.Config.Current().InventoryNamespace
	names := make([]string, 0, len(d.Members))
	for _, member := range d.Members {
		workspace, name, ofCluster := strings.Cut(member, "/")
		if !ofCluster {
			workspace, name = "", member
		}
		profileName := naming.ClusterProfile(workspace, name)
		var profile inventory.ClusterProfile
		err := p.Client.Get(ctx, types.NamespacedName{Namespace: profiles, Name: profileName}, &profile)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading ClusterProfile %s/%s: %w", profiles, profileName, err)
		}
		if err == nil && profile.Spec.ClusterManager.Name != scheduler {
			continue // another manager's cluster of this name; an Event of the member says so
		}
		names = append(names, profileName)
	}
	return slicesOf(d, profiles, names), nil
}

// slicesOf spreads members over PlacementDecisions. Without a member there is one, because nothing
// is a decision, too.
func slicesOf(d Decision, profiles string, names []string) (spread []*unstructured.Unstructured) {
	slices.Sort(names)
	namespace := cmp.Or(d.Owner.GetNamespace(), profiles)
	key := naming.SafeConcat(d.Prefix, d.Owner.GetName())
	controls := true
	for index, chunk := range slices.Collect(chunks(names)) {
		refs := make([]any, len(chunk))
		for i, name := range chunk {
			refs[i] = map[string]any{"clusterProfileRef": map[string]any{"namespace": profiles, "name": name}, "reason": d.Reason}
		}
		slice := &unstructured.Unstructured{Object: map[string]any{"decisions": refs, "schedulerName": scheduler}}
		slice.SetGroupVersionKind(kind)
		slice.SetNamespace(namespace)
		slice.SetName(key + "-" + strconv.Itoa(index))
		labels := map[string]string{fleet.LabelManaged: "true", labelKey: key, labelIndex: strconv.Itoa(index)}
		if workload := d.Owner.GetLabels()[labelWorkload]; workload != "" {
			labels[labelWorkload] = workload
		}
		slice.SetLabels(labels)
		slice.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: d.Kind.GroupVersion().String(), Kind: d.Kind.Kind, Name: d.Owner.GetName(), UID: d.Owner.GetUID(), Controller: &controls,
		}})
		spread = append(spread, slice)
	}
	return spread
}

func chunks(names []string) func(yield func([]string) bool) {
	if len(names) == 0 {
		return func(yield func([]string) bool) { yield(nil) }
	}
	return slices.Chunk(names, perSlice)
}

// shrinks reports whether fewer members are wanted than shown.
func shrinks(have map[types.NamespacedName]*unstructured.Unstructured, want []*unstructured.Unstructured) bool {
	shown, wanted := 0, 0
	for _, slice := range have {
		shown += members(slice)
	}
	for _, slice := range want {
		wanted += members(slice)
	}
	return wanted < shown
}

func members(slice *unstructured.Unstructured) int {
	list, _, _ := unstructured.NestedSlice(slice.Object, "decisions")
	return len(list)
}

// write creates, updates and deletes PlacementDecisions.
func (p *Publisher) write(ctx context.Context, d Decision, have map[types.NamespacedName]*unstructured.Unstructured,
	want []*unstructured.Unstructured) (wait time.Duration, err error) {
	kept := map[types.NamespacedName]bool{}
	var failures []error
	for _, slice := range want {
		key := client.ObjectKeyFromObject(slice)
		kept[key] = true
		if old := have[key]; old != nil {
			if pending := p.expected.Await(key, old); pending > 0 {
				wait = max(wait, pending)
				continue
			}
			failures = append(failures, p.update(ctx, old, slice))
			continue
		}
		pause, err := p.create(ctx, d, slice)
		wait, failures = max(wait, pause), append(failures, err)
	}
	return wait, errors.Join(append(failures, p.remove(ctx, have, kept)...)...)
}

func (p *Publisher) create(ctx context.Context, d Decision, slice *unstructured.Unstructured) (time.Duration, error) {
	key := client.ObjectKeyFromObject(slice)
	err := p.Client.Create(ctx, slice, kube.FieldOwner)
	switch {
	case err == nil:
		p.reported.Forget(key)
		p.expected.Expect(key, slice)
		return 0, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return 0, nil // its owner goes, too
	case apierrors.IsNotFound(err): // the namespace of the inventory, or the kind
		return again, nil
	case !apierrors.IsAlreadyExists(err):
		return 0, fmt.Errorf("creating PlacementDecision %s: %w", key, err)
	}
	existing := &unstructured.Unstructured{}
	existing.SetGroupVersionKind(kind)
	if err := p.Live.Get(ctx, key, existing); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	if metav1.IsControlledBy(existing, d.Owner) && existing.GetLabels()[fleet.LabelManaged] == "true" {
		return time.Second, nil // the cache shows it in a moment
	}
	if p.reported.Add(key, existing.GetUID()) {
		p.Recorder.Eventf(d.Owner, nil, corev1.EventTypeWarning, reasons.PlacementDecisionTaken, "Publish",
			"PlacementDecision %s is another owner's, and stays as it is: delete it, or give the %s another name", key, d.Kind.Kind)
	}
	return again, nil
}

// update changes the hub's fields. Labels of other writers stay.
func (p *Publisher) update(ctx context.Context, old, slice *unstructured.Unstructured) error {
	after := old.DeepCopy()
	after.Object["decisions"], after.Object["schedulerName"] = slice.Object["decisions"], slice.Object["schedulerName"]
	labels := after.GetLabels()
	delete(labels, labelWorkload)
	for name, value := range slice.GetLabels() {
		labels[name] = value
	}
	after.SetLabels(labels)
	if equality.Semantic.DeepEqual(old.Object, after.Object) {
		return nil
	}
	if err := kube.Patch(ctx, p.Client, old, after); err != nil {
		return client.IgnoreNotFound(err) // deleted; the event enqueues its owner
	}
	p.expected.Expect(client.ObjectKeyFromObject(after), after)
	return nil
}

// remove deletes what is not kept, and returns an error for each failure.
func (p *Publisher) remove(ctx context.Context, have map[types.NamespacedName]*unstructured.Unstructured,
	kept map[types.NamespacedName]bool) (failures []error) {
	for key, slice := range have {
		if !kept[key] && slice.GetDeletionTimestamp() == nil {
			failures = append(failures, kube.DeleteByUID(ctx, p.Client, slice))
		}
	}
	return failures
}

// withRight joins failures except forbidden deletions. A hub that is switched off loses its rights.
func withRight(ctx context.Context, failures []error) error {
	return errors.Join(slices.DeleteFunc(failures, func(err error) bool {
		lost := apierrors.IsForbidden(err)
		if lost {
			ctrl.LoggerFrom(ctx).Info("PlacementDecisions stay, because the hub may no longer delete them", "reason", err.Error())
		}
		return lost
	})...)
}

func (d Decision) String() string {
	return d.Kind.Kind + " " + strings.TrimPrefix(client.ObjectKeyFromObject(d.Owner).String(), "/")
}
