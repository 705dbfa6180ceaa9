package bundle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
)

// lost holds BundleDeployments deleted by other clients, until their Bundle is reconciled.
type lost struct {
	mu       sync.Mutex
	byBundle map[types.NamespacedName][]*fleet.BundleDeployment
	// own holds the UIDs of deployments under deletion by the hub itself.
	own map[types.UID]bool
}

// deleting notes a deletion of a deployment by the hub.
func (l *lost) deleting(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.own == nil {
		l.own = map[types.UID]bool{}
	}
	l.own[uid] = true
}

// stays notes a failed deletion of a deployment.
func (l *lost) stays(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.own, uid)
}

// deleted notes a deleted deployment.
func (l *lost) deleted(d *fleet.BundleDeployment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.own[d.UID] || bundleOf(d).Namespace == "" {
		delete(l.own, d.UID)
		return
	}
	if l.byBundle == nil {
		l.byBundle = map[types.NamespacedName][]*fleet.BundleDeployment{}
	}
	l.byBundle[bundleOf(d)] = append(l.byBundle[bundleOf(d)], d)
}

// take returns the lost deployments of a Bundle, and forgets them.
func (l *lost) take(bundle types.NamespacedName) []*fleet.BundleDeployment {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.byBundle[bundle]
	delete(l.byBundle, bundle)
	return all
}

// replaceLost creates deleted deployments again if the hub cannot write them in the desired form
// now. It marks them as held back: their agents would take the absence of the objects for a
// removal.
func (c *Controller) replaceLost(ctx context.Context, o observed) error {
	key := client.ObjectKeyFromObject(o.bundle)
	var failures []error
	for _, d := range c.lost.take(key) {
		if err := c.replace(ctx, o, d); err != nil {
			c.lost.deleted(d)
			failures = append(failures, fmt.Errorf("creating BundleDeployment %s/%s again, which was deleted: %w", d.Namespace, d.Name, err))
		}
	}
	return errors.Join(failures...)
}

func (c *Controller) replace(ctx context.Context, o observed, d *fleet.BundleDeployment) error {
	namespace := kube.CoreMetadata("Namespace")
	if err := c.Client.Get(ctx, types.NamespacedName{Name: d.Namespace}, namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	record, isMember := membership.RecordOf(namespace)
	if !isMember {
		return nil
	}
	var cluster fleet.Cluster
	if err := c.Client.Get(ctx, record, &cluster); err != nil || !o.keeps(&cluster, d) {
		return client.IgnoreNotFound(err)
	}
	held := heldBack(d)
	if err := c.Client.Create(ctx, held, kube.FieldOwner); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return unlessLeaving(err)
	}
	c.deploymentWrites.Expect(client.ObjectKeyFromObject(held), held)
	ctrl.LoggerFrom(ctx).Info("Deleted BundleDeployment created again", "memberNamespace", d.Namespace,
		"name", d.Name, "uid", d.UID)
	return nil
}

// keeps reports whether a Cluster keeps the workload of a deleted deployment, although the Bundle
// cannot be delivered to the Cluster now.
func (o observed) keeps(cluster *fleet.Cluster, d *fleet.BundleDeployment) bool {
	if !deliverable(cluster) || membership.DeliveryNamespace(cluster) != d.Namespace {
		return false
	}
	return !o.valid() || membership.AwaitsApproval(cluster) || membership.Quarantined(cluster) ||
		slices.ContainsFunc(o.targets, func(t target) bool { return t.cluster.UID == cluster.UID && t.problem != nil && t.deployment == nil })
}

// heldBack returns a deployment with the instruction to deploy nothing and remove nothing.
func heldBack(d *fleet.BundleDeployment) *fleet.BundleDeployment {
	held := &fleet.BundleDeployment{}
	held.Namespace, held.Name, held.Labels = d.Namespace, d.Name, d.Labels
	held.Spec.Options.Helm = &fleet.HelmOptions{}
	held.Spec.StagedDeploymentID, held.Spec.ValuesHash = d.Spec.StagedDeploymentID, d.Spec.ValuesHash
	held.Spec.Paused, held.Spec.OffSchedule = d.Spec.Paused, d.Spec.OffSchedule
	return held
}
