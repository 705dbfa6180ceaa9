package work

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/csaupgrade"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// pass is one look at all manifests of a Work.
type pass struct {
	work      *placement.Work
	strategy  strategy
	manifests []manifest
	entries   map[key]entry
	noticed   map[key]bool
	// shown is what the status says of each manifest, by ordinal.
	shown []shown
	// left is what the Work no longer has and is not gone yet.
	left []string
	// again is when to look again if nothing happens; zero if never.
	again time.Time
}

// shown is what the status says of one manifest.
type shown struct {
	outcome outcome
	record  record
}

// apply makes the member have what the manifests say.
func (c *Controller) apply(ctx context.Context, work *placement.Work, applied *placement.AppliedWork) (*pass, error) {
	p := &pass{work: work, strategy: strategyOf(work.Spec.ApplyStrategy), shown: make([]shown, len(work.Spec.Workload.Manifests))}
	p.manifests, p.entries, p.noticed = c.ledger.open(work)
	p.manifests = slices.Clone(p.manifests)
	defer func() { c.ledger.keep(work.Name, p.entries) }()
	if err := c.resolve(p); err != nil {
		return nil, err
	}
	used := map[query]bool{}
	for _, m := range p.manifests {
		if m.resource.Resource != "" {
			used[p.query(m)] = true
		}
	}
	if applied != nil {
		maps.Copy(used, resourcesOf(applied))
	}
	c.kinds.use(work.Name, used)
	if p.strategy.reports {
		return p, c.compareAll(ctx, p)
	}
	applied, err := c.foresee(ctx, p, applied)
	if err != nil {
		return nil, err
	}
	mine := owner{applied.Name, applied.UID}
	for _, m := range inOrder(p.manifests) {
		if err := c.settle(ctx, p, m, mine); err != nil {
			return nil, err
		}
	}
	p.forgetOthers()
	return p, c.account(ctx, p, applied)
}

// query is the watch that tells of the object of a manifest. What is only compared does not carry the agent's label.
func (p *pass) query(m manifest) query {
	if p.strategy.reports {
		return query{m.resource, m.key.NamespacedName}
	}
	return labelled(m.resource)
}

// forgetOthers drops what is remembered of objects that are no longer in the Work.
func (p *pass) forgetOthers() {
	kept := map[key]bool{}
	for _, m := range p.manifests {
		kept[m.key] = true
	}
	maps.DeleteFunc(p.entries, func(k key, _ entry) bool { return !kept[k] })
}

// resolve finds out by what the API serves each manifest. What it does not serve waits for the next pass, even if a manifest of this one
// brings it: nothing is applied that was not foreseen.
func (c *Controller) resolve(p *pass) error {
	for i := range p.manifests {
		if err := p.manifests[i].resolve(c.mapper); err != nil && !meta.IsNoMatchError(err) {
			return fmt.Errorf("asking what this cluster serves: %w", err)
		}
	}
	return nil
}

func resourcesOf(applied *placement.AppliedWork) map[query]bool {
	queries := map[query]bool{}
	for _, one := range applied.Status.AppliedResources {
		if one.Resource != "" {
			queries[labelled(resourceOf(one.WorkResourceIdentifier))] = true
		}
	}
	return queries
}

// settle does what is due about one manifest.
func (c *Controller) settle(ctx context.Context, p *pass, m manifest, mine owner) error {
	now, show := c.Clock.Now(), &p.shown[m.ordinal]
	if m.problem != "" {
		show.outcome = refused(reasonInvalid, "%s", m.problem)
		return nil
	}
	e := p.entries[m.key]
	s := seen{noticed: p.noticed[m.key], owner: mine.uid, full: p.strategy.full, now: now}
	s.record, s.sight = c.lookAt(p, m, e, now)
	do, at := due(m, e, s)
	if s.rival != "" {
		e.rival = s.rival
	}
	if do == apply {
		result, as, err := c.attempt(ctx, m, p.strategy, mine)
		if err != nil {
			return err
		}
		c.tally.count(map[bool]string{true: countFailed, false: countApplied}[result.failed()])
		tries, ours := e.tries, s.sight == present && e.owns(s)
		if e = e.next(m, result, as, now); ours && !result.failed() {
			e.tries = tries // what others have besides is not fought over
		}
		p.entries[m.key] = e
		if s = (seen{owner: mine.uid, now: now}); result.failed() {
			at = e.retryAt()
		}
	}
	show.outcome, show.record = e.outcome, e.as
	if s.sight == present && (e.awaited(now) == "" || !older(s.version, e.as.version)) {
		show.record = s.record
	}
	switch {
	case do == await:
		show.outcome = deletion(&s.record)
	case do == hold, e.contested(now) && !e.outcome.failed():
		show.outcome = contested(e.rival)
	}
	p.lookAgain(at)
	return nil
}

