package uninstall

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The resources with a rule of their own.
const (
	deployments  = "deployments"
	secrets      = "secrets"
	configMaps   = "configmaps"
	leases       = "leases"
	clusterRoles = "clusterroles"
	namespaces   = "namespaces"
	definitions  = "customresourcedefinitions"
)

// Kind is a kind of the objects of agents.
type Kind struct {
	name, version, resource string
	namespaced              bool
}

// kinds maps resources to the kinds in the charts of agents, and to the kinds written by agents.
var kinds = func() map[string]Kind {
	byResource := map[string]Kind{}
	for _, kind := range []Kind{
		{"Deployment", "apps/v1", deployments, true},
		{"ServiceAccount", "v1", "serviceaccounts", true},
		{"ConfigMap", "v1", configMaps, true},
		{"Secret", "v1", secrets, true},
		{"Lease", "coordination.k8s.io/v1", leases, true},
		{"NetworkPolicy", "networking.k8s.io/v1", "networkpolicies", true},
		{"PodDisruptionBudget", "policy/v1", "poddisruptionbudgets", true},
		{"Role", "rbac.authorization.k8s.io/v1", "roles", true},
		{"RoleBinding", "rbac.authorization.k8s.io/v1", "rolebindings", true},
		{"ClusterRole", "rbac.authorization.k8s.io/v1", clusterRoles, false},
		{"ClusterRoleBinding", "rbac.authorization.k8s.io/v1", "clusterrolebindings", false},
		{"PriorityClass", "scheduling.k8s.io/v1", "priorityclasses", false},
		{"Namespace", "v1", namespaces, false},
		{"CustomResourceDefinition", "apiextensions.k8s.io/v1", definitions, false},
	} {
		byResource[kind.resource] = kind
	}
	return byResource
}()

// Removes reports whether this package removes the objects of a kind in the charts of agents.
func Removes(kind string) bool {
	for _, k := range kinds {
		if k.name == kind {
			return true
		}
	}
	return false
}

// path returns the path of the kind's objects in the API.
func (k Kind) path(namespace string) string {
	path := "/apis/" + k.version
	if !strings.Contains(k.version, "/") {
		path = "/api/" + k.version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + k.resource
}

// Object is an object in the form of its metadata.
type Object struct {
	Namespace, Name string
	UID             types.UID
	Owners          []metav1.OwnerReference
	Labels          map[string]string

	kind        Kind
	version     string
	annotations map[string]string
	finalizers  []string
	managers    []metav1.ManagedFieldsEntry
	deleted     bool
}

// String returns the kind, namespace and name.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.kind.name + " " + o.Name
	}
	return o.kind.name + " " + o.Namespace + "/" + o.Name
}

// DeleteCommand returns the kubectl command to delete the object.
func (o Object) DeleteCommand() string {
	if o.Namespace == "" {
		return "kubectl delete " + o.kind.resource + " " + o.Name
	}
	return "kubectl -n " + o.Namespace + " delete " + o.kind.resource + " " + o.Name
}

func (o Object) path() string { return o.kind.path(o.Namespace) + "/" + o.Name }

func (o Object) ownedBy(owner Object) bool {
	return slices.ContainsFunc(o.Owners, func(r metav1.OwnerReference) bool { return r.UID == owner.UID })
}

// writtenByHub reports whether the hub is the manager of a field, given its key in fieldsV1.
func (o Object) writtenByHub(key string) bool { return o.writtenBy(hubManager, key) }

// writtenBy does the same as writtenByHub for another manager.
func (o Object) writtenBy(manager, key string) bool {
	return slices.ContainsFunc(o.managers, func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == manager && m.FieldsV1 != nil && strings.Contains(string(m.FieldsV1.GetRawBytes()), key)
	})
}

func objectOf(kind Kind, metadata *metav1.ObjectMeta) Object {
	return Object{
		Namespace: metadata.Namespace, Name: metadata.Name, UID: metadata.UID, Owners: metadata.OwnerReferences, Labels: metadata.Labels,
		kind: kind, version: metadata.ResourceVersion, annotations: metadata.Annotations, deleted: metadata.DeletionTimestamp != nil,
		finalizers: metadata.Finalizers, managers: metadata.ManagedFields,
	}
}

// asJSON is the media type of requests and answers.
const asJSON = "application/json"

// page limits the number of objects in one response.
const page = "500"

// asMetadata is the media type for the metadata of one object, or of a list.
const asMetadata = "application/json;as=PartialObjectMetadata%s;g=meta.k8s.io;v=v1,application/json"

func (c Cluster) get(ctx context.Context, kind Kind, namespace, name string) (*Object, error) {
	body, err := c.api.Get().AbsPath(kind.path(namespace)+"/"+name).SetHeader("Accept", fmt.Sprintf(asMetadata, "")).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", Object{kind: kind, Namespace: namespace, Name: name}, err)
	}
	var found metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &found); err != nil {
		return nil, fmt.Errorf("decoding %s %s: %w", kind.name, name, err)
	}
	object := objectOf(kind, &found.ObjectMeta)
	return &object, nil
}

// List returns the objects of a kind in a namespace, or in all, with the given labels.
func (c Cluster) List(ctx context.Context, kind Kind, namespace, labels string) ([]Object, error) {
	return c.list(ctx, kind, namespace, labels, "")
}

func (c Cluster) list(ctx context.Context, kind Kind, namespace, labels, fields string) (objects []Object, err error) {
	for next := ""; ; {
		request := c.api.Get().AbsPath(kind.path(namespace)).SetHeader("Accept", fmt.Sprintf(asMetadata, "List")).Param("limit", page)
		for name, value := range map[string]string{"labelSelector": labels, "fieldSelector": fields, "continue": next} {
			if value != "" {
				request.Param(name, value)
			}
		}
		body, err := request.DoRaw(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", kind.resource, err)
		}
		var found metav1.PartialObjectMetadataList
		if err := json.Unmarshal(body, &found); err != nil {
			return nil, fmt.Errorf("decoding the list of %s: %w", kind.resource, err)
		}
		for i := range found.Items {
			objects = append(objects, objectOf(kind, &found.Items[i].ObjectMeta))
		}
		if next = found.Continue; next == "" {
			return objects, nil
		}
	}
}
