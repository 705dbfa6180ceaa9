package selection

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// order is the order of application: the order of helm install, but with Namespaces first. All
// other kinds follow.
var order = []schema.GroupKind{
	{Kind: "Namespace"}, {Group: "scheduling.k8s.io", Kind: "PriorityClass"}, {Group: "networking.k8s.io", Kind: "NetworkPolicy"},
	{Kind: "ResourceQuota"}, {Kind: "LimitRange"}, {Group: "policy", Kind: "PodDisruptionBudget"},
	{Kind: "ServiceAccount"}, {Kind: "Secret"}, {Kind: "ConfigMap"},
	{Group: "storage.k8s.io", Kind: "StorageClass"}, {Kind: "PersistentVolume"}, {Kind: "PersistentVolumeClaim"},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}, {Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"},
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}, {Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
	{Kind: "Service"}, {Group: "apps", Kind: "DaemonSet"}, {Group: "apps", Kind: "ReplicaSet"}, {Group: "apps", Kind: "Deployment"},
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, {Group: "apps", Kind: "StatefulSet"}, {Group: "batch", Kind: "Job"},
	{Group: "batch", Kind: "CronJob"},
	{Group: "networking.k8s.io", Kind: "IngressClass"}, {Group: "networking.k8s.io", Kind: "Ingress"},
	{Group: "apiregistration.k8s.io", Kind: "APIService"},
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
}

func rank(o *unstructured.Unstructured) int {
	if i := slices.Index(order, o.GroupVersionKind().GroupKind()); i >= 0 {
		return i
	}
	return len(order)
}

func inOrder(a, b *unstructured.Unstructured) int {
	return cmp.Or(rank(a)-rank(b), cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetAPIVersion(), b.GetAPIVersion()),
		cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}