// lookAt returns what is known of the object of a manifest that was tried before, and looks again when a watch that is behind has had its time.
func (c *Controller) lookAt(p *pass, m manifest, e entry, now time.Time) (record, sight) {
	since := e.awaited(now)
	is, sight := c.kinds.look(p.query(m), m.key.NamespacedName, since)
	if sight == unsure && since != "" {
		p.lookAgain(e.triedAt.Add(catchUp))
	}
	return is, sight
}

func contested(rival string) outcome {
	if rival == "" {
		rival = "somebody"
	}
	return refused(reasonContested, "%s keeps changing it on the member, so that it is set right less and less often: take what %s decides out of the manifest", rival, rival)
}

func (p *pass) lookAgain(at time.Time) {
	if !at.IsZero() && (p.again.IsZero() || at.Before(p.again)) {
		p.again = at
	}
}

// attempt applies one manifest. It returns the object as it then is, if it is the Work's.
func (c *Controller) attempt(ctx context.Context, m manifest, s strategy, mine owner) (outcome, record, error) {
	if m.resource.Resource == "" {
		return notServed(m), record{}, nil
	}
	of := c.objects.Resource(m.resource).Namespace(m.key.Namespace)
	object, err := of.Get(ctx, m.key.Name, metav1.GetOptions{})
	var is *record
	switch {
	case err == nil:
		found := recordOf(object)
		is = &found
	case !apierrors.IsNotFound(err):
		result, err := outcomeOf(m, err, "")
		return result, record{}, err
	}
	if is != nil && is.leftBehind(mine.name) {
		if err := c.ownerStays(ctx, mine); err != nil {
			return outcome{}, record{}, err
		}
	}
	result, after, err := c.applyTo(ctx, target{of, m, s.full}, admit(m, s, mine, is), mine, object)
	if err != nil {
		return outcome{}, record{}, err
	}
	if result.failed() && is != nil && is.ownedBy(mine.uid) {
		return result, *is, nil
	}
	return result, after, nil
}

// target is what a manifest is applied to or compared with.
type target struct {
	of dynamic.ResourceInterface
	manifest
	// full: what only the object has is a difference, too.
	full bool
}

// applyTo applies a manifest to what is there, nil if nothing is, as it was admitted.
func (c *Controller) applyTo(ctx context.Context, t target, may admission, mine owner, is *unstructured.Unstructured) (outcome, record, error) {
	if may.refused.reason != "" {
		return may.refused, record{}, nil
	}
	answer := func(err error) (outcome, record, error) {
		result, err := outcomeOf(t.manifest, err, may.conflict)
		return result, record{}, err
	}
	wanted := dress(t.manifest, mine, may.keep)
	if is != nil {
		refusal, err := t.forbids(ctx, may, is, wanted)
		if err != nil {
			return answer(err)
		}
		if refusal.reason != "" {
			return refusal, record{}, nil
		}
		if err := c.inherit(ctx, t.of, is); err != nil {
			return answer(err)
		}
	}
	applied, err := t.of.Apply(ctx, t.key.Name, wanted, metav1.ApplyOptions{FieldManager: fieldOwner, Force: may.force})
	if err != nil {
		result, err := outcomeOf(t.manifest, err, may.conflict)
		if err != nil || result.reason != reasonDrifted {
			return result, record{}, err
		}
		found, err := t.compare(ctx, is, wanted)
		if err != nil {
			return answer(err)
		}
		return differs(reasonDrifted, result.message, is, found), record{}, nil
	}
	result := outcome{reason: reasonApplied}
	if t.full {
		extras, err := t.extras(ctx, applied, wanted)
		if err != nil {
			return answer(err)
		}
		result = differs(reasonApplied, "", applied, extras)
	}
	return result, recordOf(applied), nil
}

// inherit takes over what KubeFleet's agent applied by merging on the client, so that fields which a manifest no longer has go.
func (c *Controller) inherit(ctx context.Context, of dynamic.ResourceInterface, is *unstructured.Unstructured) error {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(is, sets.New(fieldOwner), fieldOwner)
	if err != nil || patch == nil {
		return err
	}
	_, err = of.Patch(ctx, is.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fieldOwner})
	return err
}

// dress is the manifest with what marks it as the Work's.
func dress(m manifest, mine owner, others []metav1.OwnerReference) *unstructured.Unstructured {
	object := m.object()
	object.SetOwnerReferences(append(others, mine.reference()))
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[labelWork] = labelValue(mine.name)
	object.SetLabels(labels)
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationHash] = m.hash
	object.SetAnnotations(annotations)
	return object
}
