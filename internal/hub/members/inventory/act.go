package inventory

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	inventory "github.com/muster-fleet/muster/api/inventory/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// observe returns the inputs of a membership object's profile, for each namespace of the inventory.
// Without an inventory it returns them once, without a namespace.
func (c *Controller) observe(ctx context.Context, key types.NamespacedName) ([]observed, error) {
	o := observed{key: key}
	read := c.observeCluster
	if key.Namespace == "" {
		read = c.observeMemberCluster
	}
	if err := read(ctx, &o); err != nil {
		return nil, err
	}
	name := naming.ClusterProfile(key.Namespace, key.Name)
	var profiles inventory.ClusterProfileList
	if err := c.Client.List(ctx, &profiles, client.MatchingFields{byName: name}); err != nil {
		return nil, fmt.Errorf("reading the ClusterProfiles %s: %w", name, err)
	}
	return c.perNamespace(o, profiles.Items), nil
}

func (c *Controller) perNamespace(o observed, profiles []inventory.ClusterProfile) []observed {
	namespaces := c.Config.Current().InventoryNamespaces()
	current := map[string]*inventory.ClusterProfile{}
	for i := range profiles {
		if profile := &profiles[i]; slices.Contains(namespaces, profile.Namespace) {
			current[profile.Namespace] = profile
		} else if Ours(profile) {
			o.strays = append(o.strays, profile)
		}
	}
	if len(namespaces) == 0 {
		return []observed{o}
	}
	all := make([]observed, len(namespaces))
	for i, namespace := range namespaces {
		all[i] = o
		all[i].namespace, all[i].current = namespace, current[namespace]
		all[i].statusWritten = c.memory(all[i]).statusWritten
	}
	return all
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
	report, err := c.reportOf(ctx, membernamespace.OfCluster(&cluster))
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
	report, err := c.reportOf(ctx, membernamespace.OfMemberCluster(&mc))
	if err != nil {
		return err
	}
	o.record, o.report = ofMemberCluster(&mc), report
	return nil
}

// reportOf reads the report of a member from its namespace, provided the hub created the namespace.
func (c *Controller) reportOf(ctx context.Context, member membernamespace.Member) (*clusterv1beta1.InternalMemberCluster, error) {
	state, _, err := member.ObserveNamespace(ctx, c.Client)
	if err != nil || state != membernamespace.NamespaceOurs {
		return nil, err
	}
	return member.ReadReport(ctx, c.Client)
}

// act carries out the decision, and returns the delay until the next reconcile; zero if only an
// event can change the decision.
func (c *Controller) act(ctx context.Context, o observed, next decision) (time.Duration, error) {
	if err := kube.Delete(ctx, c.Client, o.strays...); err != nil {
		return 0, err
	}
	switch next.action {
	case create:
		return c.create(ctx, next.profile)
	case update:
		return 0, c.update(ctx, o.current, next.profile)
	case updateStatus:
		return next.wake, c.updateStatus(ctx, o, next.profile)
	case remove:
		return 0, kube.Delete(ctx, c.Client, o.current)
	case idle, refuse:
	}
	return next.wake, nil
}

// create creates a profile, and its namespace if missing. An event of either enqueues the
// membership object again.
func (c *Controller) create(ctx context.Context, profile *inventory.ClusterProfile) (time.Duration, error) {
	err := c.Client.Create(ctx, profile, kube.FieldOwner)
	switch {
	case apierrors.IsAlreadyExists(err): // the cache shows it in a moment
		return 0, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return unwatchedRetry, nil
	case apierrors.IsNotFound(err) && !kube.NotServed(err):
		return 0, c.namespaces.ensure(ctx, profile.Namespace)
	case err != nil:
		return 0, fmt.Errorf("creating ClusterProfile %s/%s: %w", profile.Namespace, profile.Name, err)
	}
	c.expected.Expect(client.ObjectKeyFromObject(profile), profile)
	return 0, nil
}

func (c *Controller) updateStatus(ctx context.Context, o observed, profile *inventory.ClusterProfile) error {
	if err := kube.PatchStatus(ctx, c.Client, o.current, profile); err != nil {
		return client.IgnoreNotFound(err) // deleted; the event enqueues the membership object
	}
	if profile.ResourceVersion != o.current.ResourceVersion {
		c.expected.Expect(client.ObjectKeyFromObject(profile), profile)
	}
	c.memory(o).statusWritten = c.Clock.Now()
	return nil
}

// update patches the hub's part of a profile's metadata and spec.
func (c *Controller) update(ctx context.Context, current, profile *inventory.ClusterProfile) error {
	profile.Status = current.Status
	if err := kube.Patch(ctx, c.Client, current, profile); apierrors.IsNotFound(err) {
		return nil // deleted; the event enqueues the membership object
	} else if err != nil {
		return fmt.Errorf("updating ClusterProfile %s/%s: %w", profile.Namespace, profile.Name, err)
	}
	c.expected.Expect(client.ObjectKeyFromObject(profile), profile)
	return nil
}

// otherwise returns the alternative remedy for a profile of another manager.
func (o observed) otherwise(settings settings.Config) string {
	if o.namespace != settings.InventoryNamespace {
		return "set inventory.alsoInFleetSystem of the hub to false"
	}
	return "set inventory.namespace of the hub to a namespace without it"
}

// memory holds the hub's knowledge of a membership object in a namespace while the hub runs. Only
// the reconcile of this object uses it.
type memory struct {
	// statusWritten is the time of the last write of the profile's status.
	statusWritten time.Time
	// warnings holds the last event on the membership object by reason.
	warnings map[string]string
}

// place names a membership object, and the namespace of one of its profiles.
type place struct {
	record    types.NamespacedName
	namespace string
}

func (o observed) place() place { return place{o.key, o.namespace} }

func (c *Controller) memory(o observed) *memory {
	return c.memories.Of(o.place(), &memory{warnings: map[string]string{}})
}

// warn emits one event on the membership object per problem, if its profile cannot show the
// problem.
func (c *Controller) warn(o observed, next decision) {
	if o.record == nil {
		c.memories.Forget(o.place())
		return
	}
	problems := map[string]string{reasons.ClusterProfileTaken: "", reasons.PropertiesSkipped: ""}
	if next.action == refuse {
		problems[reasons.ClusterProfileTaken] = fmt.Sprintf("ClusterProfile %s/%s belongs to cluster manager %q: delete it, or %s",
			o.current.Namespace, o.current.Name, o.current.Spec.ClusterManager.Name, o.otherwise(c.Config.Current()))
	}
	if len(next.skipped) > 0 {
		problems[reasons.PropertiesSkipped] = fmt.Sprintf("the ClusterProfile is without these properties, whose name or value is too long for "+
			"it (%d and %d characters): %s",
			inventory.MaxPropertyName, inventory.MaxPropertyValue, strings.Join(next.skipped, ", "))
	}
	m := c.memory(o)
	for reason, problem := range problems {
		if problem != "" && problem != m.warnings[reason] {
			c.Recorder.Eventf(o.record.object, nil, corev1.EventTypeWarning, reason, "Publish", "%s", problem)
		}
		m.warnings[reason] = problem
	}
}
