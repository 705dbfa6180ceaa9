package work

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// pass is one reconciliation of all manifests of a Work.
type pass struct {
	work      *placement.Work
	strategy  strategy
	manifests []manifest
	attempts  map[key]attempt
	changed   map[key]bool
	// runs are the known runs of Jobs, by namespace and name; ended are the runs this agent saw end.
	runs  map[string]applied.Run
	ended map[key]applied.Run
	// manifestStatus is the status of each manifest, by ordinal.
	manifestStatus []manifestStatus
	// left are objects no longer in the Work and not deleted yet.
	left []string
	// requeue is the time of the next reconciliation without an event; zero if there is none.
	requeue time.Time
}

// manifestStatus is the state of one manifest and its object.
type manifestStatus struct {
	outcome outcome
	summary summary
	// causes are the reasons why an object is not ready, beside its own status.
	causes []string
}

// apply applies the manifests of a Work to the member.
func (c *Controller) apply(ctx context.Context, work *placement.Work, appliedWork *placement.AppliedWork) (*pass, error) {
	p := &pass{
		work: work, strategy: strategyOf(work.Spec.ApplyStrategy), manifestStatus: make([]manifestStatus, len(work.Spec.Workload.Manifests)),
	}
	p.manifests, p.attempts, p.changed, p.ended = c.tracker.open(work)
	p.manifests = slices.Clone(p.manifests)
	defer func() { c.tracker.keep(work.Name, p.attempts) }()
	if err := c.resolve(p); err != nil {
		return nil, err
	}
	used := map[applied.Query]bool{}
	for _, m := range p.manifests {
		if m.resource.Resource != "" {
			used[p.query(m)] = true
		}
	}
	if appliedWork != nil {
		maps.Copy(used, resourcesOf(appliedWork))
	}
	c.watcher.Use(work.Name, used)
	if p.strategy.reports {
		return p, c.compareAll(ctx, p)
	}
	appliedWork, err := c.writeAhead(ctx, p, appliedWork)
	if err != nil {
		return nil, err
	}
	self := owner{appliedWork.Name, appliedWork.UID}
	p.runs = runsOf(appliedWork)
	for _, m := range inOrder(p.manifests) {
		if err := c.reconcileManifest(ctx, p, m, self); err != nil {
			return nil, err
		}
	}
	p.forgetOthers()
	if err := c.note(ctx, p, appliedWork); err != nil {
		return nil, err
	}
	if err := c.reviewKept(ctx, p, appliedWork); err != nil {
		return nil, err
	}
	return p, c.pruneAndList(ctx, p, appliedWork)
}

// keys returns the objects of the manifests.
func (p *pass) keys() map[key]bool {
	keys := map[key]bool{}
	for _, m := range p.manifests {
		keys[m.key] = true
	}
	return keys
}

// query returns the watch for the object of a manifest. With the strategy ReportDiff, the object
// has no label of the agent.
func (p *pass) query(m manifest) applied.Query {
	if p.strategy.reports {
		return applied.Query{GroupVersionResource: m.resource, NamespacedName: m.key.NamespacedName}
	}
	return ofKind(m.resource)
}

// ofKind returns the watch for all applied objects of a resource.
func ofKind(resource schema.GroupVersionResource) applied.Query {
	return applied.Query{GroupVersionResource: resource}
}

// forgetOthers drops the attempts at manifests no longer in the Work.
func (p *pass) forgetOthers() {
	kept := p.keys()
	maps.DeleteFunc(p.attempts, func(k key, _ attempt) bool { return !kept[k] })
}

// resolve looks up the resource of each manifest. A manifest of an unserved kind waits for the next
// pass, even if this pass applies its CustomResourceDefinition. The AppliedWork must list an object
// before it is applied.
func (c *Controller) resolve(p *pass) error {
	for i := range p.manifests {
		if err := p.manifests[i].resolve(c.mapper); err != nil && !meta.IsNoMatchError(err) {
			return fmt.Errorf("asking what this cluster serves: %w", err)
		}
	}
	return nil
}

func resourcesOf(appliedWork *placement.AppliedWork) map[applied.Query]bool {
	queries := map[applied.Query]bool{}
	for _, one := range appliedWork.Status.AppliedResources {
		if one.Resource != "" {
			queries[ofKind(resourceOf(one.WorkResourceIdentifier))] = true
		}
	}
	for _, id := range notedIn(appliedWork) {
		queries[ofKind(resourceOf(id))] = true
	}
	return queries
}

// reconcileManifest observes the object of one manifest, decides, and applies the manifest if it is
// due.
func (c *Controller) reconcileManifest(ctx context.Context, p *pass, m manifest, self owner) error {
	now, status := c.Clock.Now(), &p.manifestStatus[m.ordinal]
	if m.problem != "" {
		status.outcome = failedWith(reasons.InvalidManifest, "%s", m.problem)
		return nil
	}
	e := p.attempts[m.key]
	s := observation{changed: p.changed[m.key], owner: self.uid, full: p.strategy.full, now: now}
	s.summary, s.Sight = c.observe(p, m, e, now)
	do, wake := due(m, e, s)
	if s.rival != "" {
		e.rival = s.rival
	}
	if do == apply {
		result, as, err := c.applyManifest(ctx, p, m, self)
		if err != nil {
			return err
		}
		if result.ran.Ended == "" {
			c.counts.count(map[bool]string{true: countFailed, false: countApplied}[result.failed()])
		}
		tries, own := e.tries, s.Sight == applied.Present && e.owns(s)
		if e = e.next(m, result, as, now); own && !result.failed() {
			e.tries = tries // an extra field is not contested
		}
		p.attempts[m.key] = e
		if s = (observation{owner: self.uid, now: now}); result.failed() {
			wake = e.retryAt()
		}
	}
	status.outcome, status.summary = e.outcome, e.as
	if s.Sight == applied.Present && (e.waitsFor(now) == "" || !applied.Older(s.version, e.as.version)) {
		status.summary = s.summary
	}
	switch {
	case do == wait:
		status.outcome = deletion(&s.summary)
	case do == delay, e.contested(now) && !e.outcome.failed():
		status.outcome = contested(e.rival)
	}
	p.requeueAt(wake)
	return nil
}

