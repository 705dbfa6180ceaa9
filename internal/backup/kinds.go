package backup

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	audit "github.com/muster-fleet/muster/api/muster/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

var (
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	accounts   = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	tokens     = fleet.GroupVersion.WithResource("clusterregistrationtokens")
	clusters   = fleet.GroupVersion.WithResource("clusters")
	members    = clusterv1beta1.GroupVersion.WithResource("memberclusters")
	placements = []schema.GroupVersionResource{
		placement.GroupVersion.WithResource("clusterresourceplacements"), placement.GroupVersion.WithResource("resourceplacements"),
	}
	reports = clusterv1beta1.GroupVersion.WithResource("internalmemberclusters")
)

// kinds returns the kinds in a file, in the order of their restore. Limits come before the limited
// objects, owners before their objects, and members last. A returning member then finds its
// deliveries.
//
// The hub writes BundleDeployments, Contents, Works, bindings and ClusterProfiles again. Requests,
// evictions, update runs and their approvals are actions of a moment, and a restore repeats none.
func kinds() []schema.GroupVersionResource {
	var ordered []schema.GroupVersionResource
	add := func(version schema.GroupVersion, resources ...string) {
		for _, resource := range resources {
			ordered = append(ordered, version.WithResource(resource))
		}
	}
	add(fleet.GroupVersion, tokens.Resource, "policies", "schedules", "gitreporestrictions", "clustergroups",
		"bundlenamespacemappings", "gitrepos", "helmops", "imagescans", "bundles")
	add(placement.GroupVersion, "clusterresourceoverrides", "resourceoverrides", "clusterresourceenvelopes", "resourceenvelopes",
		"clusterresourceplacementdisruptionbudgets", "clusterstagedupdatestrategies", "stagedupdatestrategies")
	ordered = append(ordered, placements...)
	add(audit.GroupVersion, "auditentries")
	return append(ordered, clusters, members, reports)
}

// isOfHub reports whether the hub recreates an object from other objects.
func isOfHub(resource schema.GroupVersionResource, o *unstructured.Unstructured) bool {
	switch resource.Resource {
	case "bundles":
		_, ofAgent := o.GetLabels()[fleet.LabelAgent]
		return ofAgent
	case tokens.Resource: // of an import
		return metav1.GetControllerOf(o) != nil
	case secrets.Resource:
		return isSecretOfOthers(o)
	}
	return false
}

// isSecretOfOthers reports whether a Secret belongs to the hub, to Kubernetes or to Helm. Tokens of
// ServiceAccounts are worth nothing on another cluster.
func isSecretOfOthers(o *unstructured.Unstructured) bool {
	kind, _, _ := unstructured.NestedString(o.Object, "type")
	switch kind {
	case string(corev1.SecretTypeServiceAccountToken), string(corev1.SecretTypeBootstrapToken), "helm.sh/release.v1", fleet.SecretTypeValues,
		fleet.SecretTypeLastingToken, fleet.SecretTypeCredential, fleet.SecretTypeBundleValues, fleet.SecretTypeDeployment:
		return true
	}
	labels := o.GetLabels()
	_, copied := labels[fleet.LabelAccess]
	return copied || labels[fleet.LabelManaged] == "true" || metav1.GetControllerOf(o) != nil
}

// isMemberNamespace reports whether the hub recreates a namespace for its member.
func isMemberNamespace(o *unstructured.Unstructured) bool {
	return o.GetLabels()[fleet.LabelManaged] == "true"
}
