package cli

import (
	"errors"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-fleet/muster/api/crds"
	"github.com/muster-fleet/muster/internal/redaction"
)

// planted is a secret that must not reach a support bundle.
const planted = "pl4nted"

// harmless lists the texts kept as they are, by the reason: the ends of their paths.
var harmless = map[string]string{
	"what something is called": `name namespace kind apiVersion apiGroup group version resource uid type key clusterName targetCluster
		clusterNames[] clusters[] clusterGroup placementName
		releaseName repo chart dir serviceAccount namespaces[] defaultNamespace workName workNamespace account accountUID agentNamespace
		clientID clusterID hubTerm.cluster displayName containerName
		perClusterState.ready[] perClusterState.waitApplied[] perClusterState.pending[] perClusterState.errApplied[] perClusterState.notReady[]
		perClusterState.missing[] perClusterState.unknown[] perClusterState.orphaned[] perClusterState.modified[] resources[].id
		nonReadyClusters[] nonReadyNodeNames[] readyNodeNames[] sample sampleNode targetStage stageName approvalRequestName placementUID
		stagedRolloutStrategyName parentStageRollout volumeName secretName kubeConfigSecret
		namespaceCreationForbiddenBy defaultServiceAccount allowedServiceAccounts[] allowedTargetNamespaces[]
		defaultClientSecretName allowedClientSecretNames[] defaultHelmSecretName allowedHelmSecretNames[]
		initGates[].bundle initGates[].condition
		GitRepo.spec.branch GitRepo.spec.revision GitRepo.spec.paths[] GitRepo.spec.bundles[].base GitRepo.spec.bundles[].options
		clientSecretName helmSecretName helmSecretNameForPaths ociRegistrySecret webhookSecret targetNamespace
		kubeConfigSecretNamespace ociReference privateRepoURL agentPrivateRepoURL apiServerURL requestUID topologyKey sortingLabelKey
		applicableClusterResourceOverrides[]
		AuditEntry.spec.address AuditEntry.spec.identity AuditEntry.spec.displaced.identity AuditEntry.spec.displaced.request
		AuditEntry.spec.token AuditEntry.spec.who
		BundleDeployment.status.release Cluster.spec.agentResources.claims[].request divisor`,
	"labels, and what selects by them": `labels.KEY matchLabels.KEY namespaceLabels.KEY clusterLabels.KEY matchExpressions[].values[]
		matchFields[].values[] matchLabelKeys[] mismatchLabelKeys[]
		allowedLabelKeys[] droppedLabels[] operator effect tolerations[].value agentTolerations[].value taints[].value acceptedStates[]
		conditions[].KEY approvalExpression`,
	"where in an object something is": `path fieldPath jsonPointers[] op`,
	"how far something has come": `status state agentState bundleState deployed readyBundles readyClusters readyBundleDeployments readyNodes
		members monitored approvedReason history[].cause ClusterRegistrationToken.status.used resourceErrors[]`,
	"when something is, or was": `createdAt lastTransitionTime lastUpdateTime waitTime ttl garbageCollectionInterval
		pollingInterval imageScanInterval
		Schedule.spec.schedule
		Schedule.spec.duration Schedule.spec.location`,
	"how much there is": `allocatable.KEY available.KEY capacity.KEY limits.KEY requests.KEY maxUnavailable maxUnavailablePartitions
		minAvailable maxSurge maxConcurrency autoPartitionSize
		properties.KEY.value`,
	"how something is to be done": `targetCustomizationMode helm.crds agentTLSMode preemptionPolicy features[]
		Bundle.spec.resources[].encoding HelmOp.spec.resources[].encoding`,
	"which version it is": `commit pollingCommit webhookCommit kubernetes kubernetesVersion agentVersion firstSeenVersion
		observedResourceIndex resourceSnapshotIndex resourceSnapshotName resourceSnapshotIndexUsed policySnapshotIndexUsed resourceIndexes[]
		deploymentID appliedDeploymentID stagedDeploymentID contentsId
		secretVersion`,
	"a digest": `agentAffinityHash agentEnvVarsHash agentResourcesHash agentSchedulingCustomizationHash
		agentTolerationsHash apiServerCAHash policyHash resourceHash secretHash settingsHash valuesHash sha256sum resourcesSha256Sum`,
	"public keys, and what is signed":                  `agentKey answerKey hubTerm.hub signature apiServerCA hubCAs[] caBundle`,
	"the Work that brought each namespace of a member": `status.namespaces.KEY`,
}

// harmlessOfKubernetes lists the harmless texts in kinds of Kubernetes: how and where Pods run,
// and the scrubbed ConfigMaps of a hub or an agent.
const harmlessOfKubernetes = `accessModes[] action add[] audience bindMountOptions[] cachingMode certificateChainPath claimName component
		conditionType
		containerID containers[] credentialBundlePath datasetName datasetUUID devicePath directory diskName diskURI dnsPolicy driver
		drop[] endpoints fsGroupChangePolicy fsType gateway gmsaCredentialSpecName health host hostIP hostname hostnameOverride
		hostnames[] image imageID imagePullPolicy imageRef initiatorName ip iqn iscsiInterface keyPath keyType keyring level
		localhostProfile medium mode monitors[] mountPath mountPropagation nameservers[] nodeAffinityPolicy nodeName nodeSelector.KEY
		nodeTaintsPolicy nominatedNodeName pdID pdName phase podGroupName podIP pool portals[] prefix priorityClassName procMount
		protectionDomain protocol pullPolicy qosClass recursiveReadOnly reference registry reportingComponent reportingInstance
		repository request requestName resize resourceClaimName resourceClaimTemplateName resourceID resourceName resourceVersion
		restartPolicy revision role runAsUserName runtimeClassName schedulerName scheme seLinuxChangePolicy searches[] secretFile
		server service serviceAccountName shareName signerName stopSignal storageClassName storageMode storagePolicyID
		storagePolicyName storagePool subPath subPathExpr subdomain supplementalGroupsPolicy system targetContainerName targetPortal
		targetWWNs[] tenant terminationMessagePath terminationMessagePolicy user volume volumeAttributesClassName volumeID volumeMode
		volumeNamespace
		volumePath whenUnsatisfiable workingDir wwids[] holderIdentity preferredHolder strategy data.KEY`

