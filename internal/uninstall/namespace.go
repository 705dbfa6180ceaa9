package uninstall

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// labelHelmMade is the label on a namespace created by helm install --create-namespace. Its value
// is the name of the namespace.
const labelHelmMade = "name"

// appliedWorks is the kind AppliedWork. On a member, only agents write it.
var appliedWorks = Kind{"AppliedWork", placement.GroupVersion.String(), "appliedworks", false}

// definition is the name of the definition of AppliedWorks.
var definition = appliedWorks.resource + "." + placement.GroupVersion.Group

// findDefinition finds the definition of AppliedWorks. The definition stays while an AppliedWork or
// another agent exists. Without it, Kubernetes would delete the objects of AppliedWorks.
func (c Cluster) findDefinition(ctx context.Context, found *Installation, others []Object) error {
	object, err := c.get(ctx, kinds[definitions], "", definition)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case releaseOf(object) != found.release:
		found.stays("%s: Helm release %s has not created it", object, found.release)
		return nil
	case len(others) > 0:
		found.stays("%s: %s may use it", object, others[0])
		return nil
	}
	works, err := c.List(ctx, appliedWorks, "", "")
	if err != nil {
		return err
	}
	if len(works) > 0 {
		found.stays("%s: objects of placements stay on the cluster, and %s owns some of them", object, works[0])
		return nil
	}
	found.add(*object)
	return nil
}

// findNamespace finds the namespace of the agent. It stays unless Helm created it and everything in
// it is the agent's.
func (c Cluster) findNamespace(ctx context.Context, found *Installation) error {
	namespace, err := c.get(ctx, kinds[namespaces], "", found.agent.Namespace)
	if err != nil {
		return err
	}
	switch release := releaseOf(namespace); {
	case release == found.release:
	case release.Name != "":
		found.stays("%s: it is of Helm release %s", namespace, release)
		return nil
	case namespace.Labels[labelHelmMade] != namespace.Name:
		found.stays("%s: Helm has not created it", namespace)
		return nil
	}
	foreign, err := c.foreignIn(ctx, namespace.Name, found.Objects)
	switch {
	case err != nil:
		found.stays("%s: %s", namespace, err)
	case foreign != nil:
		found.stays("%s: it also contains %s", namespace, foreign)
	default:
		found.add(*namespace)
	}
	return nil
}

// foreignIn returns a foreign object in a namespace; nil if there is none. The given objects, their
// dependents and the objects of Kubernetes itself are not foreign.
func (c Cluster) foreignIn(ctx context.Context, namespace string, own []Object) (*Object, error) {
	contents, err := c.contents(ctx, namespace)
	if err != nil {
		return nil, err
	}
	ours := map[types.UID]bool{}
	for _, object := range own {
		ours[object.UID] = true
	}
	for grown := true; grown; { // a Pod belongs to a ReplicaSet, and the ReplicaSet to the Deployment
		grown = false
		for i := range contents {
			if !ours[contents[i].UID] && slices.ContainsFunc(contents[i].Owners, func(r metav1.OwnerReference) bool { return ours[r.UID] }) {
				ours[contents[i].UID], grown = true, true
			}
		}
	}
	for i := range contents {
		if !ours[contents[i].UID] && !contents[i].ofKubernetes() {
			return &contents[i], nil
		}
	}
	return nil, nil
}

// ofKubernetes reports whether Kubernetes itself creates such an object in a namespace.
func (o Object) ofKubernetes() bool {
	switch o.kind.resource {
	case "serviceaccounts":
		return o.Name == "default"
	case configMaps:
		return o.Name == "kube-root-ca.crt" || o.Name == "openshift-service-ca.crt"
	case secrets:
		return o.annotations["kubernetes.io/service-account.name"] == "default"
	case "events":
		return true
	}
	return o.kind.version == "metrics.k8s.io/v1beta1"
}

// contents returns all objects in a namespace.
func (c Cluster) contents(ctx context.Context, namespace string) (contents []Object, err error) {
	listed, err := c.listable(ctx)
	if err != nil {
		return nil, err
	}
	for _, kind := range listed {
		if !kind.namespaced {
			continue
		}
		objects, err := c.List(ctx, kind, namespace, "")
		if apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err) {
			continue // the kind is not in this namespace, or no longer served
		} else if err != nil {
			return nil, err
		}
		contents = append(contents, objects...)
	}
	return contents, nil
}

// listable returns the served kinds with the verb list, each in one version.
func (c Cluster) listable(ctx context.Context) (listed []Kind, err error) {
	body, err := c.api.Get().AbsPath("/apis").SetHeader("Accept", asJSON).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the API groups: %w", err)
	}
	var groups metav1.APIGroupList
	if err := json.Unmarshal(body, &groups); err != nil {
		return nil, fmt.Errorf("decoding the API groups: %w", err)
	}
	versions := []string{"v1"}
	for _, group := range groups.Groups {
		for _, version := range group.Versions { // a kind may be in one version only
			versions = append(versions, version.GroupVersion)
		}
	}
	seen := map[string]bool{}
	for _, version := range versions {
		path := strings.TrimSuffix(Kind{version: version}.path(""), "/")
		body, err := c.api.Get().AbsPath(path).SetHeader("Accept", asJSON).DoRaw(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading the kinds of %s: %w", version, err)
		}
		var list metav1.APIResourceList
		if err := json.Unmarshal(body, &list); err != nil {
			return nil, fmt.Errorf("decoding the kinds of %s: %w", version, err)
		}
		group, _, _ := strings.Cut(version, "/")
		for i := range list.APIResources {
			resource := &list.APIResources[i]
			key := group + "/" + resource.Name
			if !slices.Contains(resource.Verbs, "list") || strings.Contains(resource.Name, "/") || seen[key] {
				continue
			}
			seen[key] = true
			listed = append(listed, Kind{resource.Kind, version, resource.Name, resource.Namespaced})
		}
	}
	return listed, nil
}
