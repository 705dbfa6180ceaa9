package selection

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery/manifest"
)

var (
	services     = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}

	endpointsKind     = schema.GroupKind{Kind: "Endpoints"}
	endpointSliceKind = schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}
	claimKind         = schema.GroupKind{Kind: "PersistentVolumeClaim"}
)

// labelService on an EndpointSlice names its Service.
const labelService = "kubernetes.io/service-name"

// controllerManagers are the field managers of Kubernetes' own controllers. They have the names
// of their programs.
var controllerManagers = []string{"kube-controller-manager", "k3s", "kubelite"}

// generated reports whether an object is not placed because every cluster creates its own.
func (r *resolver) generated(o *unstructured.Unstructured) bool {
	return derived(o) || r.derivedFrom(o)
}

// addPlaced adds the objects of a selector, without the generated ones.
func (r *resolver) addPlaced(selector int, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if ofAPIServer(o) {
			return invalidf("%s: %s %s cannot be placed: %s", pathOf(selector), o.GetKind(), o.GetName(), createdByEach)
		}
		if !r.generated(o) {
			r.add(selector, o)
		}
	}
	return nil
}

// derived reports whether an object itself shows a controller as its creator, or is a Secret of
// the fleet.
func derived(o *unstructured.Unstructured) bool {
	if o.GetLabels()[fleet.LabelManaged] == "true" || o.GetDeletionTimestamp() != nil || ofKubernetes(metav1.GetControllerOf(o)) {
		return true
	}
	if o.GroupVersionKind().Group != "" {
		return false
	}
	switch o.GetKind() {
	case "ConfigMap":
		return o.GetName() == "kube-root-ca.crt"
	case "ServiceAccount":
		return o.GetName() == "default"
	case "Endpoints":
		return o.GetLabels()["endpoints.kubernetes.io/managed-by"] == "endpoint-controller" ||
			o.GetAnnotations()[corev1.EndpointsLastChangeTriggerTime] != ""
	case "Secret":
		kind, _, err := unstructured.NestedString(o.Object, "type")
		return err != nil || kind == string(corev1.SecretTypeServiceAccountToken) || kind == fleet.SecretTypeValues ||
			kind == fleet.SecretTypeCredential || kind == fleet.SecretTypeLastingToken
	}
	return false
}

// ofAPIServer reports whether every API server creates the object itself, or it is a definition of
// the fleet. A placement would take it over on its members, and delete it at its end. So such an
// object makes its placement invalid, and an earlier placement of it stays as it is.
func ofAPIServer(o *unstructured.Unstructured) bool {
	switch kind := o.GroupVersionKind(); {
	case kind.Group == rbacv1.GroupName:
		return o.GetLabels()["kubernetes.io/bootstrapping"] == "rbac-defaults"
	case kind.Group == "flowcontrol.apiserver.k8s.io":
		return o.GetAnnotations()["apf.kubernetes.io/autoupdate-spec"] == "true"
	case kind.Kind == "PriorityClass":
		return strings.HasPrefix(o.GetName(), "system-")
	case kind.Kind == "APIService":
		return o.GetLabels()["kube-aggregator.kubernetes.io/automanaged"] != ""
	case kind.Kind == "ServiceCIDR":
		return o.GetName() == "kubernetes"
	case kind.Kind == "CustomResourceDefinition":
		group, _, err := unstructured.NestedString(o.Object, "spec", "group")
		return err != nil || reservedGroup(group)
	}
	return false
}

