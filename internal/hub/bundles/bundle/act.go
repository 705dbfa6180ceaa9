package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/delivery/customization"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/removal"
	"github.com/muster-fleet/muster/internal/kube"
)

// batch is the number of deployments written before the Bundle is reconciled again. A pause or a
// revert therefore takes effect in the middle of a large fleet, and other Bundles get their turn.
const batch = 512

// due returns the targets with deployments to create and to change now, at most one batch. more
// reports whether others follow; the plan does not release them yet.
func (o observed) due(p plan) (fresh, changed []int, more bool) {
	for i, t := range o.targets {
		switch {
		case !t.needsWrite(p.release[i]):
		case len(fresh)+len(changed) == batch:
			more, p.release[i] = true, false
		case t.deployment == nil:
			fresh = append(fresh, i)
		default:
			changed = append(changed, i)
		}
	}
	return fresh, changed, more
}

// act writes the deployments released by the plan and other changes, at most one batch. It deletes
// the deployments of Clusters outside the Bundle's targets. It returns the number of new
// deployments, and reports whether more writes follow. A failed write is noted at its target, and
// the other writes continue.
func (c *Controller) act(ctx context.Context, o observed, p plan) (created int, more bool, err error) {
	if err := c.replaceLost(ctx, o); err != nil || !o.valid() {
		return 0, false, err
	}
	fresh, changed, more := o.due(p)
	if len(fresh) > 0 {
		// After a restore the cache of BundleDeployments may be ahead of the cache of Bundles. A new
		// BundleDeployment would then be deleted a moment later. Its agent would take this for the
		// deletion of a workload that the snapshot does not know.
		if gone, err := kube.IsGone(ctx, c.Live, fleet.GroupVersion.WithKind("Bundle"), o.bundle); gone || err != nil {
			return 0, false, err
		}
	}
	state := c.computedFor(client.ObjectKeyFromObject(o.bundle))
	if len(o.leftover) == 0 && !slices.ContainsFunc(o.targets, func(t target) bool { return t.deployment != nil }) {
		state.first = o.bundle.UID
	}
	releases := func(i int) bool {
		t := o.targets[i]
		return p.release[i] || t.edited() || t.valuesLost && t.current()
	}
	changed, stale, unread := c.fetchCopies(ctx, &o, changed, releases)
	if stale {
		return 0, true, nil
	}
	write := func(indexes []int, atOnce int) error {
		return forEach(ctx, len(indexes), atOnce, func(n int) error {
			i := indexes[n]
			t := &o.targets[i]
			t.failure = c.write(ctx, o, t, releases(i))
			return t.failure
		})
	}
	err = errors.Join(unread, write(fresh, min(maxNewOf(o.bundle), writers)), write(changed, writers))
	state.confirmed = o.confirms()
	if o.brake() == "" && o.takeover() == "" {
		err = errors.Join(err, c.deleteLeftover(ctx, o.leftover))
	}
	for _, i := range slices.Concat(fresh, changed) {
		state.recordAnswer(o.targets[i])
	}
	return len(fresh), more, err
}

// forEach calls do for each of n objects, with limited concurrency, and returns all errors.
func forEach(ctx context.Context, n, atOnce int, do func(int) error) error {
	failures := make([]error, n)
	workqueue.ParallelizeUntil(ctx, atOnce, n, func(i int) { failures[i] = do(i) })
	return errors.Join(failures...)
}

// write makes one deployment match the desired one. If the rollout holds it back, write changes
// only the fields outside the rollout. A new deployment with copies is held back once, because it
// owns them.
func (c *Controller) write(ctx context.Context, o observed, t *target, released bool) error {
	released = released && (t.deployment != nil || len(t.copies) == 0)
	state, namespace, err := membernamespace.OfCluster(t.cluster).ObserveNamespace(ctx, c.Client)
	if err != nil {
		return err
	}
	if state != membernamespace.NamespaceOurs {
		return nil // its controller reports it, and may create it again; the Bundle is then requeued
	}
	options, err := customization.Options(t.rules, o.bundle, t.matched, t.cluster)
	if err != nil {
		return err
	}
	t.completion.Apply(&options)
	d := t.desired.DeepCopy()
	secret := withOptions(d, options)
	if !released && t.deployment == nil {
		d.Spec.DeploymentID, d.Spec.Options, d.Spec.CorrectDrift = "", fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{}}, nil
		d.Spec.DownstreamResourcesGeneration = 0
	}
	if !released && t.deployment != nil {
		if secret, err = c.staged(ctx, t.deployment, d, secret); err != nil {
			return unlessLeaving(err)
		}
	}
	// The values come before the reference to them.
	if secret != nil {
		has := t.deployment != nil && t.deployment.Spec.ValuesHash != "" && !t.valuesLost
		if err := c.writeValues(ctx, secret, has); err != nil {
			return unlessLeaving(err)
		}
	}
	if t.deployment == nil {
		if err = c.GrantContents(ctx, namespace.Name, namespace.UID); err == nil { // before a reference to any Content
			err = c.Client.Create(ctx, d, kube.FieldOwner)
		}
	} else {
		d.UID = t.deployment.UID
		err = c.change(ctx, o, t, d, released)
	}
	if err != nil {
		return unlessLeaving(fmt.Errorf("writing BundleDeployment %s/%s: %w", d.Namespace, d.Name, err))
	}
	if _, err := WithoutOptions(d); err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(d)
	c.deploymentWrites.Expect(key, d)
	if released {
		t.answered = d.Annotations[cachedDigest]
		c.sent.Set(d.UID, c.Clock.Now())
		_, t.pending = c.deploymentWrites.Pending(key) // t.deployment has the report about the version before
	}
	if secret == nil && t.deployment != nil && t.deployment.Spec.ValuesHash != "" && released {
		return unlessLeaving(c.deleteValues(ctx, d))
	}
	return nil
}

