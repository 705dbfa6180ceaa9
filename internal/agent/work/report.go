package work

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// compareAll finds out in what the member differs from the manifests, and changes nothing.
func (c *Controller) compareAll(ctx context.Context, p *pass) error {
	for _, m := range p.manifests {
		show := &p.shown[m.ordinal]
		if m.problem != "" {
			show.outcome = refused(reasonInvalid, "%s", m.problem)
			continue
		}
		now, e := c.Clock.Now(), p.entries[m.key]
		s := seen{noticed: p.noticed[m.key], now: now}
		s.record, s.sight = c.lookAt(p, m, e, now)
		do, at := dueReport(m, e, s)
		if do == apply {
			result, as, err := c.compareOne(ctx, m, p.strategy.full)
			if err != nil {
				return err
			}
			e = e.next(m, result, as, now)
			p.entries[m.key] = e
			if _, compared := result.compared(); compared {
				c.tally.count(countCompared)
			} else {
				c.tally.count(countFailed)
				at = e.retryAt()
			}
		}
		show.outcome, show.record = e.outcome, e.as
		p.lookAgain(at)
	}
	p.forgetOthers()
	return nil
}

// compareOne compares one manifest with what is there.
func (c *Controller) compareOne(ctx context.Context, m manifest, full bool) (outcome, record, error) {
	if m.resource.Resource == "" {
		return notServed(m), record{}, nil
	}
	t := target{c.objects.Resource(m.resource).Namespace(m.key.Namespace), m, full}
	is, err := t.of.Get(ctx, m.key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		missing := placement.PatchDetail{Path: wholeObject, ValueInHub: "(the whole object)"}
		return differs(reasonDiffFound, listed([]placement.PatchDetail{missing}), nil, []placement.PatchDetail{missing}), record{}, nil
	}
	var found []placement.PatchDetail
	if err == nil {
		found, err = t.compare(ctx, is, m.object())
	}
	switch {
	case err != nil:
		result, err := outcomeOf(m, err, reasonRejected)
		return result, record{}, err
	case len(found) == 0:
		return differs(reasonNoDiff, "the member has it as the manifest says", is, nil), recordOf(is), nil
	}
	return differs(reasonDiffFound, "on the member "+listed(found), is, found), recordOf(is), nil
}

// forbids says why a manifest is not applied to an object that differs from it; its reason is empty if it may be.
func (t target) forbids(ctx context.Context, may admission, is, wanted *unstructured.Unstructured) (outcome, error) {
	reason, find := may.compare, t.compare
	if reason == "" {
		reason, find = may.extras, func(ctx context.Context, is, wanted *unstructured.Unstructured) ([]placement.PatchDetail, error) {
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
	found, err := find(ctx, is, wanted)
	if err != nil || len(found) == 0 {
		return outcome{}, err
	}
	return differs(reason, fmt.Sprintf("on the member %s: make it as the manifest says, or change applyStrategy", listed(found)), is, found), nil
}

// compare finds what applying would change, and if the comparison is full, what the object has besides.
func (t target) compare(ctx context.Context, is, wanted *unstructured.Unstructured) ([]placement.PatchDetail, error) {
	would, err := t.dryRun(ctx, wanted)
	if err != nil {
		return nil, err
	}
	found := differences(is, would)
	if !t.full {
		return found, nil
	}
	would.SetResourceVersion(is.GetResourceVersion())
	more, err := t.extras(ctx, would, wanted)
	return append(found, more...), err
}

// dryRun is the object as it would be, were the manifest applied.
func (t target) dryRun(ctx context.Context, wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return t.of.Apply(ctx, t.key.Name, wanted, metav1.ApplyOptions{FieldManager: fieldOwner, Force: true, DryRun: []string{metav1.DryRunAll}})
}

// extras finds what an object to which the manifest is applied has besides: what a replacement by the manifest would take away. What the
// API server fills in is none of that. Where it lets nobody replace an object, such as a Job, nothing can be found.
func (t target) extras(ctx context.Context, is, wanted *unstructured.Unstructured) ([]placement.PatchDetail, error) {
	bare := wanted.DeepCopy()
	bare.SetResourceVersion(is.GetResourceVersion())
	replaced, err := t.of.Update(ctx, bare, metav1.UpdateOptions{FieldManager: fieldOwner, DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsInvalid(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsBadRequest(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return differences(is, replaced), nil
}
