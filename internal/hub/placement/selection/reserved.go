package selection

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// neverPlacedKinds are kinds with objects created by every cluster itself.
var neverPlacedKinds = []schema.GroupKind{
	{Kind: "Pod"}, {Kind: "Node"}, {Kind: "Event"}, {Kind: "PodTemplate"}, {Kind: "ReplicationController"}, {Kind: "Binding"},
	{Kind: "ComponentStatus"},
	{Group: "events.k8s.io", Kind: "Event"}, {Group: "coordination.k8s.io", Kind: "Lease"}, {
		Group: "coordination.k8s.io", Kind: "LeaseCandidate",
	},
	{Group: "apps", Kind: "ControllerRevision"}, {Group: "storage.k8s.io", Kind: "CSIStorageCapacity"},
	{Group: "storage.k8s.io", Kind: "CSINode"}, {Group: "storage.k8s.io", Kind: "VolumeAttachment"},
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"},
	{Group: "resource.k8s.io", Kind: "ResourceSlice"}, {Group: "networking.k8s.io", Kind: "IPAddress"},
}

// neverPlacedGroups hold the fleet itself, and reviews. Other groups in the domain of KubeFleet may
// belong to other projects. An entry with a leading dot stands for all groups with this ending.
var neverPlacedGroups = []string{
	"fleet.cattle.io", "management.cattle.io", placement.GroupVersion.Group, clusterv1beta1.GroupVersion.Group,
	"multicluster.x-k8s.io", "muster-fleet.github.io", "metrics.k8s.io", ".metrics.k8s.io",
	"authentication.k8s.io", "authorization.k8s.io",
}

const createdByEach = "every cluster creates its own"

const neverOfTheFleet = "objects of the fleet itself, and reviews that an API server answers, are never placed"

func reservedGroup(group string) bool {
	return slices.ContainsFunc(neverPlacedGroups, func(reserved string) bool {
		return group == reserved || reserved[0] == '.' && strings.HasSuffix(group, reserved)
	})
}

// neverPlaced returns the reason why a kind is not placed, regardless of selectors; "" if it may
// be. Envelopes may be selected: their contents are placed.
func neverPlaced(gvk schema.GroupVersionKind) string {
	if isEnvelopeKind(gvk.GroupKind()) {
		return ""
	}
	if reservedGroup(gvk.Group) {
		return neverOfTheFleet
	}
	if slices.Contains(neverPlacedKinds, gvk.GroupKind()) {
		return createdByEach
	}
	return ""
}

// reservedNamespace returns the reason why a namespace is not placed; "" if it may be.
func reservedNamespace(name string, labels map[string]string, workspace bool) string {
	switch {
	case name == metav1.NamespaceDefault, strings.HasPrefix(name, "kube-"), strings.HasPrefix(name, "fleet-"),
		strings.HasPrefix(name, "cattle-fleet-"):
		return "the namespace is reserved"
	case labels[fleet.LabelManaged] == "true":
		return "the namespace is the fleet's own"
	case workspace:
		return "the namespace is a workspace or the fleet's own, with tokens and Clusters in it"
	}
	return ""
}