// observe returns the state of the object of a manifest from the watches. It requeues the Work for
// the end of its patience with a delayed watch.
func (c *Controller) observe(p *pass, m manifest, e attempt, now time.Time) (summary, applied.Sight) {
	since := e.waitsFor(now)
	is, sight := c.watcher.Get(p.query(m), m.key.NamespacedName, since)
	if sight == applied.Unsure && since != "" {
		p.requeueAt(e.triedAt.Add(applied.CatchUp))
	}
	return is, sight
}

func contested(rival string) outcome {
	if rival == "" {
		rival = "another program"
	}
	return failedWith(reasons.Contested, "%s keeps changing it on the member, so the agent corrects it less and less often: remove the "+
		"fields of %s from the manifest", rival, rival)
}

func (p *pass) requeueAt(at time.Time) { p.requeue = kube.Earlier(p.requeue, at) }

// applyManifest applies one manifest. It returns the summary of the object afterwards, if the Work
// owns the object.
func (c *Controller) applyManifest(ctx context.Context, p *pass, m manifest, self owner) (outcome, summary, error) {
	if m.resource.Resource == "" {
		return notServed(m), summary{}, nil
	}
	objects := c.objects.Resource(m.resource).Namespace(m.key.Namespace)
	object, err := objects.Get(ctx, m.key.Name, metav1.GetOptions{})
	var existing *summary
	var from map[types.UID]giver
	switch {
	case err == nil:
		found := summarize(object)
		existing = &found
		if from, err = c.givers(ctx, p.work, existing); err != nil {
			return outcome{}, summary{}, err
		}
	case !apierrors.IsNotFound(err):
		result, err := outcomeOf(m, err, "")
		return result, summary{}, err
	default:
		if ran, err := c.ran(ctx, p, m); err != nil || ran.Ended != "" {
			return outcome{reason: reasons.ManifestApplied, ran: ran}, summary{}, err
		}
	}
	if existing != nil && existing.isOrphanOf(self.name) {
		if err := c.checkOwner(ctx, self); err != nil {
			return outcome{}, summary{}, err
		}
	}
	result, after, err := c.applyTo(ctx, p.target(c, m, self), admit(m, p.strategy, self, existing, from), self, object)
	if err != nil {
		return outcome{}, summary{}, err
	}
	if result.failed() && existing != nil && existing.ownedBy(self.uid) {
		return result, *existing, nil
	}
	return result, after, nil
}

// applyTo applies an admitted manifest to an existing object; nil if there is none.
func (c *Controller) applyTo(ctx context.Context, t target, admitted admission, self owner,
	existing *unstructured.Unstructured) (outcome, summary, error) {
	if admitted.refusal.reason != "" {
		return admitted.refusal, summary{}, nil
	}
	answer := func(err error) (outcome, summary, error) {
		result, err := outcomeOf(t.manifest, err, admitted.conflict)
		return result, summary{}, err
	}
	wanted := marked(t.manifest, self, admitted)
	if existing != nil {
		if err := c.yield(ctx, &t, wanted, existing); err != nil {
			return answer(err)
		}
		refusal, err := t.forbids(ctx, admitted, existing, wanted)
		if err != nil {
			return answer(err)
		}
		if refusal.reason != "" {
			return refusal, summary{}, nil
		}
		if err := c.upgradeFields(ctx, t.of, existing); err != nil {
			return answer(err)
		}
	}
	appliedWork, err := t.of.Apply(ctx, t.key.Name, wanted, metav1.ApplyOptions{FieldManager: fieldOwner, Force: admitted.force})
	if err != nil {
		result, err := outcomeOf(t.manifest, err, admitted.conflict)
		if err != nil || result.reason != reasons.Drifted {
			return result, summary{}, err
		}
		found, err := t.compare(ctx, existing, wanted)
		if err != nil {
			return answer(err)
		}
		return differs(reasons.Drifted, result.message, existing, found), summary{}, nil
	}
	result := outcome{reason: reasons.ManifestApplied}
	if t.full {
		extras, err := t.extras(ctx, appliedWork, wanted)
		if err != nil {
			return answer(err)
		}
		result = differs(reasons.ManifestApplied, "", appliedWork, extras)
	}
	after := summarize(appliedWork)
	after.scaler = t.scaler
	return result, after, nil
}

// marked returns the manifest with the owner, label and annotations of its Work.
func marked(m manifest, self owner, admitted admission) *unstructured.Unstructured {
	object := m.object()
	object.SetUID(admitted.uid)
	object.SetOwnerReferences(append(admitted.keep, self.reference()))
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[labelWork] = labelValue(self.name)
	object.SetLabels(labels)
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationHash] = m.hash
	if admitted.takesOver {
		annotations[annotationTakenOver] = strconv.FormatBool(true)
	}
	object.SetAnnotations(annotations)
	return object
}
