package work

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	delivered "github.com/muster-fleet/muster/internal/delivery/manifest"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// compareAll compares the manifests of a Work with the objects on the member. It changes nothing.
func (c *Controller) compareAll(ctx context.Context, p *pass) error {
	for _, m := range p.manifests {
		status := &p.manifestStatus[m.ordinal]
		if m.problem != "" {
			status.outcome = failedWith(reasons.InvalidManifest, "%s", m.problem)
			continue
		}
		now, e := c.Clock.Now(), p.attempts[m.key]
		s := observation{changed: p.changed[m.key], now: now}
		s.summary, s.Sight = c.observe(p, m, e, now)
		do, wake := dueComparison(m, e, s)
		if do == apply {
			result, as, err := c.compareManifest(ctx, p, m)
			if err != nil {
				return err
			}
			e = e.next(m, result, as, now)
			p.attempts[m.key] = e
			if _, compared := result.compared(); compared {
				c.counts.count(countCompared)
			} else {
				c.counts.count(countFailed)
				wake = e.retryAt()
			}
		}
		status.outcome, status.summary = e.outcome, e.as
		p.requeueAt(wake)
	}
	p.forgetOthers()
	return nil
}

// compareManifest compares one manifest with its object.
func (c *Controller) compareManifest(ctx context.Context, p *pass, m manifest) (outcome, summary, error) {
	if m.resource.Resource == "" {
		return notServed(m), summary{}, nil
	}
	t := p.target(c, m, owner{})
	object, err := t.of.Get(ctx, m.key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		missing := placement.PatchDetail{Path: wholeObject, ValueInHub: "(the whole object)"}
		return differs(reasons.DifferencesFound, listed([]placement.PatchDetail{missing}), nil, []placement.PatchDetail{missing}), summary{}, nil
	}
	var found []placement.PatchDetail
	if err == nil {
		wanted := m.object()
		if err = c.yield(ctx, &t, wanted, object); err == nil {
			found, err = t.compare(ctx, object, wanted)
		}
	}
	switch {
	case err != nil:
		result, err := outcomeOf(m, err, reasons.Rejected)
		return result, summary{}, err
	case len(found) == 0:
		return differs(reasons.NoDifference, "the object on the member matches the manifest", object, nil), summarize(object), nil
	}
	return differs(reasons.DifferencesFound, "on the member "+listed(found), object, found), summarize(object), nil
}

// forbids returns the reason not to apply a manifest to a differing object; empty if it may be
// applied.
func (t target) forbids(ctx context.Context, admitted admission, object, wanted *unstructured.Unstructured) (outcome, error) {
	reason, find := admitted.compare, t.compare
	if reason == "" {
		reason, find = admitted.extras, func(ctx context.Context, is, wanted *unstructured.Unstructured) ([]placement.PatchDetail, error) {
			would, err := t.dryRun(ctx, wanted)
			if err != nil {
				return nil, err
			}
			would.SetResourceVersion(is.GetResourceVersion())
			return t.extras(ctx, would, wanted)
		}
	}
	if reason == "" {
		return outcome{}, nil
	}
	found, err := find(ctx, object, wanted)
	if err != nil || len(found) == 0 {
		return outcome{}, err
	}
	message := fmt.Sprintf("on the member %s: restore it, or change applyStrategy", listed(found))
	return differs(reason, message, object, found), nil
}

// compare returns the changes an application would make. A full comparison adds the extra fields of
// the object.
func (t target) compare(ctx context.Context, object, wanted *unstructured.Unstructured) ([]placement.PatchDetail, error) {
	would, err := t.dryRun(ctx, wanted)
	if err != nil {
		return nil, err
	}
	found := differences(object, would)
	if !t.full {
		return found, nil
	}
	would.SetResourceVersion(object.GetResourceVersion())
	more, err := t.extras(ctx, would, wanted)
	return append(found, more...), err
}

// dryRun returns the object as it would be after applying the manifest.
func (t target) dryRun(ctx context.Context, wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return t.of.Apply(ctx, t.key.Name, wanted, metav1.ApplyOptions{FieldManager: fieldOwner, Force: true, DryRun: []string{metav1.DryRunAll}})
}

// extras returns the extra fields of the object, found by a dry run of a replacement by the
// manifest. Defaults are no extra fields. An irreplaceable object, such as a Job, has none.
func (t target) extras(ctx context.Context, object, wanted *unstructured.Unstructured) ([]placement.PatchDetail, error) {
	bare := wanted.DeepCopy()
	bare.SetResourceVersion(object.GetResourceVersion())
	delivered.Fill(bare, object, t.scaler, t.ignored)
	replaced, err := t.of.Update(ctx, bare, metav1.UpdateOptions{FieldManager: fieldOwner, DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsInvalid(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsBadRequest(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return differences(object, replaced), nil
}