// change writes an existing deployment and its copies. It removes the copies no longer named by the
// deployment.
func (c *Controller) change(ctx context.Context, o observed, t *target, d *fleet.BundleDeployment, released bool) error {
	if !released {
		return c.patch(ctx, t.deployment, d, false)
	}
	if err := c.writeCopies(ctx, o, d, t.copies); err != nil {
		return err
	}
	if err := c.patch(ctx, t.deployment, d, true); err != nil {
		return err
	}
	if otherCopies(t.deployment.Spec.DownstreamResourcesGeneration, d.Spec.DownstreamResourcesGeneration) {
		return c.dropCopies(ctx, d, t.copies)
	}
	return nil
}

// operation is an operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// earlierError notes the error in the status of another deployment ID, because agents do not name
// the subject of their errors.
func earlierError(before, d *fleet.BundleDeployment) ([]operation, error) {
	if before.Spec.DeploymentID == d.Spec.DeploymentID {
		return nil, nil
	}
	noted, err := delivery.ErrorDigest(before)
	if err != nil || noted == "" {
		return nil, err
	}
	annotations := maps.Clone(before.Annotations)
	delete(annotations, cachedDigest)
	if len(annotations) == 0 {
		return []operation{{"add", "/metadata/annotations", map[string]string{fleet.AnnotationEarlierError: noted}}}, nil
	}
	return []operation{{"add", "/metadata/annotations/" + strings.ReplaceAll(fleet.AnnotationEarlierError, "/", "~1"), noted}}, nil
}

// patch replaces whole parts of a deployment, independent of concurrent status writes by its
// agent.
func (c *Controller) patch(ctx context.Context, before, d *fleet.BundleDeployment, released bool) error {
	operations := []operation{
		{"test", "/metadata/uid", d.UID},
		{"add", "/metadata/labels", d.Labels},
		{"add", "/metadata/managedFields", kube.Untracked},
	}
	if released {
		noted, err := earlierError(before, d)
		if err != nil {
			return err
		}
		operations = append(append(operations, operation{"add", "/spec", d.Spec}), noted...)
	} else {
		operations = append(operations,
			operation{"add", "/spec/paused", d.Spec.Paused},
			operation{"add", "/spec/offSchedule", d.Spec.OffSchedule},
			operation{"add", "/spec/dependsOn", d.Spec.DependsOn},
			operation{"add", "/spec/stagedOptions", d.Spec.StagedOptions},
			operation{"add", "/spec/stagedDeploymentID", d.Spec.StagedDeploymentID},
			operation{"add", "/spec/valuesHash", d.Spec.ValuesHash},
		)
	}
	text, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	return c.Client.Patch(ctx, d, client.RawPatch(types.JSONPatchType, text), kube.FieldOwner)
}

// writeValues writes the Secret with the values of a deployment; exists is a guess.
func (c *Controller) writeValues(ctx context.Context, secret *corev1.Secret, exists bool) error {
	key := client.ObjectKeyFromObject(secret)
	edit, edited := c.editedSecrets.Get(key) // a later edit stays noted
	update := func() error { return c.Client.Update(ctx, secret, kube.FieldOwner) }
	create := func() error { return c.Client.Create(ctx, secret, kube.FieldOwner) }
	var err error
	if exists {
		if err = update(); apierrors.IsNotFound(err) {
			err = create()
		}
	} else if err = create(); apierrors.IsAlreadyExists(err) {
		err = update()
	}
	if err != nil {
		return fmt.Errorf("writing Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	c.secretWrites.Expect(key, secret)
	if edited {
		kube.ForgetIf(&c.editedSecrets, key, edit)
	}
	return nil
}

func (c *Controller) deleteValues(ctx context.Context, d *fleet.BundleDeployment) error {
	return kube.Delete(ctx, c.Client, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}})
}

// unlessLeaving returns the error, or nil if the cause is only the departure of the member. An
// unserved kind is an error: the member stays.
func unlessLeaving(err error) error {
	switch {
	case kube.NotServed(err):
		return fmt.Errorf("%w: install the fleet-crd chart", err)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), apierrors.IsNotFound(err):
		return nil
	}
	return err
}

// deleteDeployment deletes a deployment, its values first: after a crash in between, the deployment
// still leads to the rest. The agent uninstalls once the deployment is gone. A finalizer of
// upstream's hub is removed with it, because no controller would remove it.
func (c *Controller) deleteDeployment(ctx context.Context, d *fleet.BundleDeployment, cause removal.Cause) error {
	if err := c.recordRemoval(ctx, d); err != nil {
		return err
	}
	if d.Spec.ValuesHash != "" {
		if err := c.deleteValues(ctx, d); err != nil {
			return err
		}
	}
	if controllerutil.ContainsFinalizer(d, fleet.FinalizerBundleDeployment) {
		after := d.DeepCopy()
		controllerutil.RemoveFinalizer(after, fleet.FinalizerBundleDeployment)
		if err := kube.Patch(ctx, c.Client, d, after); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing the finalizer of BundleDeployment %s/%s: %w", d.Namespace, d.Name, err)
		}
	}
	c.lost.deleting(d.UID)
	err := removal.Delete(ctx, c.Client, d, cause)
	if err != nil {
		c.lost.stays(d.UID)
	}
	return err
}
