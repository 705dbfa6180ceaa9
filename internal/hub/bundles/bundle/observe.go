package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/selection"
	"github.com/muster-fleet/muster/internal/hub/runtime/removal"
	"github.com/muster-fleet/muster/internal/kube"
)

// errStale reports that the cache lags behind the server; the next event requeues the Bundle.
var errStale = errors.New("the cache is behind")

func (c *Controller) observe(ctx context.Context, bundle *fleet.Bundle) (observed, error) {
	o := observed{bundle: bundle, brakeSetting: c.brakeSetting(ctx, bundle.Namespace)}
	forged, err := c.forged(ctx, bundle)
	if err != nil {
		return o, err
	}
	state, err := c.load(ctx, bundle, forged == nil && bundle.Labels[fleet.LabelAgent] != "")
	if err != nil {
		return o, err
	}
	if err := errors.Join(c.loadValues(ctx, bundle, state), c.loadSources(ctx, bundle, state)); err != nil {
		return o, err
	}
	bundle = state.withValues(bundle)
	o.bundle, o.content, o.confirmed, o.ours = bundle, state.packed, state.confirmed, state.first == bundle.UID
	violation, err := c.checkPolicies(ctx, bundle, state)
	if err != nil {
		return o, err
	}
	m, err := newMatcher(bundle)
	if o.problem = errors.Join(err, state.packed.problem, state.valuesProblem, forged, violation); o.problem != nil {
		return o, c.observeUnmatched(ctx, &o)
	}
	deployments, err := c.deployments(ctx, client.ObjectKeyFromObject(bundle))
	if err != nil {
		return o, err
	}
	to, err := c.reach(ctx, bundle)
	if err != nil {
		return o, err
	}
	clusters, groups, err := c.candidates(ctx, bundle, to.workspaces, m.UsesGroups())
	if err != nil {
		return o, err
	}
	if o.problem = m.UnknownGroups(groups); o.problem != nil {
		return o, c.observeUnmatched(ctx, &o)
	}
	o.unmatched, o.absentGroups = m.Unmatched(), m.AbsentGroups(groups)
	parsed, seen, present := selection.Groups(groups), map[types.UID]bool{}, map[string]*fleet.Cluster{}
	for _, cluster := range clusters {
		present[membership.DeliveryNamespace(cluster)] = cluster
		memberOf := selection.GroupsOf(cluster, parsed)
		o.unmatched.Remove(cluster, memberOf)
		if withheld(bundle, cluster, deployments) {
			continue
		}
		matched := m.Match(cluster, memberOf)
		if matched == nil {
			continue
		}
		o.findOutranked(m, matched, cluster, memberOf)
		seen[cluster.UID] = true
		t := target{cluster: cluster, matched: matched, partition: m.Partition(cluster, memberOf)}
		if err := c.addTarget(ctx, &o, state, t, deployments); err != nil {
			return o, err
		}
	}
	maps.DeleteFunc(state.outcomes, func(uid types.UID, _ outcome) bool { return !seen[uid] })
	o.findLeftover(to, present, deployments)
	return o, c.stillLeftover(ctx, &o, m, present)
}

// addTarget adds a target, and removes its deployment from the map of the others.
func (c *Controller) addTarget(ctx context.Context, o *observed, known *computed, t target,
	deployments map[string]*fleet.BundleDeployment) error {
	namespace := membership.DeliveryNamespace(t.cluster)
	known.settle(&t, o.bundle, deployments[namespace])
	delete(deployments, namespace)
	if err := c.complete(ctx, &t); err != nil {
		return err
	}
	o.targets = append(o.targets, t)
	return nil
}

// stillLeftover keeps the leftover deployments of Clusters without a match in the API server, too.
// The cache of Clusters, or of ClusterGroups, may be older than the cache of Bundles.
func (c *Controller) stillLeftover(ctx context.Context, o *observed, m selection.Matcher, present map[string]*fleet.Cluster) error {
	groups := map[string][]fleet.ClusterGroup{}
	var confirmed []leftover
	for _, one := range o.leftover {
		if one.cause != removal.NoTarget {
			confirmed = append(confirmed, one)
			continue
		}
		cluster := present[one.deployment.Namespace]
		listed, cached := groups[cluster.Namespace]
		if !cached && m.UsesGroups() {
			var list fleet.ClusterGroupList
			if err := c.Live.List(ctx, &list, client.InNamespace(cluster.Namespace)); err != nil {
				return fmt.Errorf("listing the ClusterGroups of %s: %w", cluster.Namespace, err)
			}
			if listed = list.Items; m.UnknownGroups(listed) != nil {
				return errStale
			}
			groups[cluster.Namespace] = listed
		}
		var live fleet.Cluster
		err := c.Live.Get(ctx, client.ObjectKeyFromObject(cluster), &live)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading Cluster %s/%s: %w", cluster.Namespace, cluster.Name, err)
		}
		if err == nil && m.Match(&live, selection.GroupsOf(&live, selection.Groups(listed))) == nil {
			confirmed = append(confirmed, one)
		}
	}
	o.leftover = confirmed
	return nil
}

