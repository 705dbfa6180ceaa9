// Package uninstall finds the objects of an installed agent on its cluster, with a proof for each,
// and removes them together.
//
// Its invariant: an object without proof stays. Helm's marks of the agent's release prove an object
// of the chart. The namespace of the agent goes only if everything in it is the agent's.
//
// An agent cannot delete its own rights and continue, so its removal ends with one request. Prepare
// makes one ClusterRole of the agent the owner of all other objects. Remove deletes this
// ClusterRole, and the garbage collector of Kubernetes deletes the rest. After a killed process,
// the next one repeats Prepare: it finds the completed steps in the owners of the objects.
package uninstall

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/muster-fleet/muster/internal/naming"
)

// Marks of Helm, and of the charts of agents.
const (
	annotationRelease          = "meta.helm.sh/release-name"
	annotationReleaseNamespace = "meta.helm.sh/release-namespace"
	labelManagedBy             = "app.kubernetes.io/managed-by"
	byHelm                     = "Helm"
	byMuster                   = "muster"
)

// ErrNotProved is the error for an agent without a proof of its objects: none can be removed.
var ErrNotProved = errors.New("nothing proves which objects are the agent's")

// Cluster is the cluster of an agent.
type Cluster struct{ api rest.Interface }

// New returns the cluster behind a client of any group version.
func New(api rest.Interface) Cluster { return Cluster{api} }

// Installation holds the objects of an agent.
type Installation struct {
	// Objects lists the objects to remove, including Anchor.
	Objects []Object
	// Anchor is a ClusterRole. Prepare makes it the owner of all other objects.
	Anchor Object
	// Stays has a sentence about each kept object of uncertain owner, with the cause.
	Stays []string

	release types.NamespacedName
	agent   Object
}

// Prepared reports whether an earlier Prepare has completed: the agent's Deployment comes last.
func (i *Installation) Prepared() bool { return i.agent.ownedBy(i.Anchor) }

// Find returns the objects of the agent with the given Deployment, or with the mark for an agent on
// another cluster. The error is ErrNotProved if the agent was not installed by Helm.
func (c Cluster) Find(ctx context.Context, deployment types.NamespacedName) (*Installation, error) {
	proof := proofOf(deployment)
	agent, err := c.get(ctx, proof.kind, proof.Namespace, proof.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w: there is no %s on this cluster", ErrNotProved, proof)
	case err != nil:
		return nil, err
	}
	release := releaseOf(agent)
	if release.Name == "" {
		return nil, fmt.Errorf("%w: %s has no marks of a Helm release: remove the agent with the program that installed it",
			ErrNotProved, agent)
	}
	found := &Installation{agent: *agent, release: release}
	if agent.kind.resource == configMaps {
		found.stays("the Deployment of the agent: it is on another cluster, the host; remove it there with helm uninstall")
	}
	if err := c.findReleased(ctx, found); err != nil {
		return nil, err
	}
	others, err := c.otherAgents(ctx, agent)
	if err != nil {
		return nil, err
	}
	if err := c.findWritten(ctx, found, others); err != nil {
		return nil, err
	}
	if err := c.findDefinition(ctx, found, others); err != nil {
		return nil, err
	}
	if err := c.findNamespace(ctx, found); err != nil {
		return nil, err
	}
	for _, object := range found.Objects {
		if object.kind.resource == clusterRoles && (found.Anchor.Name == "" || object.Name < found.Anchor.Name) {
			found.Anchor = object
		}
	}
	if found.Anchor.Name == "" {
		return nil, fmt.Errorf("%w: Helm release %s has no ClusterRole, so it is another program's", ErrNotProved, release)
	}
	return found, nil
}

// proofOf returns the object that proves an installed agent: its Deployment, or the mark for an
// agent on another cluster.
func proofOf(deployment types.NamespacedName) Object {
	kind := kinds[deployments]
	if deployment.Name == naming.HostedAgentConfigMap {
		kind = kinds[configMaps]
	}
	return Object{kind: kind, Namespace: deployment.Namespace, Name: deployment.Name}
}

