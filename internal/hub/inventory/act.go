package inventory

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	inventory "github.com/muster-fleet/muster/api/inventory/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

func (c *Controller) observe(ctx context.Context, key types.NamespacedName) (observed, error) {
	o := observed{key: key, namespace: c.Config.Current().InventoryNamespace}
	read := c.observeCluster
	if key.Namespace == "" {
		read = c.observeMemberCluster
	}
	if err := read(ctx, &o); err != nil {
		return observed{}, err
	}
	name := naming.ClusterProfile(key.Namespace, key.Name)
	var profiles inventory.ClusterProfileList
	if err := c.Client.List(ctx, &profiles, client.MatchingFields{byName: name}); err != nil {
		return observed{}, fmt.Errorf("reading the ClusterProfiles %s: %w", name, err)
	}
	for i := range profiles.Items {
		if profile := &profiles.Items[i]; profile.Namespace == o.namespace {
			o.have = profile
		} else if ours(profile) {
			o.strays = append(o.strays, profile)
		}
	}
	if at, known := c.shown.Load(key); known {
		o.shown = at.(time.Time)
	}
	return o, nil
}

func (c *Controller) observeCluster(ctx context.Context, o *observed) error {
	var cluster fleet.Cluster
	if err := c.Client.Get(ctx, o.key, &cluster); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("reading Cluster %s: %w", o.key, err)
	}
	if cluster.Labels[fleet.LabelClusterManagement] != "" {
		return nil
	}
	report, err := c.reportOf(ctx, membership.OfCluster(&cluster))
	if err != nil {
		return err
	}
	o.record, o.report = ofCluster(&cluster, report), report
	return nil
}

func (c *Controller) observeMemberCluster(ctx context.Context, o *observed) error {
	var mc clusterv1beta1.MemberCluster
	if err := c.Client.Get(ctx, o.key, &mc); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("reading MemberCluster %s: %w", o.key.Name, err)
	}
	report, err := c.reportOf(ctx, membership.OfMemberCluster(&mc))
	if err != nil {
		return err
	}
	o.record, o.report = ofMemberCluster(&mc), report
	return nil
}

// reportOf reads the report of a member, if it stands in a namespace that the hub made for it.
func (c *Controller) reportOf(ctx context.Context, member membership.Member) (*clusterv1beta1.InternalMemberCluster, error) {
	state, _, err := member.ObserveNamespace(ctx, c.Client)
	if err != nil || state != membership.NamespaceOurs {
		return nil, err
	}
	var report clusterv1beta1.InternalMemberCluster
	err = c.Client.Get(ctx, types.NamespacedName{Namespace: member.Namespace, Name: member.Name}, &report)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading InternalMemberCluster %s/%s: %w", member.Namespace, member.Name, err)
	}
	return &report, nil
}

// act does the step and returns when to look again; zero if only an event can change anything.
func (c *Controller) act(ctx context.Context, o observed, next decision) (time.Duration, error) {
	for _, stray := range o.strays {
		if err := c.delete(ctx, stray); err != nil {
			return 0, err
		}
	}
	switch next.step {
	case create:
		return c.create(ctx, next.profile)
	case amend:
		return 0, c.amend(ctx, o.have, next.profile)
	case show:
		return next.wake, c.show(ctx, o, next.profile)
	case remove:
		return 0, c.delete(ctx, o.have)
	case rest, refuse:
	}
	return next.wake, nil
}

// create makes a profile, and its namespace where that is missing; the event of either leads here again.
func (c *Controller) create(ctx context.Context, profile *inventory.ClusterProfile) (time.Duration, error) {
	err := c.Client.Create(ctx, profile, kube.FieldOwner)
	switch {
	case apierrors.IsAlreadyExists(err): // the cache will say so in a moment
		return 0, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return unwatchedRetry, nil
	case apierrors.IsNotFound(err) && !kube.NotServed(err):
		return 0, c.namespaces.ensure(ctx, profile.Namespace)
	case err != nil:
		return 0, fmt.Errorf("creating ClusterProfile %s/%s: %w", profile.Namespace, profile.Name, err)
	}
	c.written.Store(profile)
	return 0, nil
}

// show writes the status.
func (c *Controller) show(ctx context.Context, o observed, profile *inventory.ClusterProfile) error {
	if err := kube.PatchStatus(ctx, c.Client, o.have, profile); err != nil {
		return client.IgnoreNotFound(err) // it was deleted; that event makes it anew
	}
	c.written.Store(profile)
	c.shown.Store(o.key, c.Clock.Now())
	return nil
}

// amend writes what the hub owns of a profile's metadata and spec.
func (c *Controller) amend(ctx context.Context, have, profile *inventory.ClusterProfile) error {
	profile.Status = have.Status
	patch := client.MergeFromWithOptions(have, client.MergeFromWithOptimisticLock{})
	if err := c.Client.Patch(ctx, profile, patch, kube.FieldOwner); apierrors.IsNotFound(err) {
		return nil // it was deleted; that event makes it anew
	} else if err != nil {
		return fmt.Errorf("amending ClusterProfile %s/%s: %w", profile.Namespace, profile.Name, err)
	}
	c.written.Store(profile)
	return nil
}

func (c *Controller) delete(ctx context.Context, profile *inventory.ClusterProfile) error {
	return kube.Delete(ctx, c.Client, profile)
}

// tell says in an event on the record what keeps its profile from being whole, once.
func (c *Controller) tell(o observed, next decision) {
	problems := map[string]string{reasonTaken: "", reasonSkipped: ""}
	if next.step == refuse {
		problems[reasonTaken] = fmt.Sprintf("ClusterProfile %s/%s is that of cluster manager %q: delete it, or set inventory.namespace of the hub to a namespace without it",
			o.have.Namespace, o.have.Name, o.have.Spec.ClusterManager.Name)
	}
	if len(next.skipped) > 0 {
		problems[reasonSkipped] = fmt.Sprintf("the ClusterProfile is without these properties, whose name or value is too long for it (%d and %d characters): %s",
			inventory.MaxPropertyName, inventory.MaxPropertyValue, strings.Join(next.skipped, ", "))
	}
	for reason, problem := range problems {
		topic := topic{o.key, reason}
		if o.record == nil || problem == "" {
			c.told.Delete(topic)
		} else if said, _ := c.told.Swap(topic, problem); said != problem {
			c.Recorder.Eventf(o.record.object, nil, corev1.EventTypeWarning, reason, "ShowInInventory", "%s", problem)
		}
	}
	if o.record == nil {
		c.shown.Delete(o.key)
	}
}

// Reasons of events on a record.
const (
	reasonTaken   = "ClusterProfileTaken"
	reasonSkipped = "PropertiesSkipped"
)

// topic is what an event may be about.
type topic struct {
	record types.NamespacedName
	reason string
}
