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

// upstream lists every upstream field, as path:type (wire facts §1.2 to §1.9 and §1.11 and, for the
// report, kubefleet §1.5), and all of a ClusterProfile. What can be a number or a text has no type.
// Fields of core types (tolerations, affinity, resources) are listed by their first level only.
var upstream = map[string]string{
	"fleet.cattle.io_policies.yaml": `
		requireServiceAccount:boolean allowedServiceAccounts:array allowNamespaceCreation:boolean allowedDownstreamResources:array
		gitRepo.defaultServiceAccount:string gitRepo.defaultClientSecretName:string gitRepo.allowedClientSecretNames:array
		gitRepo.allowedRepoPatterns:array helmOp.defaultServiceAccount:string helmOp.defaultHelmSecretName:string
		helmOp.allowedHelmSecretNames:array helmOp.allowedHelmRepoPatterns:array helmOp.allowedChartPatterns:array`,
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
	"fleet.cattle.io_bundles.yaml": `
		spec.paused:boolean spec.rolloutStrategy:object spec.rolloutStrategy.maxUnavailable: spec.rolloutStrategy.maxUnavailablePartitions:
		spec.rolloutStrategy.autoPartitionSize: spec.rolloutStrategy.autoPartitionThreshold:integer spec.rolloutStrategy.maxNew:integer
		spec.rolloutStrategy.partitions:array spec.rolloutStrategy.partitions[].name:string spec.rolloutStrategy.partitions[].maxUnavailable:
		spec.resources:array spec.resources[].name:string spec.resources[].content:string spec.resources[].encoding:string
		spec.targetCustomizationMode:string spec.targets:array spec.targets[].name:string spec.targets[].doNotDeploy:boolean
		spec.targetRestrictions:array spec.targetRestrictions[].name:string spec.dependsOn:array spec.dependsOn[].name:string
		spec.dependsOn[].selector:object spec.dependsOn[].acceptedStates:array spec.contentsId:string spec.helmOpOptions:object
		spec.valuesHash:string spec.targets[].clusterName:string spec.targets[].clusterSelector:object spec.targets[].clusterGroup:string
		spec.targets[].clusterGroupSelector:object spec.targetRestrictions[].clusterName:string
		spec.targetRestrictions[].clusterSelector:object spec.targetRestrictions[].clusterGroup:string
		spec.targetRestrictions[].clusterGroupSelector:object spec.rolloutStrategy.partitions[].clusterName:string
		spec.rolloutStrategy.partitions[].clusterSelector:object spec.rolloutStrategy.partitions[].clusterGroup:string
		spec.rolloutStrategy.partitions[].clusterGroupSelector:object status.conditions:array status.conditions[].type:string
		status.conditions[].status:string status.conditions[].lastUpdateTime:string status.conditions[].lastTransitionTime:string
		status.conditions[].reason:string status.conditions[].message:string status.summary:object status.summary.notReady:integer
		status.summary.waitApplied:integer status.summary.errApplied:integer status.summary.outOfSync:integer status.summary.modified:integer
		status.summary.ready:integer status.summary.pending:integer status.summary.desiredReady:integer status.summary.nonReadyResources:array
		status.summary.nonReadyResources[].name:string status.summary.nonReadyResources[].bundleState:string
		status.summary.nonReadyResources[].message:string status.summary.nonReadyResources[].modifiedStatus:array
		status.summary.nonReadyResources[].nonReadyStatus:array status.newlyCreated:integer status.unavailable:integer
		status.unavailablePartitions:integer status.maxUnavailable:integer status.maxUnavailablePartitions:integer status.partitions:array
		status.display:object status.display.readyClusters:string status.display.state:string status.resourceKey:array
		status.ociReference:string status.observedGeneration:integer status.resourcesSha256Sum:string` + below("spec", options) +
		below("spec.targets[]", options),
	"fleet.cattle.io_bundledeployments.yaml": `
		spec.paused:boolean spec.stagedOptions:object spec.stagedDeploymentID:string spec.options:object spec.deploymentID:string
		spec.dependsOn:array spec.correctDrift:object spec.ociContents:boolean spec.helmChartOptions:object spec.valuesHash:string
		spec.downstreamResourcesGeneration:integer spec.offSchedule:boolean spec.waitingForValues:boolean status.conditions:array
		status.conditions[].type:string status.conditions[].status:string status.conditions[].lastUpdateTime:string
		status.conditions[].lastTransitionTime:string status.conditions[].reason:string status.conditions[].message:string
		status.appliedDeploymentID:string status.release:string status.ready:boolean status.nonModified:boolean status.nonReadyStatus:array
		status.modifiedStatus:array status.modifiedStatus[].kind:string status.modifiedStatus[].apiVersion:string
		status.modifiedStatus[].namespace:string status.modifiedStatus[].name:string status.modifiedStatus[].missing:boolean
		status.modifiedStatus[].exist:boolean status.modifiedStatus[].delete:boolean status.modifiedStatus[].patch:string
		status.incompleteState:boolean status.display:object status.display.deployed:string status.display.monitored:string
		status.display.state:string status.syncGeneration:integer status.resources:array status.resourceCounts:object
		status.downstreamResourcesGeneration:integer status.resourceCounts.ready:integer status.resourceCounts.desiredReady:integer
		status.resourceCounts.waitApplied:integer status.resourceCounts.modified:integer status.resourceCounts.orphaned:integer
		status.resourceCounts.missing:integer status.resourceCounts.unknown:integer status.resourceCounts.notReady:integer` +
		below("spec.options", options) + below("spec.stagedOptions", options),
	"fleet.cattle.io_contents.yaml":                "content:string sha256sum:string status.referenceCount:integer",
	"fleet.cattle.io_bundlenamespacemappings.yaml": "bundleSelector:object namespaceSelector:object",
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
	"placement.kubernetes-fleet.io_clusterresourceplacements.yaml": upstreamPlacement,
	"placement.kubernetes-fleet.io_resourceplacements.yaml":        upstreamPlacement,
	"placement.kubernetes-fleet.io_works.yaml": `
		spec.workload:object spec.workload.manifests:array spec.applyStrategy:object status.conditions:array status.manifestConditions:array
		status.manifestConditions[].identifier:object status.manifestConditions[].identifier.ordinal:integer
		status.manifestConditions[].identifier.group:string status.manifestConditions[].identifier.version:string
		status.manifestConditions[].identifier.kind:string status.manifestConditions[].identifier.resource:string
		status.manifestConditions[].identifier.namespace:string status.manifestConditions[].identifier.name:string
		status.manifestConditions[].conditions:array status.manifestConditions[].driftDetails:object
		status.manifestConditions[].driftDetails.observedInMemberClusterGeneration:integer
		status.manifestConditions[].driftDetails.firstDriftedObservedTime:string status.manifestConditions[].driftDetails.observedDrifts:array
		status.manifestConditions[].driftDetails.observedDrifts[].path:string
		status.manifestConditions[].driftDetails.observedDrifts[].valueInHub:string
		status.manifestConditions[].driftDetails.observedDrifts[].valueInMember:string
		status.manifestConditions[].diffDetails:object`,
	"placement.kubernetes-fleet.io_clusterresourceplacementstatuses.yaml": below("sourceStatus", `
		selectedResources:array observedResourceIndex:string placementStatuses:array conditions:array`) + " lastUpdatedTime:string",
	"placement.kubernetes-fleet.io_clusterresourceoverrides.yaml": upstreamOverride + " spec.clusterResourceSelectors:array" +
		below("spec.clusterResourceSelectors[]", selected),
	"placement.kubernetes-fleet.io_resourceoverrides.yaml": upstreamOverride + " spec.resourceSelectors:array" +
		below("spec.resourceSelectors[]", selected),
	"placement.kubernetes-fleet.io_appliedworks.yaml": `
		spec.workName:string spec.workNamespace:string status.appliedResources:array`,
	"multicluster.x-k8s.io_clusterprofiles.yaml": `
		spec.displayName:string spec.clusterManager:object spec.clusterManager.name:string status.conditions:array status.version:object
		status.version.kubernetes:string status.properties:array status.properties[].name:string status.properties[].value:string
		status.properties[].lastObservedTime:string status.accessProviders:array status.accessProviders[].name:string
		status.accessProviders[].cluster:object status.credentialProviders:array status.credentialProviders[].name:string
		status.credentialProviders[].cluster:object`,
}

