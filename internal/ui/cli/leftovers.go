package cli

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// These sets are Rancher Fleet's owners of leftovers.
const (
	rancherRegistration = "cluster-registration"
	rancherAgentPrefix  = "fleet-agent"
	labelRancherSet     = "objectset.rio.cattle.io/hash"
)

// leftover is an unused object of Rancher Fleet.
type leftover struct {
	on     *checked
	object *metav1.PartialObjectMetadata
}

func (l leftover) String() string {
	in := ""
	if namespace := l.object.GetNamespace(); namespace != "" {
		in = " -n " + namespace
	}
	return fmt.Sprintf("kubectl --context %s%s delete %s %s", l.on.contextName(), in, strings.ToLower(l.object.Kind), l.object.GetName())
}

// leftovers lists Rancher Fleet's leftovers of a Cluster's agent. On the hub they are the
// accounts of its registrations, with tokens without expiry; on the member, the binding with
// all rights. With --remove-leftovers it removes them.
func (m *migrator) leftovers(ctx context.Context, hub *checked, agent *migratedAgent) error {
	record, ok := agent.record.(*fleet.Cluster)
	if !ok || m.back {
		return nil
	}
	if native, err := agent.native(ctx); err != nil || !native { // Rancher Fleet's agent needs them
		return err
	}
	found, err := hub.registrationsOf(ctx, record, agent.account)
	if err != nil {
		return err
	}
	onMember, err := agent.cluster.agentRightsOfRancher(ctx)
	if err != nil {
		return err
	}
	found = append(found, onMember...)
	if kept, err := agent.cluster.kept(ctx); err != nil {
		return err
	} else if kept != nil { // the way back needs the account
		object := kube.CoreMetadata("Secret")
		object.ObjectMeta = kept.ObjectMeta
		found = append(found, leftover{agent.cluster, object})
	}
	switch {
	case len(found) == 0:
		return nil
	case m.removeLeftovers && !m.dryRun:
		for _, l := range found {
			if err := kube.DeleteByUID(ctx, l.on, l.object); err != nil {
				return fmt.Errorf("%w"+canBeRepeated, err)
			}
			m.progress.step("%s %s of Rancher Fleet is deleted on %s", l.object.Kind, l.object.GetName(), l.on.role)
		}
		return m.progress.err
	}
	m.progress.line("Rancher Fleet has left %d objects of the agent, with rights that still count. --remove-leftovers removes them, or:",
		len(found))
	for _, l := range found {
		m.progress.line("  %s", l)
	}
	return m.progress.err
}

// registrationsOf finds the objects of a Cluster's registrations on Rancher Fleet's hub, except
// for the agent's present account. All objects of a registration have the same label.
func (c *checked) registrationsOf(ctx context.Context, record *fleet.Cluster, used string) (found []leftover, err error) {
	accounts, err := c.metadata(ctx, corev1.SchemeGroupVersion.WithKind("ServiceAccount"), client.InNamespace(membership.Namespace(record)))
	if err != nil {
		return nil, err
	}
	for _, account := range accounts {
		set := kube.ObjectSetOf(account)
		if set.ID != rancherRegistration || account.Annotations["fleet.cattle.io/cluster"] != record.Name ||
			used == "system:serviceaccount:"+account.Namespace+":"+account.Name {
			continue
		}
		for _, kind := range []schema.GroupVersionKind{
			rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
			rbacv1.SchemeGroupVersion.WithKind("Role"),
			corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("ServiceAccount"), // last: they lead to the others
		} {
			objects, err := c.metadata(ctx, kind, client.MatchingLabels{labelRancherSet: account.Labels[labelRancherSet]})
			if err != nil {
				return nil, err
			}
			for _, object := range objects {
				if kube.ObjectSetOf(object) == set {
					found = append(found, leftover{c, object})
				}
			}
		}
	}
	return found, nil
}

// agentRightsOfRancher finds the ClusterRole and the binding of Rancher Fleet's agent on a
// member. The hub applies both outside the chart, so they outlive the agent. The account in the
// binding has the name of Muster's account.
func (c *checked) agentRightsOfRancher(ctx context.Context) (found []leftover, err error) {
	role := naming.SystemNamespace + "-fleet-agent-role"
	for _, o := range []struct{ kind, name string }{{"ClusterRoleBinding", role + "-binding"}, {"ClusterRole", role}} {
		object := kube.Metadata(rbacv1.SchemeGroupVersion.WithKind(o.kind))
		if err := c.Get(ctx, client.ObjectKey{Name: o.name}, object); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading %s %s on %s: %w", o.kind, o.name, c.role, err)
		}
		if object.ResourceVersion != "" && ofRancherAgent(object) {
			found = append(found, leftover{c, object})
		}
	}
	return found, nil
}

// metadata lists the metadata of the objects of a kind.
func (c *checked) metadata(ctx context.Context, kind schema.GroupVersionKind,
	options ...client.ListOption) ([]*metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("looking for what Rancher Fleet has left, %ss on %s: %w", kind.Kind, c.role, err)
	}
	objects := make([]*metav1.PartialObjectMetadata, 0, len(list.Items))
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(kind)
		objects = append(objects, &list.Items[i])
	}
	return objects, nil
}
