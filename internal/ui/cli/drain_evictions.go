package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// retryEvictionEvery is the time between two evictions of one placement, as with kubectl drain.
const retryEvictionEvery = 5 * time.Second

// move evicts the placements, and follows them until each has left the member or stays.
func (d *drain) move(ctx context.Context, moves []*moving) error {
	if d.timeout <= 0 {
		for _, m := range moves {
			if err := d.evict(ctx, m); err != nil {
				return err
			}
		}
		return nil
	}
	err := wait.PollUntilContextTimeout(ctx, lookEvery, d.timeout, true, func(ctx context.Context) (bool, error) {
		present, _, err := d.deliveries(ctx)
		if err == nil {
			for _, m := range moves {
				if err = d.advance(ctx, m, slices.Contains(present, client.ObjectKey{Name: m.name})); err != nil {
					break
				}
			}
		}
		if d.failing = err; isFinal(err) {
			return false, err
		}
		return err == nil && !slices.ContainsFunc(moves, func(m *moving) bool { return !m.moved && m.stays == "" }), nil
	})
	again := fmt.Sprintf("%s stays cordoned, and what left it does not come back. Evictions that the hub has begun continue. "+
		"To go on: muster drain %[2]s; to end it: muster uncordon %[2]s", d.title(d.member), view.NameOf(d.member))
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted; %s", again)
	case wait.Interrupted(err) && d.failing != nil:
		return timedOut{fmt.Errorf("draining %s timed out after %s: %w; %s", d.title(d.member), d.timeout, d.failing, again)}
	case wait.Interrupted(err):
		return timedOut{fmt.Errorf("draining timed out after %s: %s. %s", d.timeout, waitingFor(moves), again)}
	}
	return err
}

// waitingFor names the placements that are still on the member, with their states.
func waitingFor(moves []*moving) string {
	var all []string
	for _, m := range moves {
		if !m.moved && m.stays == "" {
			all = append(all, "ClusterResourcePlacement "+m.name+" "+m.state)
		}
	}
	return strings.Join(all, "; ")
}

// advance takes the next step for one placement. present: the member still has Works of it.
func (d *drain) advance(ctx context.Context, m *moving, present bool) error {
	switch {
	case m.moved || m.stays != "":
		return nil
	case !present:
		return d.complete(ctx, m)
	case m.eviction == nil && time.Now().Before(m.retryAt):
		return nil
	case m.eviction == nil:
		return d.evict(ctx, m)
	}
	err := d.hub.Get(ctx, client.ObjectKeyFromObject(m.eviction), m.eviction)
	if apierrors.IsNotFound(err) { // another user has deleted it
		m.eviction = nil
		return nil
	} else if err != nil {
		return fmt.Errorf("reading ClusterResourcePlacementEviction %s: %w", m.eviction.Name, err)
	}
	valid := meta.FindStatusCondition(m.eviction.Status.Conditions, placement.ConditionEvictionValid)
	executed := meta.FindStatusCondition(m.eviction.Status.Conditions, placement.ConditionEvictionExecuted)
	switch {
	case valid == nil:
		m.state = "waits for the hub"
	case valid.Status == metav1.ConditionFalse:
		m.stays = valid.Message
		return d.forget(ctx, m)
	case executed == nil:
		m.state = "waits for the hub"
	case executed.Status == metav1.ConditionTrue:
		m.state = "is being removed by the agent"
	default:
		m.state, m.retryAt = "waits: "+executed.Message, time.Now().Add(retryEvictionEvery)
		d.progress.step("ClusterResourcePlacement %s %s", m.name, m.state)
		return d.forget(ctx, m)
	}
	d.progress.step("ClusterResourcePlacement %s %s", m.name, m.state)
	return nil
}

// complete notes that a placement has left, as soon as its status shows that. Until then the hub
// needs the eviction, to know that the member does not get the placement back.
func (d *drain) complete(ctx context.Context, m *moving) error {
	crp := &placement.ClusterResourcePlacement{}
	if err := d.hub.Get(ctx, client.ObjectKey{Name: m.name}, crp); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading ClusterResourcePlacement %s: %w", m.name, err)
	}
	for _, s := range crp.Status.PlacementStatuses {
		if s.ClusterName == view.NameOf(d.member) && meta.IsStatusConditionTrue(s.Conditions, placement.ConditionScheduled) {
			m.state = "has left; the hub picks another member"
			return nil
		}
	}
	m.moved = true
	d.progress.step("ClusterResourcePlacement %s has left", m.name)
	return d.forget(ctx, m)
}

// evict creates an eviction of the placement from the member.
func (d *drain) evict(ctx context.Context, m *moving) error {
	eviction := &placement.ClusterResourcePlacementEviction{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "drain-", Annotations: map[string]string{placement.AnnotationDrain: "true"}},
		Spec:       placement.PlacementEvictionSpec{PlacementName: m.name, ClusterName: view.NameOf(d.member)},
	}
	if err := d.hub.Create(ctx, eviction); err != nil {
		return fmt.Errorf("evicting ClusterResourcePlacement %s: %w", m.name, err)
	}
	m.eviction, m.state = eviction, "waits for the hub"
	return nil
}

// forget deletes the eviction of a placement: the hub has decided on it, or has executed it.
func (d *drain) forget(ctx context.Context, m *moving) error {
	if m.eviction == nil {
		return nil
	}
	err := d.hub.Delete(ctx, m.eviction, client.Preconditions{UID: &m.eviction.UID})
	if m.eviction = nil; client.IgnoreNotFound(err) != nil && !apierrors.IsForbidden(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting an eviction of ClusterResourcePlacement %s: %w", m.name, err)
	}
	return nil
}