// kubernetesOwn are these kinds.
var kubernetesOwn = map[string]client.Object{"Pod": &corev1.Pod{}, "Event": &corev1.Event{}, "ConfigMap": &corev1.ConfigMap{},
	"Secret":         &corev1.Secret{},
	"ServiceAccount": &corev1.ServiceAccount{}, "Deployment": &appsv1.Deployment{}, "Lease": &coordinationv1.Lease{}}

// sentences are texts with quoted values to remove.
const sentences = `message message[] reason description warning failure`

// plant returns a value of a schema with a secret in each free text.
func plant(s *apiextensionsv1.JSONSchemaProps) any {
	switch {
	case s.XIntOrString:
		return planted
	case s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields && len(s.Properties) == 0:
		return map[string]any{"whatever": planted, "deep": []any{map[string]any{"whatever": planted}}}
	case len(s.Enum) > 0: // one of a few
		return strings.Trim(string(s.Enum[0].Raw), `"`)
	case s.Type == "string" && len(s.Enum) == 0 && s.Format != "date-time":
		return planted
	case s.Type == "array":
		return []any{plant(s.Items.Schema)}
	case s.Type == "object" && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return map[string]any{"KEY": plant(s.AdditionalProperties.Schema)}
	case s.Type == "object":
		o := map[string]any{}
		for name, property := range s.Properties {
			if value := plant(&property); value != nil {
				o[name] = value
			}
		}
		return o
	}
	return nil
}

// left adds the paths with a remaining secret.
func left(value any, path string, found map[string]bool) {
	switch value := value.(type) {
	case string:
		if strings.Contains(value, planted) {
			found[path] = true
		}
	case []any:
		for _, one := range value {
			left(one, path+"[]", found)
		}
	case map[string]any:
		for key, one := range value {
			left(one, path+"."+key, found)
		}
	}
}

// fill plants a secret in each text of a type of Go.
func fill(v reflect.Value) {
	switch v.Interface().(type) {
	case metav1.Time, metav1.MicroTime, resource.Quantity, intstr.IntOrString, metav1.ObjectMeta, metav1.TypeMeta, metav1.FieldsV1:
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(planted)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(planted))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		key.SetString("KEY")
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	default: // numbers and booleans hold no text
	}
}

// collected lists the objects of a support bundle, with a secret in each text.
func collected(t *testing.T) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	add := func(kind string, o map[string]any) {
		o["kind"], o["metadata"] = kind,
			map[string]any{"name": planted, "labels": map[string]any{"KEY": planted}, "managedFields": []any{map[string]any{"manager": planted}},
				"annotations": map[string]any{
					"KEY": planted, "example.com/note": planted, "kubectl.kubernetes.io/last-applied-configuration": planted,
					"objectset.rio.cattle.io/applied": planted,
				}}
		all[kind] = o
	}
	names, err := fs.Glob(crds.FS, "*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatal(err)
	}
	for _, name := range names {
		var crd apiextensionsv1.CustomResourceDefinition
		text, err := fs.ReadFile(crds.FS, name)
		if err := errors.Join(err, yaml.Unmarshal(text, &crd)); err != nil {
			t.Fatal(err)
		}
		for _, version := range crd.Spec.Versions {
			add(crd.Spec.Names.Kind, plant(version.Schema.OpenAPIV3Schema).(map[string]any))
		}
	}
	for kind, example := range kubernetesOwn {
		o := example.DeepCopyObject().(client.Object)
		fill(reflect.ValueOf(o).Elem())
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		add(kind, object)
	}
	return all
}

// isOf reports whether a path ends with one of these paths.
func isOf(path string, ends string) bool {
	return slices.ContainsFunc(strings.Fields(ends), func(end string) bool { return path == end || strings.HasSuffix(path, "."+end) })
}

func TestOfNoKindOfObjectMoreIsHandedOnThanIsStated(t *testing.T) {
	for kind, object := range collected(t) {
		o, found := &unstructured.Unstructured{Object: object}, map[string]bool{}
		redaction.Object(o)
		left(o.Object, "", found)
		for _, path := range slices.Sorted(maps.Keys(found)) {
			path = kind + path
			if kubernetesOwn[kind] != nil && isOf(path, harmlessOfKubernetes) {
				continue
			}
			if !slices.ContainsFunc(slices.Collect(maps.Values(harmless)), func(ends string) bool { return isOf(path, ends) }) &&
				!isOf(path, sentences) {
				t.Errorf("%s is handed on: leave it out in redact, or say why it is harmless", path)
			}
		}
	}
}
