package cli

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// annotationNotManagedBy marks a Cluster with an unmanaged agent, set by this program.
const annotationNotManagedBy = "muster/not-managed-by"

// stopManaging makes the hub delete the Bundle of Muster's agent, and waits until it is gone
// from the member namespace. Otherwise Rancher Fleet's agent of the same Cluster would deploy
// the Bundle and replace itself.
func (m *migrator) stopManaging(ctx context.Context, hub *checked, old *rancherCredential) error {
	record := &fleet.Cluster{}
	if err := hub.Get(ctx, old.cluster, record); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("reading Cluster %s: %w", old.cluster, err)
	}
	if membership.Namespace(record) != old.member {
		return nil // a Cluster of another hub has the same name
	}
	name := types.NamespacedName{Namespace: old.member, Name: naming.AgentBundle(record.Name)}
	delivered := &fleet.BundleDeployment{}
	if err := hub.Get(ctx, name, delivered); apierrors.IsNotFound(err) || err == nil && delivered.Labels[fleet.LabelAgent] == "" {
		return nil
	} else if err != nil {
		return fmt.Errorf("reading BundleDeployment %s: %w", name, err)
	}
	if _, is := record.Labels[fleet.LabelNonManagedAgent]; !is {
		if err := hub.setManaged(ctx, record, "true", madeByUs); err != nil {
			return err
		}
	}
	m.progress.step("the hub takes Bundle %s/%s of Muster's agent away", record.Namespace, name.Name)
	unseen, err := await(ctx, &m.progress, func(ctx context.Context) (bool, error) {
		err := hub.Get(ctx, name, delivered)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("waiting for BundleDeployment %s to go: %w"+canBeRepeated, name, cmp.Or(unseen, err))
	}
	return nil
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

// eachManages makes the hub manage all agents again that this program has excluded.
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

// deleteAgentBundles deletes the agent Bundles of Muster's hub while the hub is running and
// removes their finalizers. Otherwise Rancher Fleet's hub would deliver them to its own agents.
func (m *migrator) deleteAgentBundles(ctx context.Context, hub *checked) error {
	var bundles []*fleet.Bundle
	err := view.Each(ctx, hub, &fleet.BundleList{}, func(o client.Object) {
		bundles = append(bundles, &fleet.Bundle{ObjectMeta: *o.(*fleet.Bundle).ObjectMeta.DeepCopy()})
	}, client.HasLabels{fleet.LabelAgent})
	if err != nil {
		return fmt.Errorf("listing the Bundles of agents: %w", err)
	}
	for _, bundle := range bundles {
		if err := kube.DeleteByUID(ctx, hub, bundle); err != nil {
			return err
		}
		m.progress.step("Bundle %s of an agent is deleted", view.NameOf(bundle))
	}
	return m.progress.err
}
