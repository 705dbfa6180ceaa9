package cli

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// annotationNotManagedBy marks a Cluster with an unmanaged agent, set by this program.
const annotationNotManagedBy = "muster/not-managed-by"

// stopManaging makes the hub delete the Bundle of Muster's agent, and waits until the Bundle and
// its deployment are gone. Otherwise Rancher Fleet's agent of the same Cluster would deploy the
// Bundle and replace itself.
func (m *migrator) stopManaging(ctx context.Context, hub *checked, old *rancherCredential) error {
	record := &fleet.Cluster{}
	if err := hub.Get(ctx, old.cluster, record); apierrors.IsNotFound(err) && !kube.NotServed(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("reading Cluster %s: %w", old.cluster, err)
	}
	if membership.Namespace(record) != old.member {
		return nil // a Cluster of another hub has the same name
	}
	left, err := hub.agentBundle(ctx, record)
	if err != nil || len(left) == 0 {
		return err
	}
	if err := m.exclude(ctx, hub, record); err != nil {
		return err
	}
	return m.awaitAgentBundle(ctx, hub, record)
}

// exclude has the hub leave an agent alone, unless a user has excluded the agent already.
func (m *migrator) exclude(ctx context.Context, hub *checked, record *fleet.Cluster) error {
	if _, is := record.Labels[fleet.LabelNonManagedAgent]; !is {
		if err := hub.setManaged(ctx, record, "true", madeByUs); err != nil {
			return err
		}
	}
	m.progress.step("the hub takes Bundle %s/%s of Muster's agent away", record.Namespace, naming.AgentBundle(record.Name))
	return m.progress.err
}

// agentBundle returns the Bundle of Muster's agent of a Cluster, and its deployment, if they exist.
func (c *checked) agentBundle(ctx context.Context, record *fleet.Cluster) (left []client.Object, err error) {
	for _, object := range []struct{ kind, namespace string }{
		{"Bundle", record.Namespace}, {"BundleDeployment", membership.Namespace(record)},
	} {
		o := kube.Metadata(fleet.GroupVersion.WithKind(object.kind))
		key := types.NamespacedName{Namespace: object.namespace, Name: naming.AgentBundle(record.Name)}
		switch err := c.Get(ctx, key, o); {
		case apierrors.IsNotFound(err) && !kube.NotServed(err):
		case err != nil:
			return nil, fmt.Errorf("reading %s %s: %w", object.kind, key, err)
		case o.Labels[fleet.LabelAgent] != "":
			left = append(left, o)
		}
	}
	return left, nil
}

// awaitAgentBundle waits until the hub has deleted the Bundle of an agent and its deployment.
func (m *migrator) awaitAgentBundle(ctx context.Context, hub *checked, record *fleet.Cluster) error {
	var left []client.Object
	unseen, err := await(ctx, &m.progress, func(ctx context.Context) (_ bool, err error) {
		left, err = hub.agentBundle(ctx, record)
		return len(left) == 0, err
	})
	switch {
	case wait.Interrupted(err) && unseen != nil:
		return fmt.Errorf("%w"+canBeRepeated, unseen)
	case wait.Interrupted(err) && len(left) > 0:
		return fmt.Errorf("%s of Muster's agent is not gone, and only a running hub deletes it: check the hub by kubectl -n %s get pods "+
			"-l app=fleet-controller"+canBeRepeated, m.title(left[0]), naming.SystemNamespace)
	}
	return err
}

// rancherAgents is the ObjectSet of the agents' Bundles on Rancher Fleet's hub.
const rancherAgents = "fleet-manage-agent"