// forged refuses a Bundle with an agent's label from another author than the hub. It would be
// deployed with the agent's own rights.
func (c *Controller) forged(ctx context.Context, bundle *fleet.Bundle) (problem, err error) {
	if bundle.Labels[fleet.LabelAgent] == "" {
		return nil, nil
	}
	if is, err := c.IsAgents(ctx, bundle); err != nil || is {
		return nil, err
	}
	return fmt.Errorf("label %s is for Bundles of agents from the hub only, and this Bundle is another: take it off, or name the "+
		"Bundle otherwise", fleet.LabelAgent), nil
}

// complete adds to a target the obstacles to its deployment: another Bundle with the same name, a
// pending write, lost values.
func (c *Controller) complete(ctx context.Context, t *target) error {
	key := client.ObjectKeyFromObject(t.desired)
	if t.deployment == nil {
		var other fleet.BundleDeployment
		if err := c.Client.Get(ctx, key, &other); err == nil {
			t.problem = taken(&other)
		} else if !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading BundleDeployment %s: %w", key, err)
		}
	}
	var cached []client.Object
	if t.deployment != nil {
		cached = []client.Object{t.deployment}
	}
	var written client.Object
	if written, t.pending = c.deploymentWrites.Pending(key, cached...); written != nil {
		t.deployment = written.(*fleet.BundleDeployment)
	}
	if len(t.copies) > 0 && refusesCopies(t.deployment) && t.pending == 0 && t.problem == nil {
		_, t.valuesLost = c.editedSecrets.Take(key)
		return nil
	}
	if t.hasValues && t.deployment != nil && t.pending == 0 && t.problem == nil {
		err := c.Client.Get(ctx, key, kube.CoreMetadata("Secret"))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading Secret %s: %w", key, err)
		}
		t.valuesLost = apierrors.IsNotFound(err)
		if edit, edited := c.editedSecrets.Get(key); err == nil && edited {
			if t.valuesLost, err = c.valuesDiffer(ctx, t.deployment); err == nil && !t.valuesLost {
				kube.ForgetIf(&c.editedSecrets, key, edit)
			}
			return err
		}
	}
	return nil
}

// observeUnmatched uses the existing deployments as targets, because the targets of an invalid
// Bundle are unknown.
func (c *Controller) observeUnmatched(ctx context.Context, o *observed) error {
	deployments, err := c.deployments(ctx, client.ObjectKeyFromObject(o.bundle))
	if err != nil {
		return err
	}
	for _, d := range deployments {
		cluster := &fleet.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: d.Labels[fleet.LabelClusterNamespace], Name: d.Labels[fleet.LabelCluster]},
		}
		o.targets = append(o.targets, target{cluster: cluster, desired: d, deployment: d})
	}
	slices.SortFunc(o.targets, func(a, b target) int { return compareClusters(a.cluster, b.cluster) })
	return nil
}

// load returns the state computed for the Bundle's current version. The cache has no resources,
// so they are read and packed once per change. An agent's Bundle has none: it names a Content.
func (c *Controller) load(ctx context.Context, bundle *fleet.Bundle, agents bool) (*computed, error) {
	key := client.ObjectKeyFromObject(bundle)
	state := c.computedFor(key)
	if state.isOf(bundle) && (state.packed.name == "" || c.contents.has(key)) {
		return state, nil
	}
	if agents {
		return state, c.loadChart(ctx, bundle, state)
	}
	var whole fleet.Bundle
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(bundle), &whole); err != nil {
		return nil, fmt.Errorf("reading the Bundle with its resources: %w", err)
	}
	if whole.UID != bundle.UID || whole.Generation != bundle.Generation {
		return nil, errStale
	}
	if why := c.journal.setAside(bundle); why != "" {
		ctrl.LoggerFrom(ctx).Info("Bundle set aside", "reason", why)
		state.begin(bundle, packed{chart: hasChart(whole.Spec.Resources), problem: errors.New(why)})
		return state, nil
	}
	content, problem := pack(whole.Spec.Resources, c.noting(ctx, bundle))
	if content == nil {
		state.begin(bundle, packed{chart: hasChart(whole.Spec.Resources), problem: problem})
		return state, nil
	}
	state.begin(bundle, packed{name: content.Name, sum: content.SHA256Sum, chart: hasChart(whole.Spec.Resources), problem: problem})
	return state, c.contents.ensure(ctx, key, content)
}