// Prepare makes the anchor an owner of all other objects. It skips objects with this owner. The
// agent's Deployment comes last: after a failure, a user may decide to keep the agent.
func (c Cluster) Prepare(ctx context.Context, found *Installation) error {
	isAgent := func(object Object) bool { return object.UID == found.agent.UID }
	for _, object := range append(slices.DeleteFunc(slices.Clone(found.Objects), isAgent), found.agent) {
		if object.UID == found.Anchor.UID || object.ownedBy(found.Anchor) {
			continue
		}
		if err := c.own(ctx, found.Anchor, object); err != nil {
			return err
		}
	}
	return nil
}

// own makes the anchor an owner of an object, if the object still has the found UID.
func (c Cluster) own(ctx context.Context, anchor, object Object) error {
	for {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": object.UID, "resourceVersion": object.version, "ownerReferences": append(slices.Clone(object.Owners), metav1.OwnerReference{
				APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: anchor.kind.name, Name: anchor.Name, UID: anchor.UID,
			}),
		}})
		if err != nil {
			return fmt.Errorf("encoding the owner of %s: %w", object, err)
		}
		err = c.api.Patch(types.MergePatchType).AbsPath(object.path()).SetHeader("Accept", asJSON).Body(patch).Do(ctx).Error()
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err):
			return wrap(err, "preparing the removal of %s", object)
		}
		current, err := c.get(ctx, object.kind, object.Namespace, object.Name)
		if apierrors.IsNotFound(err) || err == nil && (current.UID != object.UID || current.ownedBy(anchor)) {
			return nil
		} else if err != nil {
			return err
		}
		object = *current // a Lease changes all the time
	}
}

func wrap(err error, format string, a ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, a...), err)
}

// Remove deletes the anchor by its UID. Kubernetes then deletes all prepared objects.
func (c Cluster) Remove(ctx context.Context, found *Installation) error {
	return c.Delete(ctx, found.Anchor)
}

// Delete deletes one object by its UID. A missing object is no error, and another object of the
// same name stays.
func (c Cluster) Delete(ctx context.Context, object Object) error {
	background := metav1.DeletePropagationBackground
	options, err := json.Marshal(&metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{UID: &object.UID}, PropagationPolicy: &background,
	})
	if err != nil {
		return fmt.Errorf("encoding the deletion of %s: %w", object, err)
	}
	err = c.api.Delete().AbsPath(object.path()).SetHeader("Content-Type", asJSON).SetHeader("Accept", asJSON).
		Body(options).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	return wrap(err, "deleting %s", object)
}

// Resume completes the prepared removal of an agent. It returns nil, nil if none was prepared.
func (c Cluster) Resume(ctx context.Context, deployment types.NamespacedName) (*Installation, error) {
	proof := proofOf(deployment)
	agent, err := c.get(ctx, proof.kind, proof.Namespace, proof.Name)
	if err != nil {
		return nil, ignoreAbsent(err)
	}
	prepared := func(r metav1.OwnerReference) bool { return r.Kind == kinds[clusterRoles].name }
	if !slices.ContainsFunc(agent.Owners, prepared) {
		return nil, nil
	}
	found, err := c.Find(ctx, deployment)
	if err != nil || !found.Prepared() {
		return nil, err
	}
	return found, c.Remove(ctx, found)
}

