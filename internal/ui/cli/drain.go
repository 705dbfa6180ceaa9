package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/decision"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/ui/view"
)

func newDrain(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	c := &changer{IOStreams: streams, access: h, looked: lookedFor{"muster drain", kindsNamed("members")}, timeout: 15 * time.Minute}
	var undo, dryRun bool
	command := c.command(&cobra.Command{
		Use:    "drain [clusters|memberclusters] NAME",
		Hidden: true, // for lack of room on the page: the help of muster cordon names it
		Short:  "Cordon a member, and move its placements to other members",
		Long: `Cordon a member, and move its placements to other members. A ClusterResourcePlacement with
the policy PickN moves as soon as its ClusterResourcePlacementDisruptionBudget allows it;
without a budget, as soon as maxUnavailable of its strategy does. The hub evicts it only if
another member takes it.

Everything else stays, and the command names it: placements that pick all members, or members
by name, ResourcePlacements, and Bundles, which select Clusters by labels.

You may interrupt the command, and run it again. Placements that have moved stay where they
are, also after --undo.

You need the verb cordon on clusters or memberclusters, the rights to create, get and delete
clusterresourceplacementevictions, and to list Works of the member.`,
		Example: `  # List what would move, and what stays
  muster drain clusters/web --dry-run

  # Take a member out of service
  muster drain clusters/web

  # Let the member get new deliveries again
  muster drain clusters/web --undo`,
	}, func(ctx context.Context, hub client.Client, o client.Object) error {
		d := &drain{changer: c, hub: hub, member: o}
		switch {
		case undo:
			return c.cordon(ctx, hub, o, true)
		case membership.Quarantined(o):
			return fmt.Errorf("%s is quarantined, so the hub moves none of its placements: end that first with %s", c.title(o),
				membership.EndQuarantine(o))
		case dryRun:
			return d.describe(ctx)
		}
		return d.run(ctx)
	})
	command.Flags().BoolVar(&undo, "undo", false, "Let the member get new deliveries again; placements that have moved do not come back")
	command.Flags().BoolVar(&dryRun, "dry-run", false, "Only list what would move, and what stays and why")
	return command
}

// newUncordon is the spelling of kubectl for muster cordon --undo.
func newUncordon(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	c := &changer{IOStreams: streams, access: h, looked: lookedFor{"muster uncordon", kindsNamed("members")}}
	return c.once(&cobra.Command{
		Use:     "uncordon [clusters|memberclusters] NAME",
		Hidden:  true, // the same as cordon --undo
		Short:   "Let a cordoned or drained member get new deliveries again",
		Long:    `Let a cordoned or drained member get new deliveries again, as "muster cordon --undo" does.`,
		Example: `  muster uncordon clusters/web`,
	}, func(ctx context.Context, hub client.Client, o client.Object) error {
		return c.cordon(ctx, hub, o, true)
	})
}

// drain moves the placements of one member.
type drain struct {
	*changer
	hub    client.Client
	member client.Object
	// failing is the error of the last read; it may be temporary.
	failing error
}

// moving is a ClusterResourcePlacement that leaves the member.
type moving struct {
	name     string
	eviction *placement.ClusterResourcePlacementEviction
	// retryAt is the earliest time of the next eviction.
	retryAt time.Time
	state   string
	// stays is the reason why it does not leave.
	stays string
	moved bool
}

// held is an object that stays on the member.
type held struct{ what, why string }

