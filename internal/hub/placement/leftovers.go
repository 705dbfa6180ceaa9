package placement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/servedkinds"
	"github.com/muster-fleet/muster/internal/kube"
)

// leftoverFinalizers are the finalizers of KubeFleet on its bindings and snapshots. The list is
// exact, because other programs may use the same prefix.
var leftoverFinalizers = []string{"kubernetes-fleet.io/scheduler-cleanup", placement.FinalizerPlacement, placement.FinalizerWork}

// leftover is a binding or snapshot of KubeFleet's hub.
type leftover struct {
	resource string
	*metav1.PartialObjectMetadata
}

func (l leftover) String() string { return kube.Name(l.Kind, l.Namespace, l.Name) }

// listLeftovers returns the bindings and snapshots created by KubeFleet's hub for placements with
// this name. hidden names the resources the hub cannot list: forbidden ones, or defined and
// unserved ones.
func (c *Controller) listLeftovers(ctx context.Context, s genericPlacement) (left []leftover, hidden []string, err error) {
	kinds := []string{"ClusterResourceBinding", "ClusterResourceSnapshot", "ClusterSchedulingPolicySnapshot"}
	if s.key.Namespace != "" {
		kinds = []string{"ResourceBinding", "ResourceSnapshot", "SchedulingPolicySnapshot"}
	}
	notOurs, err := labels.NewRequirement(fleet.LabelManaged, selection.NotEquals, []string{"true"})
	if err != nil {
		return nil, nil, err
	}
	theirs := labels.SelectorFromValidatedSet(labels.Set{placement.LabelParentCRP: s.key.Name}).Add(*notOurs)
	for _, kind := range kinds {
		resource := strings.ToLower(kind) + "s"
		definition := kube.Metadata(servedkinds.DefinitionKind)
		if err := c.Client.Get(ctx, types.NamespacedName{Name: resource + "." + placement.GroupVersion.Group}, definition); err != nil {
			if !apierrors.IsNotFound(err) {
				return nil, nil, fmt.Errorf("looking for the definition of %s: %w", resource, err)
			}
			continue
		}
		objects := &metav1.PartialObjectMetadataList{}
		objects.SetGroupVersionKind(placement.GroupVersion.WithKind(kind + "List"))
		err := c.Live.List(ctx, objects, client.InNamespace(s.key.Namespace), client.MatchingLabelsSelector{Selector: theirs})
		switch {
		case apierrors.IsForbidden(err), kube.NotServed(err): // neither proves that there are none
			hidden = append(hidden, resource)
		case err != nil:
			return nil, nil, fmt.Errorf("listing the %s of %s: %w", resource, s, err)
		}
		for i := range objects.Items {
			objects.Items[i].SetGroupVersionKind(placement.GroupVersion.WithKind(kind))
			left = append(left, leftover{resource, &objects.Items[i]})
		}
	}
	return left, hidden, nil
}

// leftOf reports whether KubeFleet's hub created an object for exactly this placement. The object
// is labelled with the placement, and has it as its controller, by UID. Without a controller it
// has a finalizer of KubeFleet or is being deleted, and is not older than the placement.
func leftOf(s genericPlacement, o metav1.Object) bool {
	named := o.GetNamespace() == s.key.Namespace && o.GetLabels()[placement.LabelParentCRP] == s.key.Name
	if !named || o.GetLabels()[fleet.LabelManaged] == "true" {
		return false
	}
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return owner.UID == s.GetUID()
	}
	marked := o.GetDeletionTimestamp() != nil || slices.ContainsFunc(o.GetFinalizers(), isLeftoverFinalizer)
	return marked && !o.GetCreationTimestamp().Time.Before(s.GetCreationTimestamp().Time)
}

func isLeftoverFinalizer(name string) bool { return slices.Contains(leftoverFinalizers, name) }

