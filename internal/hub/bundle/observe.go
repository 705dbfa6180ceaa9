package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// errBehind is returned where the cache has not seen yet what the server has; its event wakes the Bundle again.
var errBehind = errors.New("the cache is behind")

func (c *Controller) observe(ctx context.Context, bundle *fleet.Bundle) (observed, error) {
	o := observed{bundle: bundle}
	known, err := c.recall(ctx, bundle)
	if err != nil {
		return o, err
	}
	if err := c.recallValues(ctx, bundle, known); err != nil {
		return o, err
	}
	bundle = known.withValues(bundle)
	o.bundle, o.content = bundle, known.packed
	m, err := newMatcher(bundle)
	if o.problem = errors.Join(err, known.packed.problem, known.valuesProblem); o.problem != nil {
		return o, c.observeUnmatched(ctx, &o)
	}
	deployments, err := c.deployments(ctx, client.ObjectKeyFromObject(bundle))
	if err != nil {
		return o, err
	}
	clusters, groups, err := c.candidates(ctx, bundle, m.usesGroups())
	if err != nil {
		return o, err
	}
	seen := map[types.UID]bool{}
	for i := range clusters {
		cluster := &clusters[i]
		if !deliverable(cluster) {
			// What is on a Cluster that leaves is not taken away one by one: whether it stays there is decided by how it leaves.
			delete(deployments, cluster.Status.Namespace)
			continue
		}
		in := groupsOf(cluster, groups)
		matched := m.match(cluster, in)
		if matched == nil {
			continue
		}
		seen[cluster.UID] = true
		t := target{cluster: cluster, matched: matched, partition: m.partition(cluster, in)}
		outcome := known.outcomeFor(bundle, cluster, matched)
		t.hasValues, t.digest, t.problem = outcome.hasValues, outcome.digest, outcome.problem
		t.want = desiredDeployment(bundle, cluster, outcome.id)
		t.deployment = deployments[cluster.Status.Namespace]
		delete(deployments, cluster.Status.Namespace)
		if err := c.complete(ctx, &t); err != nil {
			return o, err
		}
		o.targets = append(o.targets, t)
	}
	for uid := range known.outcomes {
		if !seen[uid] {
			delete(known.outcomes, uid)
		}
	}
	for _, d := range deployments {
		o.leftover = append(o.leftover, d)
	}
	return o, nil
}

// complete looks for what stands in the way of a deployment, is under way, or is missing of it.
func (c *Controller) complete(ctx context.Context, t *target) error {
	key := keyOf(t.want)
	if t.deployment == nil {
		var other fleet.BundleDeployment
		if err := c.Client.Get(ctx, key, &other); err == nil {
			t.problem = taken(&other)
		} else if !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading BundleDeployment %s: %w", key, err)
		}
	}
	if w, ok := c.settling.find(key, t.deployment, c.Clock.Now()); ok {
		t.settling, t.written = true, w.deploymentID
	}
	if t.hasValues && t.deployment != nil && !t.settling && t.problem == nil {
		err := c.Client.Get(ctx, key, kube.Metadata(corev1.SchemeGroupVersion.WithKind("Secret")))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading Secret %s: %w", key, err)
		}
		t.valuesLost = apierrors.IsNotFound(err)
		if err == nil && c.values.suspected(key) {
			t.valuesLost, err = c.valuesDiffer(ctx, t.deployment)
			return err
		}
	}
	return nil
}

// observeUnmatched shows the deployments as they are where it is not known which ones there should be.
func (c *Controller) observeUnmatched(ctx context.Context, o *observed) error {
	deployments, err := c.deployments(ctx, client.ObjectKeyFromObject(o.bundle))
	if err != nil {
		return err
	}
	for _, d := range deployments {
		cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: d.Labels[fleet.LabelClusterNamespace], Name: d.Labels[fleet.LabelCluster]}}
		o.targets = append(o.targets, target{cluster: cluster, want: d, deployment: d})
	}
	slices.SortFunc(o.targets, func(a, b target) int { return compareClusters(a.cluster, b.cluster) })
	return nil
}