// options are the fields of BundleDeploymentOptions, which stand in several places.
const options = `
		yaml:object yaml.overlays:array kustomize:object kustomize.dir:string defaultNamespace:string namespace:string helm:object
		helm.chart:string helm.repo:string helm.releaseName:string helm.version:string helm.timeoutSeconds:integer helm.maxHistory:integer
		helm.values:object helm.templateValues:object helm.valuesFrom:array helm.valuesFiles:array helm.force:boolean
		helm.takeOwnership:boolean helm.waitForJobs:boolean helm.atomic:boolean helm.disablePreProcess:boolean helm.disableDNS:boolean
		helm.skipSchemaValidation:boolean helm.disableDependencyUpdate:boolean serviceAccount:string createNamespace:boolean
		forceSyncGeneration:integer diff:object diff.comparePatches:array keepResources:boolean deleteNamespace:boolean ignore:object
		ignore.conditions:array correctDrift:object correctDrift.enabled:boolean correctDrift.force:boolean
		correctDrift.keepFailHistory:boolean namespaceLabels:object namespaceAnnotations:object deleteCRDResources:boolean
		downstreamResources:array downstreamResources[].kind:string downstreamResources[].name:string overwrites:array
		allowedTargetNamespaceSelector:object`

func below(path, fields string) string {
	return " " + path + "." + strings.Join(strings.Fields(fields), " "+path+".")
}

