package selection

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// neverPlacedKinds are made by a cluster for itself, out of what is placed.
var neverPlacedKinds = []schema.GroupKind{
	{Kind: "Pod"}, {Kind: "Node"}, {Kind: "Event"}, {Kind: "Endpoints"}, {Kind: "PodTemplate"}, {Kind: "ReplicationController"}, {Kind: "Binding"}, {Kind: "ComponentStatus"},
	{Group: "events.k8s.io", Kind: "Event"}, {Group: "coordination.k8s.io", Kind: "Lease"}, {Group: "coordination.k8s.io", Kind: "LeaseCandidate"},
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}, {Group: "apps", Kind: "ControllerRevision"}, {Group: "storage.k8s.io", Kind: "CSIStorageCapacity"},
	{Group: "storage.k8s.io", Kind: "CSINode"}, {Group: "storage.k8s.io", Kind: "VolumeAttachment"}, {Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"},
	{Group: "resource.k8s.io", Kind: "ResourceSlice"},
}

// neverPlacedGroups hold the fleet itself, and answers to questions. A dot in front stands for all that end so.
var neverPlacedGroups = []string{"fleet.cattle.io", "management.cattle.io", ".kubernetes-fleet.io", "multicluster.x-k8s.io", "metrics.k8s.io", ".metrics.k8s.io",
	"authentication.k8s.io", "authorization.k8s.io"}

// neverPlaced says why a kind is not placed, whoever selects it; "" if it may be.
func neverPlaced(gvk schema.GroupVersionKind) string {
	for _, group := range neverPlacedGroups {
		if gvk.Group == group || group[0] == '.' && strings.HasSuffix(gvk.Group, group) {
			return "objects of the fleet itself, and what clusters answer to questions, are never placed"
		}
	}
	if slices.Contains(neverPlacedKinds, gvk.GroupKind()) {
		return "every cluster makes its own"
	}
	return ""
}

// reservedNamespace says why a namespace is not placed; "" if it may be. A namespace with records of the fleet in it is a
// workspace.
func reservedNamespace(name string, labels map[string]string, workspace bool) string {
	switch {
	case name == metav1.NamespaceDefault, strings.HasPrefix(name, "kube-"), strings.HasPrefix(name, "fleet-"), strings.HasPrefix(name, "cattle-fleet-"):
		return "the namespace is reserved"
	case labels[fleet.LabelManaged] == "true":
		return "the namespace is the fleet's own"
	case workspace:
		return "the namespace is a workspace of the fleet or one of its own, with tokens and records in it"
	}
	return ""
}

// derived says whether an object was made by a cluster for itself, or is a secret of the fleet, and is left out of what is placed.
func derived(o *unstructured.Unstructured) bool {
	if o.GetLabels()[fleet.LabelManaged] == "true" || o.GetDeletionTimestamp() != nil || metav1.GetControllerOf(o) != nil {
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
	case "Secret":
		kind, _, err := unstructured.NestedString(o.Object, "type")
		return err != nil || kind == string(corev1.SecretTypeServiceAccountToken) || kind == fleet.SecretTypeValues || kind == fleet.SecretTypeCredential
	}
	return false
}
