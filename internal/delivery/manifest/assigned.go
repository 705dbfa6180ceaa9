package manifest

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// assigners are the field managers of controllers with assignments. They have the names of their
// programs. An API server does not own its assignments in answer to a request.
var assigners = []string{
	"kube-controller-manager", "k3s", "kubelite", "kube-apiserver", "cloud-controller-manager", "csi-provisioner",
}

// annotationProvisioned marks a PersistentVolume of a provisioner.
const annotationProvisioned = "pv.kubernetes.io/provisioned-by"

// HasAssigned reports whether a kind has fields assigned by a cluster unless the author sets them.
func HasAssigned(kind schema.GroupKind) bool {
	return kind.Group == "" && slices.Contains([]string{"Service", "PersistentVolume", "PersistentVolumeClaim"}, kind.Kind) ||
		slices.Contains(certified, kind)
}

// DropAssigned removes the assigned fields of an object. It keeps a field if the managed fields
// show the author as its owner.
func DropAssigned(o *unstructured.Unstructured) {
	dropUnlessChosen := func(p path) {
		if !chosen(o, p) {
			p.remove(o.Object)
		}
	}
	switch kind := o.GroupVersionKind().GroupKind(); kind {
	case schema.GroupKind{Kind: "Service"}:
		if valueAt(o, "spec", "clusterIP") != "None" { // a headless Service stays headless
			dropUnlessChosen(path{"spec", "clusterIP"})
			dropUnlessChosen(path{"spec", "clusterIPs"})
		}
		dropUnlessChosen(path{"spec", "healthCheckNodePort"})
		ports, _ := valueAt(o, "spec", "ports").([]any)
		for _, port := range ports {
			if fields, ok := port.(map[string]any); ok && !chosen(o, portPath(fields)) {
				delete(fields, "nodePort")
			}
		}
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		dropUnlessChosen(path{"spec", "volumeName"})
	case schema.GroupKind{Kind: "PersistentVolume"}:
		keepClaim(o)
	default:
		for _, p := range certificatesOf(o) {
			if !authored(o, p) {
				p.remove(o.Object)
			}
		}
	}
}

// portPath returns the path of the node port of a port.
func portPath(port map[string]any) path {
	protocol := port["protocol"]
	if protocol == nil {
		protocol = "TCP"
	}
	return path{"spec", "ports", entry{"port": port["port"], "protocol": protocol}, "nodePort"}
}

// keepClaim keeps the spec.claimRef of an author, without the identity of the bound object.
func keepClaim(o *unstructured.Unstructured) {
	claim, _ := valueAt(o, "spec", "claimRef").(map[string]any)
	if _, provisioned := o.GetAnnotations()[annotationProvisioned]; provisioned || !chosen(o, path{"spec", "claimRef", "name"}) {
		path{"spec", "claimRef"}.remove(o.Object)
		return
	}
	delete(claim, "uid")
	delete(claim, "resourceVersion")
}

// chosen reports whether another manager than an assigner owns the field.
func chosen(o *unstructured.Unstructured, p path) bool {
	return p.ownedBy(o, func(manager string) bool { return !slices.Contains(assigners, manager) })
}

// certificatesOf returns the paths of the certificates of an object.
func certificatesOf(o *unstructured.Unstructured) []path {
	switch o.GetKind() {
	case "APIService":
		return []path{{"spec", "caBundle"}}
	case "CustomResourceDefinition":
		return []path{{"spec", "conversion", "webhook", "clientConfig", "caBundle"}}
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		var paths []path
		webhooks, _ := o.Object["webhooks"].([]any)
		for _, webhook := range webhooks {
			if fields, ok := webhook.(map[string]any); ok {
				paths = append(paths, path{"webhooks", entry{"name": fields["name"]}, "clientConfig", "caBundle"})
			}
		}
		return paths
	}
	return nil
}

// authored reports whether one manager wrote the address of a server and its certificate. An
// injector writes only the certificate.
func authored(o *unstructured.Unstructured, certificate path) bool {
	for _, managed := range o.GetManagedFields() {
		var fields map[string]any
		if managed.FieldsV1 == nil || json.Unmarshal(managed.FieldsV1.GetRawBytes(), &fields) != nil || !certificate.within(fields) {
			continue
		}
		for _, name := range []any{"service", "url"} {
			if (append(slices.Clone(certificate[:len(certificate)-1]), name)).within(fields) {
				return true
			}
		}
	}
	return false
}