// noting notes in the journal the begin of a Bundle's check. A hub with an unwritable journal
// continues without it.
func (c *Controller) noting(ctx context.Context, bundle *fleet.Bundle) begin {
	note := func(err error) {
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Failed to note the checked Bundle")
		}
	}
	return func() (end func()) {
		ended, err := c.journal.begin(bundle)
		note(err)
		return func() { note(ended()) }
	}
}

// loadChart loads the Bundle of an agent. An older version written by the hub has only its
// Content, as long as a reference exists.
func (c *Controller) loadChart(ctx context.Context, bundle *fleet.Bundle, state *computed) error {
	key, name := client.ObjectKeyFromObject(bundle), bundle.Spec.ContentsID
	content, err := c.AgentChart(name)
	if err != nil {
		return err
	}
	if content == nil {
		content = &fleet.Content{}
		if err := c.Live.Get(ctx, client.ObjectKey{Name: name}, content); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading Content %s: %w", name, err)
		}
	}
	if content.Name == "" {
		gone := fmt.Errorf("the Content %s, a former version of the agent's chart, was deleted: the agent gets the present one when it is its "+
			"turn", name)
		state.begin(bundle, packed{chart: true, problem: gone})
		return nil
	}
	state.begin(bundle, packed{name: name, sum: content.SHA256Sum, chart: true})
	if c.contents.share(key, name) {
		return nil
	}
	return c.contents.ensure(ctx, key, content.DeepCopy())
}

// deployments returns the deployments of a Bundle by their namespace.
func (c *Controller) deployments(ctx context.Context, bundle types.NamespacedName) (map[string]*fleet.BundleDeployment, error) {
	var list fleet.BundleDeploymentList
	if err := ListDeployments(ctx, c.Client, bundle, &list); err != nil {
		return nil, fmt.Errorf("listing the BundleDeployments: %w", err)
	}
	found := make(map[string]*fleet.BundleDeployment, len(list.Items))
	for i := range list.Items {
		found[list.Items[i].Namespace] = &list.Items[i]
	}
	return found, nil
}

// candidates returns the possible Clusters of a Bundle: its owner for an agent's Bundle, else the
// Clusters of the workspaces, sorted. On request it returns their ClusterGroups.
func (c *Controller) candidates(ctx context.Context, bundle *fleet.Bundle, workspaces []string,
	withGroups bool) ([]*fleet.Cluster, []fleet.ClusterGroup, error) {
	var clusters []*fleet.Cluster
	var groups []fleet.ClusterGroup
	if owner := metav1.GetControllerOf(bundle); owner != nil && clusterOf(bundle) != anyCluster {
		var cluster fleet.Cluster
		err := c.Client.Get(ctx, types.NamespacedName{Namespace: bundle.Namespace, Name: owner.Name}, &cluster)
		if err != nil || cluster.UID != owner.UID {
			return nil, nil, client.IgnoreNotFound(err)
		}
		return []*fleet.Cluster{&cluster}, nil, nil
	}
	for _, workspace := range workspaces {
		var list fleet.ClusterList
		if err := c.Client.List(ctx, &list, client.InNamespace(workspace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, nil, fmt.Errorf("listing the Clusters of %s: %w", workspace, err)
		}
		for i := range list.Items {
			clusters = append(clusters, &list.Items[i])
		}
		if !withGroups {
			continue
		}
		var groupList fleet.ClusterGroupList
		if err := c.Client.List(ctx, &groupList, client.InNamespace(workspace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, nil, fmt.Errorf("listing the ClusterGroups of %s: %w", workspace, err)
		}
		groups = append(groups, groupList.Items...)
	}
	slices.SortFunc(clusters, compareClusters)
	return clusters, groups, nil
}

func compareClusters(a, b *fleet.Cluster) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
