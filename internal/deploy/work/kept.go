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

// keptOf returns the deliveries unknown to a restored hub, by name: AppliedWorks without a Work, and
// objects that a Work lacks.
func (c *Controller) keptOf(works []placement.Work, appliedWorks []placement.AppliedWork) (all []applied.Kept) {
	has := map[string]bool{}
	for i := range works {
		has[works[i].Name] = true
	}
	for i := range appliedWorks {
		a := &appliedWorks[i]
		switch {
		case a.DeletionTimestamp != nil:
		case c.isFromLost(a) && !has[a.Name]:
			all = append(all, applied.Kept{Name: "Work " + a.Name, Remove: "kubectl delete appliedwork WORK"})
		case !c.isFromLost(a) && appliedFor(a, c.Namespace, c.Membership):
			for _, id := range keptIn(a) {
				all = append(all, applied.Kept{
					Name: fmt.Sprintf("%s of Work %s", keyOf(id), a.Name), Remove: "kubectl delete KIND NAME -n NAMESPACE",
				})
			}
		}
	}
	slices.SortFunc(all, func(a, b applied.Kept) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// reportKept reports the deliveries unknown to a restored hub, and reports whether there are any, or
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

// keptIn returns the noted objects of an AppliedWork.
func keptIn(appliedWork *placement.AppliedWork) (kept []placement.WorkResourceIdentifier) {
	if text := appliedWork.Annotations[annotationKept]; text != "" {
		_ = json.Unmarshal([]byte(text), &kept) // a user may have changed it
	}
	return kept[:min(len(kept), maxKeptObjects)]
}

// noteKept notes objects of an AppliedWork from before a restore of the hub.
func (c *Controller) noteKept(ctx context.Context, appliedWork *placement.AppliedWork, more []placement.AppliedResource) error {
	kept := keptIn(appliedWork)
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
	has := map[key]bool{}
	for _, m := range p.manifests {
		has[m.key] = true
	}
	kept := slices.DeleteFunc(keptIn(appliedWork), func(id placement.WorkResourceIdentifier) bool {
		object, sight := c.watcher.Get(ofKind(resourceOf(id)), keyOf(id).NamespacedName, "")
		return has[keyOf(id)] || sight == applied.Absent || sight == applied.Present && !object.of(appliedWork)
	})
	return c.writeKept(ctx, appliedWork, kept)
}

// writeKept writes the notes of an AppliedWork, if they changed.
func (c *Controller) writeKept(ctx context.Context, appliedWork *placement.AppliedWork, kept []placement.WorkResourceIdentifier) error {
	if slices.Equal(kept, keptIn(appliedWork)) {
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
