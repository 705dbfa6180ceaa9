package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	fleetfacts "github.com/muster-fleet/muster/internal/fleet/facts"
)

// traits are the facts of one node.
type traits struct {
	provider, region, zone, architecture, pool, instanceType, distribution string
}

// poolLabels name the node pool of a node, as clouds and autoscalers do.
var poolLabels = []string{
	"cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "kubernetes.azure.com/agentpool", "agentpool",
	"karpenter.sh/nodepool", "alpha.eksctl.io/nodegroup-name", "doks.digitalocean.com/node-pool", "k8s.scaleway.com/pool-name",
	"lke.linode.com/pool-id",
}

// distributionLabels are set by one distribution of Kubernetes each.
var distributionLabels = []struct{ label, distribution string }{
	{"kubernetes.azure.com/cluster", "aks"}, {"cloud.google.com/gke-nodepool", "gke"}, {"eks.amazonaws.com/nodegroup", "eks"},
	{"node.openshift.io/os_id", "openshift"}, {"microk8s.io/cluster", "microk8s"}, {"doks.digitalocean.com/node-pool", "doks"},
}

// distributionVersions are parts of versions, each typical of one distribution of Kubernetes.
var distributionVersions = []struct{ part, distribution string }{
	{"+k3s", "k3s"}, {"+rke2", "rke2"}, {"+k0s", "k0s"}, {"-eks-", "eks"}, {"-gke.", "gke"}, {"+vmware", "tanzu"},
}

// readLabels lists the needed labels of a node.
var readLabels = append(append([]string{
	corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaRegion, corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone,
	corev1.LabelInstanceTypeStable, corev1.LabelInstanceType,
}, poolLabels...), func() (keys []string) {
	for _, d := range distributionLabels {
		keys = append(keys, d.label)
	}
	return keys
}()...)

// maxTrait bounds the reported part of a node's label, in bytes.
const maxTrait = 63

// traitsOf reads the facts of a node.
func traitsOf(o *corev1.Node) traits {
	first := func(keys ...string) string {
		for _, key := range keys {
			if value := o.Labels[key]; value != "" {
				return value[:min(len(value), maxTrait)]
			}
		}
		return ""
	}
	// The scheme of a provider ID is the provider, except where a distribution assigns IDs itself.
	provider, _, _ := strings.Cut(o.Spec.ProviderID, "://")
	t := traits{
		provider: provider[:min(len(provider), maxTrait)], region: first(corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaRegion),
		zone: first(corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone), architecture: o.Status.NodeInfo.Architecture,
		pool: first(poolLabels...), instanceType: first(corev1.LabelInstanceTypeStable, corev1.LabelInstanceType),
	}
	for _, d := range distributionLabels {
		if _, labelled := o.Labels[d.label]; labelled {
			t.distribution = d.distribution
			break
		}
	}
	switch {
	case provider == "kind":
		t.distribution = provider
	case strings.HasPrefix(o.Status.NodeInfo.OSImage, "Talos"):
		t.distribution = cmp.Or(t.distribution, "talos")
	case provider == "k3s" || provider == "rke2":
		t.provider = ""
	}
	return t
}

// maxCounted bounds the counted node pools and instance types, each.
const maxCounted = 16

// factsOf returns the facts of all nodes by name, except the distribution by version.
func factsOf(byName map[string]node, capacity corev1.ResourceList) map[string]string {
	lists := map[string]map[string]int{}
	count := func(fact, value string) {
		if value == "" {
			return
		}
		if lists[fact] == nil {
			lists[fact] = map[string]int{}
		}
		lists[fact][value]++
	}
	const instanceTypes = "instance types"
	for _, n := range byName {
		count(fleetfacts.Provider, n.traits.provider)
		count(fleetfacts.Region, n.traits.region)
		count(fleetfacts.Zones, n.traits.zone)
		count(fleetfacts.Architectures, n.traits.architecture)
		count(fleetfacts.NodePools, n.traits.pool)
		count(fleetfacts.Distribution, n.traits.distribution)
		count(instanceTypes, n.traits.instanceType)
	}
	reported := map[string]string{}
	for _, fact := range []string{fleetfacts.Zones, fleetfacts.Architectures, fleetfacts.NodePools} {
		reported[fact] = fleetfacts.List(slices.Sorted(maps.Keys(lists[fact])))
	}
	for _, fact := range []string{fleetfacts.Provider, fleetfacts.Region, fleetfacts.Distribution} {
		reported[fact] = mostFrequent(lists[fact])
	}
	for _, pool := range counted(lists[fleetfacts.NodePools]) {
		reported[fleetfacts.NodePoolCount(pool)] = fmt.Sprint(lists[fleetfacts.NodePools][pool])
	}
	for _, size := range counted(lists[instanceTypes]) {
		number := fmt.Sprint(lists[instanceTypes][size])
		reported[fleetfacts.InstanceTypeCount(size)] = number
		if reported[fleetfacts.Provider] == "azure" {
			reported[fleetfacts.SKUCount(size)] = number
		}
	}
	reported[fleetfacts.ExtendedResources] = fleetfacts.List(extended(capacity))
	maps.DeleteFunc(reported, func(_, value string) bool { return value == "" })
	if len(reported) == 0 {
		return nil
	}
	return reported
}

// mostFrequent returns the value of most nodes: the first by name of several.
func mostFrequent(numbers map[string]int) (most string) {
	for value, number := range numbers {
		if most == "" || number > numbers[most] || number == numbers[most] && value < most {
			most = value
		}
	}
	return most
}

// counted returns the values to report with their counts, the first by name.
func counted(numbers map[string]int) []string {
	names := slices.Sorted(maps.Keys(numbers))
	return names[:min(len(names), maxCounted)]
}

// extended lists the resources not defined by Kubernetes, such as GPUs, with their amounts.
func extended(capacity corev1.ResourceList) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(capacity)) {
		domain, _, qualified := strings.Cut(string(name), "/")
		if amount := capacity[name]; qualified && !amount.IsZero() && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io") {
			list = append(list, string(name)+"="+amount.String())
		}
	}
	return list
}

// distributionOf returns the distribution in a version of Kubernetes, or the nodes'.
func distributionOf(version, ofNodes string) string {
	for _, d := range distributionVersions {
		if strings.Contains(version, d.part) {
			return d.distribution
		}
	}
	return ofNodes
}
