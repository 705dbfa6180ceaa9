package uninstall

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	muster "github.com/muster-fleet/muster/api/muster/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/standby"
	"github.com/muster-fleet/muster/internal/naming"
)

// policyKinds lists the kinds of admission and flow control. Some clusters do not serve all.
var policyKinds = []Kind{
	{"ValidatingAdmissionPolicyBinding", "admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings", false},
	{"ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1", "validatingadmissionpolicies", false},
	{"MutatingAdmissionPolicyBinding", "admissionregistration.k8s.io/v1", "mutatingadmissionpolicybindings", false},
	{"MutatingAdmissionPolicy", "admissionregistration.k8s.io/v1", "mutatingadmissionpolicies", false},
	{"MutatingAdmissionPolicyBinding", "admissionregistration.k8s.io/v1beta1", "mutatingadmissionpolicybindings", false},
	{"MutatingAdmissionPolicy", "admissionregistration.k8s.io/v1beta1", "mutatingadmissionpolicies", false},
	{"ValidatingWebhookConfiguration", "admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", false},
	{"MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", false},
	{"FlowSchema", "flowcontrol.apiserver.k8s.io/v1", "flowschemas", false},
	{"PriorityLevelConfiguration", "flowcontrol.apiserver.k8s.io/v1", "prioritylevelconfigurations", false},
}

// groups are the API groups of the fleet.
var groups = []string{
	fleet.GroupVersion.Group, clusterv1beta1.GroupVersion.Group, placement.GroupVersion.Group, muster.GroupVersion.Group,
}

// agentFinalizers are the finalizers of agents on objects in their member namespace.
var agentFinalizers = []string{placement.FinalizerWork, fleet.FinalizerBundleDeployment}