// survey returns the placements that may move, sorted by name, and everything that stays.
func (d *drain) survey(ctx context.Context) (moves []*moving, stays []held, err error) {
	placements, bundles, err := d.deliveries(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, key := range placements {
		if key.Namespace != "" {
			stays = append(stays, held{kube.Name("ResourcePlacement", key.Namespace, key.Name), "evictions concern only ClusterResourcePlacements"})
			continue
		}
		what, crp := "ClusterResourcePlacement "+key.Name, &placement.ClusterResourcePlacement{}
		if err := d.hub.Get(ctx, key, crp); apierrors.IsNotFound(err) {
			stays = append(stays, held{what, "it is gone, and the hub removes its objects"})
			continue
		} else if err != nil {
			return nil, nil, fmt.Errorf("reading %s: %w", what, err)
		}
		if why := d.whyFixed(crp); why != "" {
			stays = append(stays, held{what, why})
		} else {
			moves = append(moves, &moving{name: key.Name})
		}
	}
	if bundles > 0 {
		stays = append(stays, held{fmt.Sprintf("%d Bundles", bundles), "Bundles select Clusters by labels and do not move: change the labels " +
			"or the targets to remove them"})
	}
	return moves, stays, nil
}

// whyFixed returns the reason why a placement never moves to another member; "" if it may move.
func (d *drain) whyFixed(crp *placement.ClusterResourcePlacement) string {
	kind := placement.PickAll
	if crp.Spec.Policy != nil {
		kind = cmp.Or(crp.Spec.Policy.PlacementType, placement.PickAll)
	}
	switch {
	case kind == placement.PickFixed:
		return fmt.Sprintf("it picks members by name (PickFixed): take %s out of its spec.policy.clusterNames", view.NameOf(d.member))
	case kind == placement.PickAll:
		return "it picks all members (PickAll), so no other member takes its place"
	case crp.Spec.Strategy.Type == placement.RolloutExternal:
		return "only staged update runs move it (strategy External)"
	}
	return ""
}

// deliveries returns the placements of the member's Works, sorted, and the number of its Bundles
// other than the agent's.
func (d *drain) deliveries(ctx context.Context) (placements []client.ObjectKey, bundles int, err error) {
	namespace := memberNamespaceOf(d.member)
	if namespace == "" {
		return nil, 0, nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(placement.GroupVersion.WithKind("WorkList"))
	err = view.Each(ctx, d.hub, list, func(o client.Object) {
		if of := o.GetLabels()[placement.LabelParentCRP]; of != "" {
			placements = append(placements, client.ObjectKey{Namespace: o.GetLabels()[placement.LabelParentNamespace], Name: of})
		}
	}, client.InNamespace(namespace))
	if err != nil && !kube.NotServed(err) {
		return nil, 0, fmt.Errorf("listing Works in %s: %w", namespace, err)
	}
	list = &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(fleet.GroupVersion.WithKind("BundleDeploymentList"))
	err = view.Each(ctx, d.hub, list, func(o client.Object) {
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

// describe prints the effects of a drain, as far as the hub has reported them.
func (d *drain) describe(ctx context.Context) error {
	moves, stays, err := d.survey(ctx)
	if err != nil {
		return err
	}
	if membership.Cordoned(d.member) {
		d.progress.line("%s is cordoned already.", d.title(d.member))
	} else {
		d.progress.line("%s would be cordoned.", d.title(d.member))
	}
	for _, m := range moves {
		crp := &placement.ClusterResourcePlacement{}
		if err := d.hub.Get(ctx, client.ObjectKey{Name: m.name}, crp); err != nil {
			return fmt.Errorf("reading ClusterResourcePlacement %s: %w", m.name, err)
		}
		if free := qualifying(crp); len(free) > 0 {
			d.progress.line("ClusterResourcePlacement %s would move to %s.", m.name, kube.JoinNames(free[:min(len(free), 3)], len(free)))
		} else {
			stays = append(stays, held{"ClusterResourcePlacement " + m.name, "no other member qualifies now; its status.obstacles says why"})
		}
	}
	d.list(stays)
	return d.progress.err
}

// qualifying returns the members that qualify for a placement, and that it does not need now.
func qualifying(crp *placement.ClusterResourcePlacement) (names []string) {
	for _, obstacle := range crp.Status.Obstacles {
		if obstacle.Reason == reasons.Outranked {
			names = append(names, obstacle.ClusterName)
		}
	}
	return names
}

// list prints the remaining objects.
func (d *drain) list(stays []held) {
	for _, s := range stays {
		d.progress.paragraph(2, "Stays: %s: %s.", s.what, strings.TrimSuffix(s.why, "."))
	}
}

// run cordons the member, and moves its placements one eviction each.
func (d *drain) run(ctx context.Context) error {
	if err := d.decide(ctx, d.hub, d.member, decision.Cordon); err != nil {
		return err
	}
	d.progress.step("%s is cordoned: it gets no new deliveries", d.title(d.member))
	moves, stays, err := d.survey(ctx)
	if err != nil {
		return err
	}
	if err := d.move(ctx, moves); err != nil {
		return err
	}
	count := 0
	for _, m := range moves {
		if m.stays != "" {
			stays = append(stays, held{"ClusterResourcePlacement " + m.name, m.stays})
		} else {
			count++
		}
	}
	d.list(stays)
	if err := d.decide(ctx, d.hub, d.member, decision.Drained); err != nil {
		return err
	}
	d.progress.line("%s is drained: %d placements moved. To let it get deliveries again: muster uncordon %s", d.title(d.member), count,
		view.NameOf(d.member))
	return cmp.Or(d.progress.err, ctx.Err())
}
