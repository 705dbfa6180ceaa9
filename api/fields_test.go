// Package api_test holds what the API as a whole promises.
package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/muster-fleet/muster/api/crds"
)

// upstream lists every upstream field of the kinds that take part in registration, as path:type (wire facts §1.2 to §1.5 and, for the
// report, kubefleet §1.5), and all of a ClusterProfile. Fields of core types (tolerations, affinity, resources) are listed by their first level only.
var upstream = map[string]string{
	"fleet.cattle.io_clusterregistrationtokens.yaml": `
		spec.ttl:string status.expires:string status.secretName:string`,
	"fleet.cattle.io_clusterregistrations.yaml": `
		spec.clientID:string spec.clientRandom:string spec.clusterLabels:object status.clusterName:string status.granted:boolean`,
	"fleet.cattle.io_clusters.yaml": `
		spec.paused:boolean spec.clientID:string spec.kubeConfigSecret:string spec.kubeConfigSecretNamespace:string
		spec.redeployAgentGeneration:integer spec.agentEnvVars:array spec.agentNamespace:string spec.privateRepoURL:string
		spec.templateValues:object spec.agentTolerations:array spec.agentAffinity:object spec.agentResources:object spec.hostNetwork:boolean
		spec.agentSchedulingCustomization:object spec.agentSchedulingCustomization.priorityClass:object
		spec.agentSchedulingCustomization.priorityClass.value:integer spec.agentSchedulingCustomization.priorityClass.preemptionPolicy:string
		spec.agentSchedulingCustomization.podDisruptionBudget:object
		spec.agentSchedulingCustomization.podDisruptionBudget.minAvailable:string
		spec.agentSchedulingCustomization.podDisruptionBudget.maxUnavailable:string spec.agentPullSecrets:array
		status.conditions:array status.conditions[].type:string status.conditions[].status:string status.conditions[].lastUpdateTime:string
		status.conditions[].lastTransitionTime:string status.conditions[].reason:string status.conditions[].message:string
		status.namespace:string status.summary:object status.summary.notReady:integer status.summary.waitApplied:integer
		status.summary.errApplied:integer status.summary.outOfSync:integer status.summary.modified:integer status.summary.ready:integer
		status.summary.pending:integer status.summary.desiredReady:integer status.summary.nonReadyResources:array
		status.summary.nonReadyResources[].name:string status.summary.nonReadyResources[].bundleState:string
		status.summary.nonReadyResources[].message:string status.summary.nonReadyResources[].modifiedStatus:array
		status.summary.nonReadyResources[].nonReadyStatus:array
		status.resourceCounts:object status.resourceCounts.ready:integer status.resourceCounts.desiredReady:integer
		status.resourceCounts.waitApplied:integer status.resourceCounts.modified:integer status.resourceCounts.orphaned:integer
		status.resourceCounts.missing:integer status.resourceCounts.unknown:integer status.resourceCounts.notReady:integer
		status.readyGitRepos:integer status.desiredReadyGitRepos:integer status.readyHelmOps:integer status.desiredReadyHelmOps:integer
		status.agentEnvVarsHash:string status.agentAffinityHash:string status.agentResourcesHash:string status.agentTolerationsHash:string
		status.agentSchedulingCustomizationHash:string status.agentPrivateRepoURL:string status.agentHostNetwork:boolean
		status.agentDeployedGeneration:integer status.agentMigrated:boolean status.agentNamespaceMigrated:boolean
		status.cattleNamespaceMigrated:boolean status.agentConfigChanged:boolean status.apiServerURL:string status.apiServerCAHash:string
		status.agentTLSMode:string status.garbageCollectionInterval:string status.display:object status.display.readyBundles:string
		status.display.readyNodes:string status.display.sampleNode:string status.display.state:string status.agent:object
		status.agent.lastSeen:string status.agent.namespace:string status.agent.readyNodes:integer status.agent.nonReadyNodes:integer
		status.agent.readyNodeNames:array status.agent.nonReadyNodeNames:array status.agent.version:string
		status.scheduled:boolean status.activeSchedule:boolean`,
	"fleet.cattle.io_clustergroups.yaml": `
		spec.selector:object status.clusterCount:integer status.nonReadyClusterCount:integer status.nonReadyClusters:array
		status.conditions:array status.summary:object status.display:object status.display.readyClusters:string
		status.display.readyBundles:string status.display.state:string status.resourceCounts:object`,
	"cluster.kubernetes-fleet.io_memberclusters.yaml": `
		spec.identity:object spec.identity.kind:string spec.identity.name:string spec.identity.apiGroup:string spec.identity.namespace:string
		spec.heartbeatPeriodSeconds:integer spec.taints:array spec.taints[].key:string spec.taints[].value:string spec.taints[].effect:string
		spec.deleteOptions:object spec.deleteOptions.validationMode:string status.conditions:array status.properties:object
		status.resourceUsage:object status.resourceUsage.capacity:object status.resourceUsage.allocatable:object
		status.resourceUsage.available:object status.resourceUsage.observationTime:string status.namespaces:object
		status.agentStatus:array status.agentStatus[].type:string status.agentStatus[].conditions:array
		status.agentStatus[].lastReceivedHeartbeat:string`,
	"cluster.kubernetes-fleet.io_internalmemberclusters.yaml": `
		spec.state:string spec.heartbeatPeriodSeconds:integer status.conditions:array status.properties:object status.resourceUsage:object
		status.resourceUsage.capacity:object status.resourceUsage.allocatable:object status.resourceUsage.available:object
		status.resourceUsage.observationTime:string status.namespaces:object status.agentStatus:array status.agentStatus[].type:string
		status.agentStatus[].conditions:array status.agentStatus[].lastReceivedHeartbeat:string`,
	"multicluster.x-k8s.io_clusterprofiles.yaml": `
		spec.displayName:string spec.clusterManager:object spec.clusterManager.name:string status.conditions:array status.version:object
		status.version.kubernetes:string status.properties:array status.properties[].name:string status.properties[].value:string
		status.properties[].lastObservedTime:string status.accessProviders:array status.accessProviders[].name:string
		status.accessProviders[].cluster:object status.credentialProviders:array status.credentialProviders[].name:string
		status.credentialProviders[].cluster:object`,
}