// ignoreAbsent drops an error if there is no Deployment, or no right to read it.
func ignoreAbsent(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// releaseOf returns the Helm release of an object; empty if it has none.
func releaseOf(object *Object) types.NamespacedName {
	if object.Labels[labelManagedBy] != byHelm {
		return types.NamespacedName{}
	}
	name := object.annotations[annotationRelease]
	return types.NamespacedName{Namespace: cmp.Or(object.annotations[annotationReleaseNamespace], object.Namespace), Name: name}
}

// findReleased finds the objects of the release, and its history.
func (c Cluster) findReleased(ctx context.Context, found *Installation) error {
	for _, kind := range kinds {
		if kind.resource == namespaces || kind.resource == definitions {
			continue // Helm's marks alone are no proof for these kinds
		}
		objects, err := c.List(ctx, kind, "", labelManagedBy+"="+byHelm)
		if err != nil {
			return err
		}
		for i := range objects {
			if releaseOf(&objects[i]) == found.release {
				found.Objects = append(found.Objects, objects[i])
			}
		}
	}
	for _, kind := range []Kind{kinds[secrets], kinds[configMaps]} {
		history, err := c.List(ctx, kind, found.release.Namespace, "owner=helm,name="+found.release.Name)
		if err != nil {
			return err
		}
		found.Objects = append(found.Objects, history...)
	}
	return nil
}

// written lists the objects written by agents into their own namespace.
var written = []struct{ resource, name string }{
	{secrets, naming.AgentSecret}, {secrets, naming.AgentKeySecret}, {secrets, naming.AgentBootstrapSecret},
	{secrets, naming.MemberAgentCredentialSecret}, {configMaps, naming.LearnedHubConfigMap}, {configMaps, naming.ObeyedTermConfigMap},
	{leases, naming.AgentLease}, {leases, naming.MemberAgentLease},
}

// findWritten finds the objects written by the agent itself, and its token from muster join.
// Agents in the same namespace share some of these objects.
func (c Cluster) findWritten(ctx context.Context, found *Installation, others []Object) error {
	token, err := c.get(ctx, kinds[secrets], metav1.NamespaceDefault, naming.HubTokenSecret)
	if err == nil && token.Labels[labelManagedBy] == byMuster && found.agent.Name == naming.MemberAgentChart {
		found.add(*token)
	} else if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	kubeconfig, err := c.get(ctx, kinds[secrets], found.agent.Namespace, naming.HubKubeconfigSecret)
	if err == nil && kubeconfig.Labels[labelManagedBy] == byMuster {
		found.add(*kubeconfig)
	} else if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	for _, own := range written {
		object, err := c.get(ctx, kinds[own.resource], found.agent.Namespace, own.name)
		if apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return err
		}
		if at := slices.IndexFunc(others, func(o Object) bool { return o.Namespace == found.agent.Namespace }); at >= 0 {
			found.stays("%s: %s in the same namespace may use it", object, others[at])
			continue
		}
		found.add(*object)
	}
	return nil
}

func (i *Installation) add(object Object) {
	if !slices.ContainsFunc(i.Objects, func(o Object) bool { return o.UID == object.UID }) {
		i.Objects = append(i.Objects, object)
	}
}

func (i *Installation) stays(format string, a ...any) {
	i.Stays = append(i.Stays, fmt.Sprintf(format, a...))
}

// otherAgents returns the Deployments of other agents on the cluster.
func (c Cluster) otherAgents(ctx context.Context, agent *Object) (others []Object, err error) {
	all, err := c.Agents(ctx)
	return slices.DeleteFunc(all, func(o Object) bool { return agent != nil && o.UID == agent.UID }), err
}

// Agents returns the Deployments of agents on the cluster, of any project, and the marks for agents
// on other clusters.
func (c Cluster) Agents(ctx context.Context) (agents []Object, err error) {
	running := &Installation{}
	for _, query := range []struct{ resource, labels, fields string }{
		{deployments, "app.kubernetes.io/part-of=muster,app.kubernetes.io/component=agent", ""},
		{deployments, "", "metadata.name=" + naming.AgentBundlePrefix}, {deployments, "", "metadata.name=" + naming.MemberAgentChart},
		{configMaps, "", "metadata.name=" + naming.HostedAgentConfigMap},
	} {
		found, err := c.list(ctx, kinds[query.resource], "", query.labels, query.fields)
		if err != nil {
			return nil, err
		}
		for _, object := range found {
			running.add(object)
		}
	}
	return running.Objects, nil
}