// upstreamPlacement lists the fields that both kinds of placements have (kubefleet §4.1).
const upstreamPlacement = `
		spec.resourceSelectors:array spec.resourceSelectors[].group:string spec.resourceSelectors[].version:string
		spec.resourceSelectors[].kind:string spec.resourceSelectors[].name:string spec.resourceSelectors[].labelSelector:object
		spec.resourceSelectors[].selectionScope:string spec.policy:object spec.policy.placementType:string spec.policy.clusterNames:array
		spec.policy.numberOfClusters:integer spec.policy.affinity.clusterAffinity:object
		spec.policy.affinity.clusterAffinity.requiredDuringSchedulingIgnoredDuringExecution.clusterSelectorTerms[].labelSelector:object
		spec.policy.affinity.clusterAffinity.requiredDuringSchedulingIgnoredDuringExecution.clusterSelectorTerms[].propertySelector.` +
	`matchExpressions[].name:string
		spec.policy.affinity.clusterAffinity.requiredDuringSchedulingIgnoredDuringExecution.clusterSelectorTerms[].propertySelector.` +
	`matchExpressions[].operator:string
		spec.policy.affinity.clusterAffinity.requiredDuringSchedulingIgnoredDuringExecution.clusterSelectorTerms[].propertySelector.` +
	`matchExpressions[].values:array
		spec.policy.affinity.clusterAffinity.preferredDuringSchedulingIgnoredDuringExecution[].weight:integer
		spec.policy.affinity.clusterAffinity.preferredDuringSchedulingIgnoredDuringExecution[].preference.labelSelector:object
		spec.policy.affinity.clusterAffinity.preferredDuringSchedulingIgnoredDuringExecution[].preference.propertySorter.name:string
		spec.policy.affinity.clusterAffinity.preferredDuringSchedulingIgnoredDuringExecution[].preference.propertySorter.sortOrder:string
		spec.policy.topologySpreadConstraints[].maxSkew:integer spec.policy.topologySpreadConstraints[].topologyKey:string
		spec.policy.topologySpreadConstraints[].whenUnsatisfiable:string spec.policy.tolerations[].key:string
		spec.policy.tolerations[].operator:string spec.policy.tolerations[].value:string spec.policy.tolerations[].effect:string
		spec.strategy.type:string spec.strategy.rollingUpdate.maxUnavailable: spec.strategy.rollingUpdate.maxSurge:
		spec.strategy.rollingUpdate.unavailablePeriodSeconds:integer spec.strategy.applyStrategy.type:string
		spec.strategy.applyStrategy.whenToApply:string spec.strategy.applyStrategy.whenToTakeOver:string
		spec.strategy.applyStrategy.comparisonOption:string spec.strategy.applyStrategy.allowCoOwnership:boolean
		spec.strategy.deleteStrategy.propagationPolicy:string spec.strategy.reportBackStrategy:object spec.revisionHistoryLimit:integer
		spec.statusReportingScope:string status.selectedResources:array status.observedResourceIndex:string
		status.placementStatuses:array status.placementStatuses[].clusterName:string status.placementStatuses[].conditions:array
		status.placementStatuses[].failedPlacements:array status.placementStatuses[].driftedPlacements:array
		status.placementStatuses[].diffedPlacements:array status.placementStatuses[].applicableResourceOverrides:array
		status.placementStatuses[].applicableClusterResourceOverrides:array status.placementStatuses[].failedPlacements[].envelope:object
		status.selectedResources[].envelope:object status.conditions:array`

// upstreamOverride lists the fields of both kinds of overrides, and selected lists the fields of
// their selections, by KubeFleet's API reference.
const (
	upstreamOverride = `
		spec.placement:object spec.placement.name:string spec.placement.scope:string spec.policy:object spec.policy.overrideRules:array
		spec.policy.overrideRules[].clusterSelector:object spec.policy.overrideRules[].clusterSelector.clusterSelectorTerms:array
		spec.policy.overrideRules[].clusterSelector.clusterSelectorTerms[].labelSelector:object spec.policy.overrideRules[].overrideType:string
		spec.policy.overrideRules[].jsonPatchOverrides:array spec.policy.overrideRules[].jsonPatchOverrides[].op:string
		spec.policy.overrideRules[].jsonPatchOverrides[].path:string spec.policy.overrideRules[].jsonPatchOverrides[].value:`
	selected = "group:string version:string kind:string name:string"
)