// ofKubernetes reports whether the controller of an object has a kind of Kubernetes itself: every
// cluster has those controllers. Another owner, such as a SealedSecret, may be missing on a
// member. Its object is placed without its owner, as KubeFleet does.
func ofKubernetes(controller *metav1.OwnerReference) bool {
	if controller == nil {
		return false
	}
	group, _, grouped := strings.Cut(controller.APIVersion, "/")
	return !grouped || !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// derivedFrom reports whether a controller created an object from another one without owning it.
// Examples are Endpoints from a Service with a selector, and PersistentVolumeClaims from a
// StatefulSet.
func (r *resolver) derivedFrom(o *unstructured.Unstructured) bool {
	switch o.GroupVersionKind().GroupKind() {
	case endpointsKind:
		return r.fromAny(services, o, func(service *unstructured.Unstructured) bool {
			return o.GetName() == service.GetName() && hasSelector(service)
		})
	case endpointSliceKind:
		return r.fromAny(services, o, func(service *unstructured.Unstructured) bool {
			return o.GetLabels()[labelService] == service.GetName() && hasSelector(service)
		})
	case claimKind:
		// A PersistentVolumeClaim of a deleted StatefulSet must not be placed either, because
		// members have data in their own. trim has kept the managers of such an object.
		return slices.ContainsFunc(o.GetManagedFields(), ofController) || r.fromAny(statefulSets, o, func(set *unstructured.Unstructured) bool {
			return claims(set, o.GetName())
		})
	}
	return false
}

// fromAny reports whether an object was created from one of a resource's objects in its
// namespace. If the hub may not read the resource, the object is left out and the resource noted
// as unread.
func (r *resolver) fromAny(resource schema.GroupVersionResource, o *unstructured.Unstructured,
	from func(*unstructured.Unstructured) bool) bool {
	query := Query{Resource: resource, Namespace: o.GetNamespace()}
	r.queries[query] = true
	objects, synced, failure := r.Watches.Objects(query)
	if !synced && failure != nil {
		r.unread[resource.GroupResource().String()] = true
		return true
	}
	r.Waiting = r.Waiting || !synced
	return slices.ContainsFunc(objects, from)
}

func ofController(entry metav1.ManagedFieldsEntry) bool {
	return slices.Contains(controllerManagers, entry.Manager)
}

// trimmedBy is the manager in the only entry of an object after its cluster's values were removed.
// A relist hands such an object out again.
const trimmedBy = "muster-trimmed"

func isTrimmed(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == trimmedBy })
}

// trim removes the managed fields from an object kept in memory. Before, it removes the fields
// assigned by the cluster according to the managed fields. For a PersistentVolumeClaim it keeps the
// names of its creating controllers. The creator sets the access modes; the controller for binding
// the volume does not.
func trim(obj any) *unstructured.Unstructured {
	o := obj.(*unstructured.Unstructured)
	var makers []metav1.ManagedFieldsEntry
	if manifest.HasAssigned(o.GroupVersionKind().GroupKind()) {
		if !isTrimmed(o) {
			manifest.DropAssigned(o)
		}
		makers = append(makers, metav1.ManagedFieldsEntry{Manager: trimmedBy})
	}
	for _, entry := range o.GetManagedFields() {
		made := entry.FieldsV1 == nil || strings.Contains(entry.FieldsV1.String(), `"f:accessModes"`) // no fields: it was trimmed already
		if made && o.GroupVersionKind().GroupKind() == claimKind && ofController(entry) {
			makers = append(makers, metav1.ManagedFieldsEntry{Manager: entry.Manager, Operation: entry.Operation, APIVersion: entry.APIVersion})
		}
	}
	o.SetManagedFields(makers)
	return o
}

func hasSelector(service *unstructured.Unstructured) bool {
	selector, _, err := unstructured.NestedMap(service.Object, "spec", "selector")
	return err != nil || len(selector) > 0
}

// claims reports whether a PersistentVolumeClaim has a name created by a StatefulSet:
// <template>-<set>-<number>.
func claims(set *unstructured.Unstructured, claim string) bool {
	templates, _, err := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates")
	if err != nil {
		return true
	}
	for _, template := range templates {
		fields, ok := template.(map[string]any)
		if !ok {
			continue
		}
		name, _, err := unstructured.NestedString(fields, "metadata", "name")
		number, found := strings.CutPrefix(claim, name+"-"+set.GetName()+"-")
		if err == nil && found && number != "" && strings.Trim(number, "0123456789") == "" {
			return true
		}
	}
	return false
}