// leftoversOfHub finds the leftovers of a hub on a cluster without a hub: finalizers, policies,
// rights and member namespaces.
func (c Cluster) leftoversOfHub(ctx context.Context, found *Leftovers) error {
	if err := c.leftoversOfCharts(ctx, found, ofHub); err != nil {
		return err
	}
	objects, err := c.fleetObjects(ctx)
	if err != nil {
		return err
	}
	spaces, err := c.memberNamespaces(ctx)
	if err != nil {
		return err
	}
	members := map[types.UID]bool{}
	for _, object := range objects {
		if object.kind.name == "Cluster" || object.kind.name == "MemberCluster" {
			members[object.UID] = !object.deleted
		}
	}
	unused := func(namespace *Object) bool {
		return namespace != nil && !members[types.UID(namespace.annotations[membership.AnnotationRecordUID])]
	}
	for _, object := range objects {
		if space := spaces[object.Namespace]; len(object.finalizers) > 0 && (object.deleted || unused(space)) {
			found.addHeld(object, space != nil)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(spaces)) {
		if namespace := spaces[name]; unused(namespace) {
			found.add(*namespace, "the hub created it for a member that is gone")
		} else {
			found.stays("%s: its member exists", namespace)
		}
	}
	return c.writtenByHub(ctx, found)
}

// addHeld adds an object with finalizers of the hub, or of an agent in a member namespace.
func (l *Leftovers) addHeld(object Object, inMemberNamespace bool) {
	var ours, others []string
	for _, finalizer := range object.finalizers {
		if object.writtenByHub(`v:\"`+finalizer+`\"`) || inMemberNamespace && slices.Contains(agentFinalizers, finalizer) {
			ours = append(ours, finalizer)
		} else {
			others = append(others, finalizer)
		}
	}
	if len(ours) > 0 {
		l.Found = append(l.Found, Leftover{
			Object: object, Finalizers: ours, Proof: "only an absent hub or agent takes these finalizers off: " + strings.Join(ours, ", "),
		})
	}
	if len(others) > 0 && object.deleted {
		l.stays("%s: it is being deleted and waits for finalizers of another program: %s", object, strings.Join(others, ", "))
	}
}

// fleetObjects returns the objects of all kinds of the fleet.
func (c Cluster) fleetObjects(ctx context.Context) (objects []Object, err error) {
	listed, err := c.listable(ctx)
	if err != nil {
		return nil, err
	}
	for _, kind := range listed {
		group, _, _ := strings.Cut(kind.version, "/")
		if !slices.Contains(groups, group) || kind.resource == appliedWorks.resource {
			continue
		}
		some, err := c.List(ctx, kind, "", "")
		if err != nil {
			return nil, err
		}
		objects = append(objects, some...)
	}
	return objects, nil
}

// memberNamespaces returns the member namespaces by name. Managed fields prove the hub's writes.
func (c Cluster) memberNamespaces(ctx context.Context) (map[string]*Object, error) {
	listed, err := c.List(ctx, kinds[namespaces], "", "")
	if err != nil {
		return nil, err
	}
	spaces := map[string]*Object{}
	for i := range listed {
		namespace := &listed[i]
		shaped := strings.HasPrefix(namespace.Name, "cluster-") || strings.HasPrefix(namespace.Name, "fleet-member-")
		if shaped && namespace.writtenByHub("f:"+membership.AnnotationRecordUID) {
			spaces[namespace.Name] = namespace
		}
	}
	return spaces, nil
}

// writtenByHub finds the rights and notes of a hub outside member namespaces.
func (c Cluster) writtenByHub(ctx context.Context, found *Leftovers) error {
	for _, resource := range []string{"clusterrolebindings", clusterRoles, configMaps} {
		objects, err := c.List(ctx, kinds[resource], "", fleet.LabelManaged+"=true")
		if err != nil {
			return err
		}
		for _, object := range objects {
			if object.writtenByHub("f:" + fleet.LabelManaged) {
				found.add(object, "the hub wrote it")
			} else {
				found.Unproved = append(found.Unproved, object)
			}
		}
	}
	if err := c.leftoversOfStandby(ctx, found); err != nil {
		return err
	}
	lease, err := c.get(ctx, kinds[leases], naming.SystemNamespace, naming.HubLease)
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	if lease.writtenByHub("f:holderIdentity") {
		found.add(*lease, "the hub wrote it")
	} else {
		found.Unproved = append(found.Unproved, *lease)
	}
	return nil
}

// leftoversOfStandby finds the rights that muster restore and the hub have given to the account of
// a standby. The account itself stays, because it may wait for a restore.
func (c Cluster) leftoversOfStandby(ctx context.Context, found *Leftovers) error {
	for _, part := range []struct{ resource, key string }{{"rolebindings", "f:roleRef"}, {"roles", "f:rules"}} {
		objects, err := c.list(ctx, kinds[part.resource], "", "", "metadata.name="+standby.Account)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if object.writtenBy(standby.Manager, part.key) || object.writtenByHub(part.key) {
				found.add(object, "a restored hub had it for agents with a token of the standby")
			} else {
				found.Unproved = append(found.Unproved, object)
			}
		}
	}
	return nil
}

// leftoverDefinitions finds the unused definitions of Muster's charts: their release is gone, and
// they have no objects. While an agent is installed, the definition of AppliedWorks stays.
func (c Cluster) leftoverDefinitions(ctx context.Context, found *Leftovers, agents bool) error {
	listed, err := c.List(ctx, kinds[definitions], "", labelManagedBy+"="+byHelm)
	if err != nil {
		return err
	}
	served, err := c.listable(ctx)
	if err != nil {
		return err
	}
	for _, object := range listed {
		resource, group, _ := strings.Cut(object.Name, ".")
		release := releaseOf(&object)
		if !slices.Contains(groups, group) || object.annotations["helm.sh/resource-policy"] != "keep" {
			continue
		}
		gone, err := c.releaseGone(ctx, found, release)
		switch {
		case err != nil:
			return err
		case !gone:
			found.kept(release)
			continue
		case agents && object.Name == definition:
			continue
		}
		index := slices.IndexFunc(served, func(k Kind) bool { return k.resource == resource && strings.HasPrefix(k.version, group+"/") })
		if index < 0 {
			found.stays("%s: its objects cannot be listed, because the cluster does not serve it", object)
			continue
		}
		objects, err := c.List(ctx, served[index], "", "")
		if err != nil {
			return err
		}
		objects = slices.DeleteFunc(objects, func(o Object) bool { return found.has(o.UID) })
		if len(objects) > 0 {
			found.stays("%s: the number of its objects is %d, such as %s", object, len(objects), objects[0])
			continue
		}
		found.add(object, fmt.Sprintf("its Helm release %s is gone, and it has no objects", release))
	}
	return nil
}