// pauseTheirs pauses Rancher Fleet's Bundle of its agent, and waits until the pause reaches the
// member namespace. Otherwise Muster's agent would deploy the Bundle before the hub takes it
// over.
func (m *migrator) pauseTheirs(ctx context.Context, hub *checked, record *fleet.Cluster) error {
	bundle := &fleet.Bundle{}
	key := types.NamespacedName{Namespace: record.Namespace, Name: naming.AgentBundle(record.Name)}
	if err := hub.Get(ctx, key, bundle); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Bundle %s: %w", key, err)
	}
	if bundle.UID == "" || kube.ObjectSetOf(bundle).ID != rancherAgents {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"spec":{"paused":true}}`, bundle.UID)
	if err := hub.Patch(ctx, bundle, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return fmt.Errorf("pausing Bundle %s: %w", key, err)
	}
	m.progress.step("Bundle %s of Rancher Fleet's agent is paused", key)
	delivered := &fleet.BundleDeployment{}
	unseen, err := await(ctx, &m.progress, func(ctx context.Context) (bool, error) {
		err := hub.Get(ctx, types.NamespacedName{Namespace: membership.Namespace(record), Name: key.Name}, delivered)
		return apierrors.IsNotFound(err) || err == nil && delivered.Spec.Paused, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("waiting until Bundle %s is paused on the member: %w"+canBeRepeated, key, cmp.Or(unseen, err))
	}
	return nil
}

// managesAgain makes the hub manage a Cluster's agent again, unless a user has excluded the
// agent.
func (c *checked) managesAgain(ctx context.Context, record *fleet.Cluster) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
		return fmt.Errorf("reading Cluster %s: %w", view.NameOf(record), err)
	}
	if record.Annotations[annotationNotManagedBy] != madeByUs {
		return nil
	}
	return c.setManaged(ctx, record, nil, nil)
}

func (c *checked) setManaged(ctx context.Context, record *fleet.Cluster, label, by any) error {
	if err := kube.Annotate(ctx, c, record, map[string]any{annotationNotManagedBy: by}); err != nil {
		return fmt.Errorf("annotating Cluster %s: %w", view.NameOf(record), err)
	}
	if err := kube.PatchMetadata(ctx, c, record, "labels", map[string]any{fleet.LabelNonManagedAgent: label}); err != nil {
		return fmt.Errorf("labelling Cluster %s: %w", view.NameOf(record), err)
	}
	return nil
}

// eachManages makes the hub manage all agents again after this program has excluded them.
func (c *checked) eachManages(ctx context.Context) error {
	var records []*fleet.Cluster
	err := view.Each(ctx, c, &fleet.ClusterList{}, func(o client.Object) {
		if o.GetAnnotations()[annotationNotManagedBy] == madeByUs {
			records = append(records, o.(*fleet.Cluster).DeepCopy())
		}
	})
	if err != nil {
		return fmt.Errorf("listing the Clusters with unmanaged agents: %w", err)
	}
	for _, record := range records {
		if err := c.managesAgain(ctx, record); err != nil {
			return err
		}
	}
	return nil
}

// excludeAgents has the running hub delete the Bundles of all agents, and waits until they are
// gone. Otherwise Rancher Fleet's hub would deliver them to its own agents. A Bundle with only the
// label of these Bundles belongs to a user and stays.
func (m *migrator) excludeAgents(ctx context.Context, hub *checked) error {
	var owned []*metav1.OwnerReference
	var namespaces []string
	err := view.Each(ctx, hub, &fleet.BundleList{}, func(o client.Object) {
		owner := kube.ControllerOf(o, fleet.GroupVersion.WithKind("Cluster").GroupKind())
		if owner == nil || o.GetName() != naming.AgentBundle(owner.Name) {
			m.progress.step("Bundle %s has the label %s and no Cluster as its owner; it stays", view.NameOf(o), fleet.LabelAgent)
			return
		}
		owned, namespaces = append(owned, owner.DeepCopy()), append(namespaces, o.GetNamespace())
	}, client.HasLabels{fleet.LabelAgent})
	if err != nil {
		return fmt.Errorf("listing the Bundles of agents: %w", err)
	}
	var excluded []*fleet.Cluster
	for i, owner := range owned {
		record := &fleet.Cluster{}
		key := types.NamespacedName{Namespace: namespaces[i], Name: owner.Name}
		if err := hub.Get(ctx, key, record); apierrors.IsNotFound(err) && !kube.NotServed(err) || err == nil && record.UID != owner.UID {
			continue // the garbage collector deletes its Bundle
		} else if err != nil {
			return fmt.Errorf("reading Cluster %s: %w", key, err)
		}
		if err := m.exclude(ctx, hub, record); err != nil {
			return err
		}
		excluded = append(excluded, record)
	}
	for _, record := range excluded {
		if err := m.awaitAgentBundle(ctx, hub, record); err != nil {
			return err
		}
	}
	return m.progress.err
}