func TestEveryUpstreamFieldIsThereWithItsType(t *testing.T) {
	for file, list := range upstream {
		for _, version := range read(t, file).Spec.Versions {
			fields := map[string]bool{}
			collect(fields, "", version.Schema.OpenAPIV3Schema)
			for _, field := range strings.Fields(list) {
				if !fields[field] {
					t.Errorf("%s %s: %s is missing or has another type", file, version.Name, field)
				}
			}
		}
	}
}

func TestColumns(t *testing.T) {
	for file, want := range map[string][]string{
		"fleet.cattle.io_clusters.yaml": {
			"Bundles-Ready .status.display.readyBundles", "Nodes-Ready .status.display.readyNodes", "Sample-Node .status.display.sampleNode",
			"Last-Seen .status.agent.lastSeen", `Status .status.conditions[?(@.type=="Ready")].message`,
		},
		"fleet.cattle.io_clusterregistrations.yaml": {
			"State .status.state", "Cluster-Name .status.clusterName", "Age .metadata.creationTimestamp", "Message .status.message",
		},
		"fleet.cattle.io_clusterregistrationtokens.yaml": {
			"Secret-Name .status.secretName", "Expires .status.expires", "Registrations .status.registrations", "Age .metadata.creationTimestamp",
		},
		"fleet.cattle.io_clustergroups.yaml": {
			"Clusters-Ready .status.display.readyClusters", "Bundles-Ready .status.display.readyBundles", `Status .status.conditions[?(@.type=="Ready")].message`,
		},
		"cluster.kubernetes-fleet.io_internalmemberclusters.yaml": {"Age .metadata.creationTimestamp"},
		"cluster.kubernetes-fleet.io_memberclusters.yaml": {
			`Joined .status.conditions[?(@.type=="Joined")].status`, "Age .metadata.creationTimestamp",
			`Member-Agent-Last-Seen .status.agentStatus[?(@.type=="MemberAgent")].lastReceivedHeartbeat`,
			`Node-Count .status.properties.kubernetes-fleet\.io/node-count.value`, "Available-CPU .status.resourceUsage.available.cpu",
			"Available-Memory .status.resourceUsage.available.memory", "Allocatable-CPU .status.resourceUsage.allocatable.cpu",
			"Allocatable-Memory .status.resourceUsage.allocatable.memory",
		},
	} {
		for _, version := range read(t, file).Spec.Versions {
			var got []string
			for _, column := range version.AdditionalPrinterColumns {
				got = append(got, column.Name+" "+column.JSONPath)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", file, version.Name, diff)
			}
		}
	}
}

func TestBothVersionsHaveTheSameFieldsAndV1beta1IsStored(t *testing.T) {
	for _, file := range []string{"cluster.kubernetes-fleet.io_internalmemberclusters.yaml", "cluster.kubernetes-fleet.io_memberclusters.yaml"} {
		fields := map[string][]string{}
		for _, version := range read(t, file).Spec.Versions {
			all := map[string]bool{}
			collect(all, "", version.Schema.OpenAPIV3Schema)
			for field := range all {
				fields[version.Name] = append(fields[version.Name], field)
			}
			slices.Sort(fields[version.Name])
			if version.Storage != (version.Name == "v1beta1") || !version.Served {
				t.Errorf("%s %s: served %t, stored %t", file, version.Name, version.Served, version.Storage)
			}
		}
		if diff := cmp.Diff(fields["v1beta1"], fields["v1"]); diff != "" || len(fields["v1"]) == 0 {
			t.Errorf("%s (-v1beta1 +v1):\n%s", file, diff)
		}
	}
}

// TestUninstallKeepsTheFleet: helm leaves what has this annotation alone.
func TestUninstallKeepsTheFleet(t *testing.T) {
	files, err := crds.FS.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if got := read(t, file.Name()).Annotations["helm.sh/resource-policy"]; got != "keep" {
			t.Errorf("%s: resource policy %q, want keep", file.Name(), got)
		}
	}
}

func read(t *testing.T, file string) apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := crds.FS.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

// collect lists all fields below a schema as path:type.
func collect(into map[string]bool, path string, schema *apiextensionsv1.JSONSchemaProps) {
	if path != "" {
		into[fmt.Sprintf("%s:%s", path, schema.Type)] = true
		path += "."
	}
	for name, property := range schema.Properties {
		collect(into, path+name, &property)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		collect(into, strings.TrimSuffix(path, ".")+"[]", schema.Items.Schema)
	}
}
