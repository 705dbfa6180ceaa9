package drain

import (
	"context"
	"errors"
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
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// retryEvictionEvery is the time between two evictions of one placement, as with kubectl drain.
const retryEvictionEvery = 5 * time.Second

// ErrInterrupted reports the end of the context.
var ErrInterrupted = errors.New("interrupted")

// TimedOut is the error of a drain without an end in time.
type TimedOut struct{ error }

func (t TimedOut) Unwrap() error { return t.error }

// isFinal reports whether an error is permanent, unlike the error of a restarting API server.
func isFinal(err error) bool {
	return errors.As(err, &stopped{}) || kube.NotServed(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) ||
		apierrors.IsUnauthorized(err)
}

// move evicts the placements, and follows them until each has left the member or stays.
func (d *Drain) move(ctx context.Context, moves []*moving) error {
	if d.Timeout <= 0 {
		for _, m := range moves {
			if err := d.evict(ctx, m); err != nil {
				return err
			}
		}
		return nil
	}
	err := wait.PollUntilContextTimeout(ctx, d.Every, d.Timeout, true, func(ctx context.Context) (bool, error) {
		var present []client.ObjectKey
		err := d.stillCordoned(ctx)
		if err == nil {
			present, _, err = d.deliveries(ctx)
		}
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
		d.show(ctx, moves, false)
		return err == nil && !slices.ContainsFunc(moves, func(m *moving) bool { return !m.moved && m.stays == "" }), nil
	})
	switch {
	case ctx.Err() != nil:
		return ErrInterrupted
	case wait.Interrupted(err) && d.failing != nil:
		return TimedOut{fmt.Errorf("draining %s timed out after %s: %w", d.title(), d.Timeout, d.failing)}
	case wait.Interrupted(err):
		return TimedOut{fmt.Errorf("draining timed out after %s: %s", d.Timeout, waitingFor(moves))}
	}
	return err
}

// waitingFor names the placements left on the member, with their states.
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
func (d *Drain) advance(ctx context.Context, m *moving, present bool) error {
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
	err := d.Hub.Get(ctx, client.ObjectKeyFromObject(m.eviction), m.eviction)
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
		d.say("ClusterResourcePlacement %s %s", m.name, m.state)
		return d.forget(ctx, m)
	}
	d.say("ClusterResourcePlacement %s %s", m.name, m.state)
	return nil
}

// complete notes the departure of a placement, as soon as its status shows it. Until then the hub
// needs the eviction: without it, the member would get the placement back.
func (d *Drain) complete(ctx context.Context, m *moving) error {
	crp := &placement.ClusterResourcePlacement{}
	if err := d.Hub.Get(ctx, client.ObjectKey{Name: m.name}, crp); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading ClusterResourcePlacement %s: %w", m.name, err)
	}
	for _, s := range crp.Status.PlacementStatuses {
		if s.ClusterName == view.NameOf(d.Member) && meta.IsStatusConditionTrue(s.Conditions, placement.ConditionScheduled) {
			m.state = "has left; the hub picks another member"
			return nil
		}
	}
	m.moved = true
	d.say("ClusterResourcePlacement %s has left", m.name)
	return d.forget(ctx, m)
}

// evict creates an eviction of the placement from the member.
func (d *Drain) evict(ctx context.Context, m *moving) error {
	eviction := &placement.ClusterResourcePlacementEviction{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "drain-", Annotations: map[string]string{placement.AnnotationDrain: "true"}},
		Spec:       placement.PlacementEvictionSpec{PlacementName: m.name, ClusterName: view.NameOf(d.Member)},
	}
	if err := d.Hub.Create(ctx, eviction); err != nil {
		return fmt.Errorf("evicting ClusterResourcePlacement %s: %w", m.name, err)
	}
	m.eviction, m.state = eviction, "waits for the hub"
	return nil
}

// forget deletes the eviction of a placement: the hub has decided on it, or has executed it.
func (d *Drain) forget(ctx context.Context, m *moving) error {
	if m.eviction == nil {
		return nil
	}
	err := d.Hub.Delete(ctx, m.eviction, client.Preconditions{UID: &m.eviction.UID})
	if m.eviction = nil; client.IgnoreNotFound(err) != nil && !apierrors.IsForbidden(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting an eviction of ClusterResourcePlacement %s: %w", m.name, err)
	}
	return nil
}
