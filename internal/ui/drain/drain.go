// Package drain moves the placements of a cordoned member to other members, for the command line
// and the dashboard.
//
// Drain writes the cordon of a member through package decision, and owns its evictions. Its
// invariant: it acts with the rights of its user, and only while the member is cordoned. An
// uncordon stops it.
package drain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/decision"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// Drain moves the placements of one member.
type Drain struct {
	// Hub acts as the user.
	Hub    client.Client
	Member client.Object
	// Say receives each new state.
	Say func(text string)
	// Timeout limits the wait for the placements; 0 only starts the drain. Every is the interval of
	// reads: a user may lack the right to watch.
	Timeout, Every time.Duration
	// failing is the error of the last read; it may be temporary.
	failing error
	// shown is the progress on the member.
	shown membership.DrainProgress
}

// Result is the result of a drain.
type Result struct {
	// Moved is the number of former placements, Started the number of leaving ones.
	Moved, Started int
	Stays          []Stay
}

// Plan is a movable placement, and the members able to take it.
type Plan struct {
	Placement string
	To        []string
}

// Stay is an object to stay on the member, and the reason.
type Stay struct{ What, Why string }

// String returns the object and the reason, as a sentence.
func (s Stay) String() string { return fmt.Sprintf("%s: %s.", s.What, strings.TrimSuffix(s.Why, ".")) }

// moving is a leaving ClusterResourcePlacement.
type moving struct {
	name     string
	eviction *placement.ClusterResourcePlacementEviction
	// retryAt is the earliest time of the next eviction.
	retryAt time.Time
	state   string
	// stays is the reason to stay; empty if it leaves.
	stays string
	moved bool
}

// Refusal returns an error for a member without drains; nil for any other.
func Refusal(member client.Object) error {
	if membership.Quarantined(member) {
		return fmt.Errorf("%s is quarantined, so the hub moves none of its placements: end that first with %s", view.Title(member),
			membership.EndQuarantine(member))
	}
	return nil
}

