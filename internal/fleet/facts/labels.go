package facts

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

// The domains of labels from facts. A list has a label with the value true per entry, such as
// zones.facts.muster/eu-1a.
const (
	labelDomain  = "facts.muster"
	customDomain = "custom." + labelDomain
	present      = "true"
)

// maxLabels bounds the labels from the facts of one member.
const maxLabels = 64

// labelled lists the facts of the agent that can become labels. The bool marks lists.
var labelled = map[string]bool{
	Provider: false, Region: false, Distribution: false, Zones: true, Architectures: true, NodePools: true, ExtendedResources: true,
}

// kubernetesVersion is the name for the label with the minor version, such as v1.36.
const kubernetesVersion = "kubernetes-version"

// Problem returns the fault in a list of facts for labels, or "".
func Problem(wanted []string) string {
	for _, name := range wanted {
		if _, own := labelled[prefix+name]; !own && name != kubernetesVersion && !Admits(name, present) {
			return "no fact of a member has the name " + name + ": choose provider, region, zones, distribution, architectures, node-pools, " +
				"extended-resources, kubernetes-version, or a custom fact"
		}
	}
	return ""
}

// Wanted splits a comma-separated list of facts.
func Wanted(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// Labels returns the labels of the wanted facts, from the properties reported by a member. It omits
// facts that are not valid labels.
func Labels(wanted []string, properties map[string]clusterv1beta1.PropertyValue) map[string]string {
	labels := map[string]string{}
	add := func(key, value string) {
		if len(labels) < maxLabels && len(validation.IsQualifiedName(key)) == 0 && len(validation.IsValidLabelValue(value)) == 0 {
			labels[key] = value
		}
	}
	for _, name := range slices.Sorted(slices.Values(wanted)) {
		list, own := labelled[prefix+name]
		value := properties[prefix+name].Value
		switch {
		case name == kubernetesVersion:
			value, own = minor(properties[KubernetesVersion].Value), true
		case !own:
			value = properties[name].Value
		}
		switch {
		case value == "":
		case !own && Admits(name, value):
			add(customDomain+"/"+name, value)
		case list:
			for entry := range strings.SplitSeq(value, ",") {
				resource, _, _ := strings.Cut(entry, "=")
				add(name+"."+labelDomain+"/"+strings.ReplaceAll(resource, "/", "."), present)
			}
		case own:
			add(labelDomain+"/"+name, value)
		}
	}
	return labels
}

// minor returns the minor version of a version of Kubernetes.
func minor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// IsLabel reports whether a label is in a domain of facts.
func IsLabel(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == labelDomain || strings.HasSuffix(domain, "."+labelDomain)
}