// removeLeftovers deletes the leftovers of KubeFleet's hub for a placement, after its removal from
// all members. Without KubeFleet's finalizers on the placement, its bindings would place again
// after a return of KubeFleet's hub. It returns the objects that block the deletion, and the
// objects kept without proof of their owner.
func (c *Controller) removeLeftovers(ctx context.Context, s genericPlacement) (waits string, stays []string, err error) {
	if c.nothingLeft(s) && len(membernamespace.KubeFleetFinalizers(s.Object)) == 0 {
		return "", nil, nil
	}
	left, hidden, err := c.listLeftovers(ctx, s)
	if err != nil {
		return "", nil, err
	}
	if len(hidden) > 0 { // unknown is not gone
		return fmt.Sprintf("the hub cannot list %s, and cannot check whether KubeFleet's hub has left any of it", list(hidden)), nil, nil
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	var held []string
	var failed []error
	limit := make(chan struct{}, writers)
	for _, l := range left {
		if !leftOf(s, l) {
			stays = append(stays, l.String())
			continue
		}
		limit <- struct{}{}
		group.Go(func() {
			defer func() { <-limit }()
			finalizers, err := c.removeLeftover(ctx, l)
			mu.Lock()
			defer mu.Unlock()
			if err != nil && len(failed) < maxListed { // of ten thousand all may fail
				failed = append(failed, err)
			}
			if len(finalizers) > 0 {
				held = append(held, fmt.Sprintf("%s has the finalizers %s", l, strings.Join(finalizers, ", ")))
			}
		})
	}
	group.Wait()
	if len(held) > 0 {
		slices.Sort(held)
		waits = "KubeFleet's hub left objects of the placement with finalizers of other owners: " + list(held)
	}
	return waits, stays, errors.Join(failed...)
}

// removeLeftover deletes an object of KubeFleet's hub, and then removes the finalizers of
// KubeFleet's hub. It returns the finalizers of other owners.
func (c *Controller) removeLeftover(ctx context.Context, l leftover) ([]string, error) {
	now := l.PartialObjectMetadata
	if now.DeletionTimestamp == nil {
		if err := kube.DeleteByUID(ctx, c.Client, now.DeepCopy()); err != nil {
			return nil, err
		}
		now = kube.Metadata(l.GroupVersionKind())
		if err := c.Live.Get(ctx, client.ObjectKeyFromObject(l), now); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		if now.UID != l.UID {
			return nil, nil
		}
	}
	after := now.DeepCopy()
	after.Finalizers = slices.DeleteFunc(after.Finalizers, isLeftoverFinalizer)
	others := slices.Clone(after.Finalizers)
	if len(others) == len(now.Finalizers) {
		return others, nil
	}
	if err := kube.Patch(ctx, c.Client, now, after); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("taking the finalizers of KubeFleet's hub off %s: %w", l, err)
	}
	return others, nil
}

// addEnvelopes adds the Works created by KubeFleet's hub for envelopes to the Works of a
// placement under deletion. A Work belongs to the placement if its binding does, and has the same
// member.
func (c *Controller) addEnvelopes(ctx context.Context, s genericPlacement, current map[string]*currentWorks) error {
	works, err := c.listInherited(ctx, s.key)
	if err != nil || len(works.Items) == 0 {
		return err
	}
	bindings, err := c.currentBindings(ctx, s)
	if err != nil {
		return err
	}
	for i := range works.Items {
		work := &works.Items[i]
		member, _ := membernamespace.MemberClusterOf(work.Namespace)
		b, found := bindings[work.Labels[placement.LabelParentBinding]]
		if !found || b.spec.TargetCluster != member || !leftOf(s, b) {
			continue
		}
		isMembers, err := c.inMemberNamespace(ctx, work)
		if err != nil {
			return err
		}
		if !isMembers {
			continue
		}
		if current[work.Namespace] == nil {
			current[work.Namespace] = &currentWorks{}
		}
		current[work.Namespace].works = append(current[work.Namespace].works, work)
	}
	return nil
}

// reportStays reports the remaining objects of KubeFleet's hub after a placement is gone.
func (c *Controller) reportStays(ctx context.Context, s genericPlacement, stays []string) error {
	works, err := c.listInherited(ctx, s.key)
	if err != nil {
		return err
	}
	for i := range works.Items {
		stays = append(stays, fmt.Sprintf("Work %s/%s", works.Items[i].Namespace, works.Items[i].Name))
	}
	if len(stays) == 0 {
		return nil
	}
	slices.Sort(stays)
	ctrl.LoggerFrom(ctx).Info("Objects of KubeFleet's hub stay after the removal of their placement", "objects", list(stays))
	c.Recorder.Eventf(s.Object, nil, corev1.EventTypeWarning, reasons.KubeFleetLeftovers, "Remove", "%s",
		clip(fmt.Sprintf("the placement is removed, and what bears its name without proof stays: %s; delete it if nothing in it is needed",
			list(stays))))
	return nil
}
