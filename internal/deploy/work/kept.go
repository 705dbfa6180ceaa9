package work

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/retry"
)

const (
	// annotationKept is the annotation of an AppliedWork for objects from before a restore of the hub
	// that its Work lacks since.
	annotationKept = "muster/kept-objects"
	// maxKeptObjects bounds the annotation.
	maxKeptObjects = 100
	// keptPause is the time for a restored hub to write the Works of its backup, before the others
	// count as unknown to it.
	keptPause = 2 * time.Minute
)

// isFromLost reports whether an AppliedWork is from before a restore of the hub, and no Work has
// adopted it since.
func (c *Controller) isFromLost(appliedWork *placement.AppliedWork) bool {
	return slices.Contains(c.Lost, appliedWork.Labels[naming.LabelMember])
}

// keptOf returns the deliveries unknown to a restored hub, by name: AppliedWorks without a Work,
// and objects that a Work lacks.
func (c *Controller) keptOf(works []placement.Work, appliedWorks []placement.AppliedWork) (deliveries []applied.Kept) {
	delivered := map[string]bool{}
	for i := range works {
		delivered[works[i].Name] = true
	}
	for i := range appliedWorks {
		if a := &appliedWorks[i]; a.DeletionTimestamp == nil {
			deliveries = append(deliveries, c.keptIn(a, delivered[a.Name])...)
		}
	}
	slices.SortFunc(deliveries, func(a, b applied.Kept) int { return cmp.Compare(a.Name, b.Name) })
	return deliveries
}

// keptIn returns the unknown deliveries of one AppliedWork, with or without a Work.
func (c *Controller) keptIn(a *placement.AppliedWork, delivered bool) (deliveries []applied.Kept) {
	switch lost := c.isFromLost(a); {
	case lost && !delivered:
		return []applied.Kept{{Name: "Work " + a.Name, Remove: "kubectl delete appliedwork WORK"}}
	case lost, !appliedFor(a, c.Namespace, c.Membership):
		return nil
	}
	for _, id := range notedIn(a) {
		name := fmt.Sprintf("%s of Work %s", keyOf(id), a.Name)
		deliveries = append(deliveries, applied.Kept{Name: name, Remove: "kubectl delete KIND NAME -n NAMESPACE"})
	}
	return deliveries
}

// reportKept reports the deliveries unknown to a restored hub. It returns whether there are any, or
// may be some after the pause.
func (c *Controller) reportKept(ctx context.Context, works []placement.Work) bool {
	var kept []applied.Kept
	if len(c.Lost) > 0 {
		var all placement.AppliedWorkList
		if err := c.member.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
			return true // the cache is not synced yet
		}
		kept = c.keptOf(works, all.Items)
	}
	if len(kept) > 0 && !c.settled {
		return true
	}
	if c.Kept != nil && (!c.toldKept || !slices.Equal(c.kept, kept)) {
		c.toldKept, c.kept = true, kept
		c.Kept(kept)
	}
	return len(kept) > 0
}

// settle reports unknown deliveries after the pause.
func (c *Controller) settle(ctx context.Context) {
	if len(c.Lost) == 0 || retry.Wait(ctx, c.Clock, c.KeptPause) != nil {
		return
	}
	c.reporting.Lock()
	c.settled = true
	c.reporting.Unlock()
	c.reportIdle(ctx)
}

// notedIn returns the noted objects of an AppliedWork.
func notedIn(appliedWork *placement.AppliedWork) (kept []placement.WorkResourceIdentifier) {
	if text := appliedWork.Annotations[annotationKept]; text != "" {
		_ = json.Unmarshal([]byte(text), &kept) // a user may have changed it
	}
	return kept[:min(len(kept), maxKeptObjects)]
}

// noteKept notes objects of an AppliedWork from before a restore of the hub.
func (c *Controller) noteKept(ctx context.Context, appliedWork *placement.AppliedWork, more []placement.AppliedResource) error {
	kept := notedIn(appliedWork)
	for _, one := range more {
		is := func(id placement.WorkResourceIdentifier) bool { return keyOf(id) == keyOf(one.WorkResourceIdentifier) }
		if !slices.ContainsFunc(kept, is) && len(kept) < maxKeptObjects {
			kept = append(kept, one.WorkResourceIdentifier)
		}
	}
	return c.writeKept(ctx, appliedWork, kept)
}

// reviewKept removes the notes of objects that the Work has again, and of objects that are gone or
// have another owner.
func (c *Controller) reviewKept(ctx context.Context, p *pass, appliedWork *placement.AppliedWork) error {
	wanted := p.keys()
	kept := slices.DeleteFunc(notedIn(appliedWork), func(id placement.WorkResourceIdentifier) bool {
		object, sight := c.watcher.Get(ofKind(resourceOf(id)), keyOf(id).NamespacedName, "")
		return wanted[keyOf(id)] || sight == applied.Absent || sight == applied.Present && !object.of(appliedWork)
	})
	return c.writeKept(ctx, appliedWork, kept)
}

// writeKept writes the notes of an AppliedWork, if they changed.
func (c *Controller) writeKept(ctx context.Context, appliedWork *placement.AppliedWork, kept []placement.WorkResourceIdentifier) error {
	if slices.Equal(kept, notedIn(appliedWork)) {
		return nil
	}
	before := appliedWork.DeepCopy()
	delete(appliedWork.Annotations, annotationKept)
	if len(kept) > 0 {
		text, err := json.Marshal(kept)
		if err != nil {
			return fmt.Errorf("encoding the kept objects of AppliedWork %s: %w", appliedWork.Name, err)
		}
		if appliedWork.Annotations == nil {
			appliedWork.Annotations = map[string]string{}
		}
		appliedWork.Annotations[annotationKept] = string(text)
	}
	if err := c.member.Patch(ctx, appliedWork, changesOf(before), client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("noting the kept objects of AppliedWork %s: %w", appliedWork.Name, err)
	}
	c.expected.Expect(client.ObjectKeyFromObject(appliedWork), appliedWork)
	return nil
}