// survey returns the movable placements, sorted by name, and the rest.
func (d *Drain) survey(ctx context.Context) (moves []*moving, stays []Stay, err error) {
	placements, bundles, err := d.deliveries(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, key := range placements {
		if key.Namespace != "" {
			stays = append(stays, Stay{kube.Name("ResourcePlacement", key.Namespace, key.Name), "evictions concern only ClusterResourcePlacements"})
			continue
		}
		what, crp := "ClusterResourcePlacement "+key.Name, &placement.ClusterResourcePlacement{}
		if err := d.Hub.Get(ctx, key, crp); apierrors.IsNotFound(err) {
			stays = append(stays, Stay{what, "it is gone, and the hub removes its objects"})
			continue
		} else if err != nil {
			return nil, nil, fmt.Errorf("reading %s: %w", what, err)
		}
		if why := d.whyFixed(crp); why != "" {
			stays = append(stays, Stay{what, why})
		} else {
			moves = append(moves, &moving{name: key.Name})
		}
	}
	if bundles > 0 {
		stays = append(stays, Stay{fmt.Sprintf("%d Bundles", bundles), "Bundles select Clusters by labels and do not move: change the labels " +
			"or the targets to remove them"})
	}
	return moves, stays, nil
}

// whyFixed returns the reason of a placement to stay on its member; "" if it may move.
func (d *Drain) whyFixed(crp *placement.ClusterResourcePlacement) string {
	kind := placement.PickAll
	if crp.Spec.Policy != nil {
		kind = cmp.Or(crp.Spec.Policy.PlacementType, placement.PickAll)
	}
	switch {
	case kind == placement.PickFixed:
		return fmt.Sprintf("it picks members by name (PickFixed): take %s out of its spec.policy.clusterNames", view.NameOf(d.Member))
	case kind == placement.PickAll:
		return "it picks all members (PickAll), so no other member takes its place"
	case crp.Spec.Strategy.Type == placement.RolloutExternal:
		return "only staged update runs move it (strategy External)"
	}
	return ""
}

// deliveries returns the placements of the member's Works, sorted, and the number of its Bundles
// other than the agent's.
func (d *Drain) deliveries(ctx context.Context) (placements []client.ObjectKey, bundles int, err error) {
	namespace := view.MemberNamespace(d.Member)
	if namespace == "" {
		return nil, 0, nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(placement.GroupVersion.WithKind("WorkList"))
	err = view.Each(ctx, d.Hub, list, func(o client.Object) {
		if of := o.GetLabels()[placement.LabelParentCRP]; of != "" {
			placements = append(placements, client.ObjectKey{Namespace: o.GetLabels()[placement.LabelParentNamespace], Name: of})
		}
	}, client.InNamespace(namespace))
	if err != nil && !kube.NotServed(err) {
		return nil, 0, fmt.Errorf("listing Works in %s: %w", namespace, err)
	}
	list = &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(fleet.GroupVersion.WithKind("BundleDeploymentList"))
	err = view.Each(ctx, d.Hub, list, func(o client.Object) {
		if _, agents := o.GetLabels()[fleet.LabelAgent]; !agents {
			bundles++
		}
	}, client.InNamespace(namespace))
	if err != nil && !kube.NotServed(err) {
		return nil, 0, fmt.Errorf("listing BundleDeployments in %s: %w", namespace, err)
	}
	slices.SortFunc(placements, func(a, b client.ObjectKey) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return slices.Compact(placements), bundles, nil
}

// Plans returns the effects of a drain, as far as the hub has reported them.
func (d *Drain) Plans(ctx context.Context) (plans []Plan, stays []Stay, err error) {
	moves, stays, err := d.survey(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range moves {
		crp := &placement.ClusterResourcePlacement{}
		if err := d.Hub.Get(ctx, client.ObjectKey{Name: m.name}, crp); err != nil {
			return nil, nil, fmt.Errorf("reading ClusterResourcePlacement %s: %w", m.name, err)
		}
		if free := qualifying(crp); len(free) > 0 {
			plans = append(plans, Plan{m.name, free})
		} else {
			stays = append(stays, Stay{"ClusterResourcePlacement " + m.name, "no other member qualifies now; its status.obstacles says why"})
		}
	}
	return plans, stays, nil
}

// qualifying returns the members ready to take a placement, besides the picked ones.
func qualifying(crp *placement.ClusterResourcePlacement) (names []string) {
	for _, obstacle := range crp.Status.Obstacles {
		if obstacle.Reason == reasons.Outranked {
			names = append(names, obstacle.ClusterName)
		}
	}
	return names
}

// Run cordons the member, and moves its placements one eviction each. It can be repeated.
func (d *Drain) Run(ctx context.Context) (Result, error) {
	if err := d.decide(ctx, decision.Cordon); err != nil {
		return Result{}, err
	}
	d.say("%s is cordoned: it gets no new deliveries", d.title())
	moves, stays, err := d.survey(ctx)
	if err != nil {
		return Result{}, err
	}
	if err := d.move(ctx, moves); err != nil {
		d.stop(ctx, moves, err)
		return Result{}, err
	}
	result := Result{Stays: stays}
	for _, m := range moves {
		switch {
		case m.stays != "":
			result.Stays = append(result.Stays, Stay{"ClusterResourcePlacement " + m.name, m.stays})
		case m.moved:
			result.Moved++
		default:
			result.Started++
		}
	}
	if result.Started > 0 {
		return result, nil
	}
	if err := d.stillCordoned(ctx); err != nil {
		return Result{}, err
	}
	return result, d.decide(ctx, decision.Drained)
}

// stopped is the error of a drain ended by another decision.
type stopped struct{ error }

// stillCordoned returns an error unless the member is the same one, and cordoned.
func (d *Drain) stillCordoned(ctx context.Context) error {
	uid := d.Member.GetUID()
	if err := d.Hub.Get(ctx, client.ObjectKeyFromObject(d.Member), d.Member); err != nil {
		return fmt.Errorf("reading %s: %w", d.title(), err)
	}
	if d.Member.GetUID() != uid || d.Member.GetDeletionTimestamp() != nil || !membership.Cordoned(d.Member) {
		return stopped{fmt.Errorf("%s is no longer cordoned, so the drain has stopped", d.title())}
	}
	if err := Refusal(d.Member); err != nil {
		return stopped{err}
	}
	return nil
}

func (d *Drain) say(format string, args ...any) {
	if d.Say != nil {
		d.Say(fmt.Sprintf(format, args...))
	}
}

// decide writes a decision about the member.
func (d *Drain) decide(ctx context.Context, to decision.Decision) error {
	if err := to.Write(ctx, d.Hub, d.Member); err != nil {
		return fmt.Errorf("changing %s: %w", d.title(), err)
	}
	return nil
}

func (d *Drain) title() string { return view.Title(d.Member) }
