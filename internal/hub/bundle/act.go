package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/kube"
)

// act writes what the plan releases and what else changed, and takes away what is left over. It returns how many deployments are new.
// What fails is noted at its target; the rest goes on.
func (c *Controller) act(ctx context.Context, o observed, p plan) (created int, err error) {
	if !o.makesSense() {
		return 0, nil
	}
	var fresh, changed []int
	for i := range o.targets {
		switch t := &o.targets[i]; {
		case !t.needsWrite(p.release[i]):
		case t.deployment == nil:
			fresh = append(fresh, i)
		default:
			changed = append(changed, i)
		}
	}
	maxNew := defaultMaxNew
	if strategy := o.bundle.Spec.RolloutStrategy; strategy != nil {
		maxNew = max(valueOr(strategy.MaxNew, defaultMaxNew), 1)
	}
	write := func(i int) {
		t := &o.targets[i]
		t.failure = c.write(ctx, o.bundle, t, p.release[i] || t.edited())
	}
	each(fresh, min(int(maxNew), writers), write)
	each(changed, writers, write)
	failures := c.takeLeftoverAway(ctx, o.leftover)
	known := c.memory(keyOfBundle(o.bundle))
	for _, i := range slices.Concat(fresh, changed) {
		known.learn(o.targets[i])
		failures = append(failures, o.targets[i].failure)
	}
	return len(fresh), errors.Join(failures...)
}

// each does something for every index, at most so many at once.
func each(indexes []int, atOnce int, do func(int)) {
	room := make(chan struct{}, max(atOnce, 1))
	var group sync.WaitGroup
	for _, i := range indexes {
		room <- struct{}{}
		group.Go(func() {
			defer func() { <-room }()
			do(i)
		})
	}
	group.Wait()
}

func indexes(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// write brings one deployment to what is wanted: all of it if it is released, else only what the rollout does not hold back.
func (c *Controller) write(ctx context.Context, bundle *fleet.Bundle, t *target, released bool) error {
	options, err := optionsFor(bundle, t.matched, t.cluster)
	if err != nil {
		return err
	}
	d := t.want.DeepCopy()
	secret := withOptions(d, options)
	// The values come before what refers to them.
	if secret != nil && (released || t.valuesLost) {
		if err := c.writeValues(ctx, secret); err != nil {
			return ended(err)
		}
	}
	if t.deployment == nil {
		if err = c.letRead(ctx, t.cluster); err == nil {
			err = c.Client.Create(ctx, d, kube.FieldOwner)
		}
	} else {
		d.UID = t.deployment.UID
		err = c.patch(ctx, d, released)
	}
	if err != nil {
		return ended(fmt.Errorf("writing BundleDeployment %s/%s: %w", d.Namespace, d.Name, err))
	}
	if released {
		if t.answered, err = digestOf(d.Spec); err != nil {
			return err
		}
	}
	c.settling.store(d, c.Clock.Now())
	if secret == nil && t.deployment != nil && t.deployment.Spec.ValuesHash != "" && released {
		return ended(c.deleteValues(ctx, d))
	}
	return nil
}

// patch replaces the parts of a deployment as wholes, whatever its agent writes to the status meanwhile.
func (c *Controller) patch(ctx context.Context, d *fleet.BundleDeployment, released bool) error {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	operations := []operation{
		{"test", "/metadata/uid", d.UID},
		{"add", "/metadata/labels", d.Labels},
	}
	if released {
		operations = append(operations, operation{"add", "/spec", d.Spec})
	} else {
		operations = append(operations,
			operation{"add", "/spec/paused", d.Spec.Paused},
			operation{"add", "/spec/dependsOn", d.Spec.DependsOn},
			operation{"add", "/spec/stagedOptions", d.Spec.StagedOptions},
			operation{"add", "/spec/stagedDeploymentID", d.Spec.StagedDeploymentID},
		)
	}
	text, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	return c.Client.Patch(ctx, d, client.RawPatch(types.JSONPatchType, text), kube.FieldOwner)
}

// writeValues writes the Secret with the values of a deployment.
func (c *Controller) writeValues(ctx context.Context, secret *corev1.Secret) error {
	err := c.Client.Create(ctx, secret, kube.FieldOwner)
	if apierrors.IsAlreadyExists(err) {
		secret.ResourceVersion = ""
		err = c.Client.Update(ctx, secret, kube.FieldOwner)
	}
	if err != nil {
		return fmt.Errorf("writing Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	c.values.wrote(secret)
	return nil
}

// letRead makes sure that a member may read Contents before it is told of one; most are told of theirs long after they joined.
func (c *Controller) letRead(ctx context.Context, cluster *fleet.Cluster) error {
	member := membership.OfCluster(cluster)
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(member.ContentBinding("")), kube.Metadata(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding")))
	if !apierrors.IsNotFound(err) {
		return err
	}
	namespace := namespaceMetadata()
	if err := c.Client.Get(ctx, client.ObjectKey{Name: member.Namespace}, namespace); err != nil {
		return err
	}
	return kube.Ensure(ctx, c.Client, member.ContentBinding(namespace.UID))
}

func (c *Controller) deleteValues(ctx context.Context, d *fleet.BundleDeployment) error {
	return kube.Delete(ctx, c.Client, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}})
}

// ended is nil for an error that only says that the member is leaving: what was meant for it has become pointless. That the kind is not
// served is another error: the member stays.
func ended(err error) error {
	switch {
	case kube.NotServed(err):
		return fmt.Errorf("%w: install the fleet-crd chart", err)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), apierrors.IsNotFound(err):
		return nil
	}
	return err
}

// takeAway deletes a deployment, its values first, so that a crash in between leaves what leads to them. The agent uninstalls when it
// sees the deployment gone. A finalizer of upstream's hub, which nobody would remove, goes with it.
func (c *Controller) takeAway(ctx context.Context, d *fleet.BundleDeployment) error {
	if d.Spec.ValuesHash != "" {
		if err := c.deleteValues(ctx, d); err != nil {
			return err
		}
	}
	if controllerutil.ContainsFinalizer(d, fleet.FinalizerBundleDeployment) {
		after := d.DeepCopy()
		controllerutil.RemoveFinalizer(after, fleet.FinalizerBundleDeployment)
		if err := c.Client.Patch(ctx, after, client.MergeFromWithOptions(d, client.MergeFromWithOptimisticLock{}), kube.FieldOwner); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing the finalizer of BundleDeployment %s/%s: %w", d.Namespace, d.Name, err)
		}
	}
	object := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}
	if err := c.Client.Delete(ctx, object, client.Preconditions{UID: &d.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting BundleDeployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	return nil
}