// recall returns what is remembered of the Bundle as it is now. The cache has no resources; they are read and packed once per change.
func (c *Controller) recall(ctx context.Context, bundle *fleet.Bundle) (*memory, error) {
	key := client.ObjectKeyFromObject(bundle)
	known := c.memory(key)
	if known.isOf(bundle) && (known.packed.name == "" || c.contents.has(key)) {
		return known, nil
	}
	var whole fleet.Bundle
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(bundle), &whole); err != nil {
		return nil, fmt.Errorf("reading the Bundle with its resources: %w", err)
	}
	if whole.UID != bundle.UID || whole.Generation != bundle.Generation {
		return nil, errBehind
	}
	known.uid, known.generation, known.outcomes = bundle.UID, bundle.Generation, map[types.UID]outcome{}
	known.values, known.valuesProblem = nil, nil
	var content *fleet.Content
	if content, known.packed.problem = pack(whole.Spec.Resources); content == nil {
		known.packed.name, known.packed.sum = "", ""
		return known, nil
	}
	known.packed.name, known.packed.sum = content.Name, content.SHA256Sum
	return known, c.contents.keep(ctx, key, content)
}

// deployments returns the deployments of a Bundle by their namespace.
func (c *Controller) deployments(ctx context.Context, bundle types.NamespacedName) (map[string]*fleet.BundleDeployment, error) {
	var list fleet.BundleDeploymentList
	if err := c.Client.List(ctx, &list, client.MatchingFields{indexBundle: bundle.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the BundleDeployments: %w", err)
	}
	found := make(map[string]*fleet.BundleDeployment, len(list.Items))
	for i := range list.Items {
		found[list.Items[i].Namespace] = &list.Items[i]
	}
	return found, nil
}

// candidates returns the Clusters that the Bundle may target, sorted, and if asked for their ClusterGroups.
func (c *Controller) candidates(ctx context.Context, bundle *fleet.Bundle, withGroups bool) ([]fleet.Cluster, []fleet.ClusterGroup, error) {
	workspaces, err := c.workspaces(ctx, bundle)
	if err != nil {
		return nil, nil, err
	}
	var clusters []fleet.Cluster
	var groups []fleet.ClusterGroup
	for _, workspace := range workspaces {
		var list fleet.ClusterList
		if err := c.Client.List(ctx, &list, client.InNamespace(workspace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, nil, fmt.Errorf("listing the Clusters of %s: %w", workspace, err)
		}
		clusters = append(clusters, list.Items...)
		if !withGroups {
			continue
		}
		var groupList fleet.ClusterGroupList
		if err := c.Client.List(ctx, &groupList, client.InNamespace(workspace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, nil, fmt.Errorf("listing the ClusterGroups of %s: %w", workspace, err)
		}
		groups = append(groups, groupList.Items...)
	}
	slices.SortFunc(clusters, func(a, b fleet.Cluster) int { return compareClusters(&a, &b) })
	return clusters, groups, nil
}

func compareClusters(a, b *fleet.Cluster) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// deliverable says whether a Cluster has a member namespace, is not leaving, and is the hub's to manage.
func deliverable(cluster *fleet.Cluster) bool {
	return cluster.Status.Namespace != "" && cluster.DeletionTimestamp == nil && cluster.Labels[fleet.LabelClusterManagement] == ""
}

// workspaces returns the namespaces whose Clusters a Bundle may target: its own, and those that a BundleNamespaceMapping gives it.
func (c *Controller) workspaces(ctx context.Context, bundle *fleet.Bundle) ([]string, error) {
	found := []string{bundle.Namespace}
	var mappings fleet.BundleNamespaceMappingList
	if err := c.Client.List(ctx, &mappings, client.InNamespace(bundle.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the BundleNamespaceMappings: %w", err)
	}
	for _, mapping := range mappings.Items {
		bundles, bundleErr := metav1.LabelSelectorAsSelector(mapping.BundleSelector)
		namespaces, namespaceErr := metav1.LabelSelectorAsSelector(mapping.NamespaceSelector)
		if err := errors.Join(bundleErr, namespaceErr); err != nil {
			return nil, fmt.Errorf("BundleNamespaceMapping %s: %w", mapping.Name, err)
		}
		if !bundles.Matches(labels.Set(bundle.Labels)) {
			continue
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
		if err := c.foreign.List(ctx, list, client.MatchingLabelsSelector{Selector: namespaces}); err != nil {
			return nil, fmt.Errorf("listing the namespaces of BundleNamespaceMapping %s: %w", mapping.Name, err)
		}
		for _, namespace := range list.Items {
			found = append(found, namespace.Name)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}