// upstreamBeta lists the fields of kinds that upstream has in v1beta1 only.
var upstreamBeta = map[string]string{
	"placement.kubernetes-fleet.io_resourceenvelopes.yaml":        "data:object",
	"placement.kubernetes-fleet.io_clusterresourceenvelopes.yaml": "data:object",
	"placement.kubernetes-fleet.io_clusterresourceplacementevictions.yaml": "spec.placementName:string spec.clusterName:string " +
		"status.conditions:array",
	"placement.kubernetes-fleet.io_clusterresourceplacementdisruptionbudgets.yaml": "spec.maxUnavailable: spec.minAvailable:",
}

func TestKindsThatUpstreamHasInOneVersionAreServedInThatOnly(t *testing.T) {
	for file, list := range upstreamBeta {
		versions := slices.DeleteFunc(read(t, file).Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == "v1alpha1" && v.Deprecated && !v.Storage // for what hubs of KubeFleet stored before July 2025
		})
		if len(versions) != 1 || versions[0].Name != "v1beta1" {
			t.Errorf("%s is served in %d versions, first %s", file, len(versions), versions[0].Name)
		}
		fields := map[string]bool{}
		collect(fields, "", versions[0].Schema.OpenAPIV3Schema)
		for _, field := range strings.Fields(list) {
			if !fields[field] {
				t.Errorf("%s: %s is missing or has another type", file, field)
			}
		}
	}
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
			"Credential .status.credential.kind", "Expires .status.credential.expires", "Key .status.credential.key",
		},
		"fleet.cattle.io_clusterregistrations.yaml": {
			"State .status.state", "Cluster-Name .status.clusterName", "Age .metadata.creationTimestamp", "Message .status.message",
			"Labels .spec.clusterLabels",
		},
		"fleet.cattle.io_clusterregistrationtokens.yaml": {
			"Secret-Name .status.secretName", "Expires .status.expires", "Registrations .status.used", "Last-Used .status.lastUsed",
			"Age .metadata.creationTimestamp",
		},
		"fleet.cattle.io_bundles.yaml": {"BundleDeployments-Ready .status.display.readyClusters",
			`Status .status.conditions[?(@.type=="Ready")].message`},
		"fleet.cattle.io_bundledeployments.yaml": {
			"Deployed .status.display.deployed", "Monitored .status.display.monitored", `Status .status.conditions[?(@.type=="Ready")].message`,
		},
		"fleet.cattle.io_clustergroups.yaml": {
			"Clusters-Ready .status.display.readyClusters", "Bundles-Ready .status.display.readyBundles",
			`Status .status.conditions[?(@.type=="Ready")].message`,
		},
		"muster-fleet.github.io_auditentries.yaml": {
			"Time .spec.time", "Reason .spec.reason", "Object .spec.object.name", "Who .spec.who", "Token .spec.token", "Key .spec.key",
			"Message .spec.message",
		},
		"cluster.kubernetes-fleet.io_internalmemberclusters.yaml": {"Age .metadata.creationTimestamp"},
		"cluster.kubernetes-fleet.io_memberclusters.yaml": {
			`Joined .status.conditions[?(@.type=="Joined")].status`, "Age .metadata.creationTimestamp",
			`Member-Agent-Last-Seen .status.agentStatus[?(@.type=="MemberAgent")].lastReceivedHeartbeat`,
			`Node-Count .status.properties.kubernetes-fleet\.io/node-count.value`, "Available-CPU .status.resourceUsage.available.cpu",
			"Available-Memory .status.resourceUsage.available.memory", "Allocatable-CPU .status.resourceUsage.allocatable.cpu",
			"Allocatable-Memory .status.resourceUsage.allocatable.memory",
		},
		"placement.kubernetes-fleet.io_clusterresourceplacements.yaml": {
			"Gen .metadata.generation", `Scheduled .status.conditions[?(@.type=="ClusterResourcePlacementScheduled")].status`,
			`Scheduled-Gen .status.conditions[?(@.type=="ClusterResourcePlacementScheduled")].observedGeneration`,
			`Applied .status.conditions[?(@.type=="ClusterResourcePlacementApplied")].status`,
			`Available .status.conditions[?(@.type=="ClusterResourcePlacementAvailable")].status`,
			`Available-Gen .status.conditions[?(@.type=="ClusterResourcePlacementAvailable")].observedGeneration`,
			"Members .status.members", "Age .metadata.creationTimestamp", "Status .status.message",
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
	for file := range upstream {
		if !strings.Contains(file, ".kubernetes-fleet.io") {
			continue
		}
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
