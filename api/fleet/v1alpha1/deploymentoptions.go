package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-fleet/muster/api/limits"
)

// BundleDeploymentOptions controls the release of a Bundle's resources downstream. Empty fields are
// omitted, because the deployment ID has the hash of the JSON.
type BundleDeploymentOptions struct {
	// defaultNamespace is the namespace of the release, and of resources without a namespace. Default
	// `default`.
	// +optional
	// +nullable
	DefaultNamespace limits.Name `json:"defaultNamespace,omitempty"`
	// namespace forces all resources into one namespace. A cluster-scoped resource
	// is then an error, also in a hook or in a chart's directory crds/.
	// +optional
	// +nullable
	TargetNamespace limits.Name `json:"namespace,omitempty"`
	// kustomize selects the kustomization to build.
	// +optional
	// +nullable
	Kustomize *KustomizeOptions `json:"kustomize,omitempty"`
	// helm controls the installation of the release.
	// +optional
	// +nullable
	Helm *HelmOptions `json:"helm,omitempty"`
	// serviceAccount is the ServiceAccount for the deployment, in the agent's namespace downstream;
	// `fleet-agent` is refused. Default `fleet-default` if it exists, otherwise the agent's own.
	// +optional
	// +nullable
	ServiceAccount limits.Name `json:"serviceAccount,omitempty"`
	// createNamespace creates the release's namespace; default true.
	// +optional
	// +nullable
	CreateNamespace *bool `json:"createNamespace,omitempty"`
	// forceSyncGeneration makes the agent deploy again after each change of its value.
	// +optional
	ForceSyncGeneration int64 `json:"forceSyncGeneration,omitempty"`
	// yaml selects the overlays for plain YAML.
	// +optional
	// +nullable
	YAML *YAMLOptions `json:"yaml,omitempty"`
	// diff lists differences that do not count as drift.
	// +optional
	// +nullable
	Diff *DiffOptions `json:"diff,omitempty"`
	// keepResources keeps the resources downstream when the deployment is removed.
	// +optional
	KeepResources bool `json:"keepResources,omitempty"`
	// deleteNamespace deletes the release's namespace when the deployment is removed. The namespace
	// must have been created for the release, and be empty otherwise. Default false.
	// +optional
	DeleteNamespace bool `json:"deleteNamespace,omitempty"`
	// ignore lists conditions without effect on readiness.
	// +optional
	// +nullable
	IgnoreOptions *IgnoreOptions `json:"ignore,omitempty"`
	// correctDrift undoes changes made downstream.
	// +optional
	// +nullable
	CorrectDrift *CorrectDrift `json:"correctDrift,omitempty"`
	// namespaceLabels are set on the release's namespace.
	// +optional
	// +nullable
	NamespaceLabels limits.Labels `json:"namespaceLabels,omitempty"`
	// namespaceAnnotations are set on the release's namespace.
	// +optional
	// +nullable
	NamespaceAnnotations limits.Annotations `json:"namespaceAnnotations,omitempty"`
	// deleteCRDResources permits an upgrade or a removal to delete CustomResourceDefinitions, and with
	// them all their objects.
	// +optional
	DeleteCRDResources bool `json:"deleteCRDResources,omitempty"`
	// downstreamResources are Secrets and ConfigMaps of the Bundle's namespace to copy downstream.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	DownstreamResources []DownstreamResource `json:"downstreamResources,omitempty"`
	// overwrites are resources of other releases that this release may take over.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=8192
	Overwrites []OverwrittenResource `json:"overwrites,omitempty"`
	// allowedTargetNamespaceSelector restricts the target namespaces downstream by their labels.
	// +optional
	// +nullable
	AllowedTargetNamespaceSelector *metav1.LabelSelector `json:"allowedTargetNamespaceSelector,omitempty"`
	// namespaceCreationForbiddenBy names the Policies that forbid the creation of namespaces. The hub
	// sets it, together with createNamespace.
	// +optional
	// +nullable
	NamespaceCreationForbiddenBy limits.Line `json:"namespaceCreationForbiddenBy,omitempty"`
}

// YAMLOptions are options for Bundles of plain YAML.
type YAMLOptions struct {
	// overlays are directories below `overlays/`. Their files replace or patch the files of the
	// Bundle, in order.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	Overlays []limits.Line `json:"overlays,omitempty"`
}

// KustomizeOptions are options for Bundles with a kustomization.
type KustomizeOptions struct {
	// dir is the directory of the kustomization, relative to the Bundle. Default: the root of the
	// Bundle.
	// +optional
	// +nullable
	Dir limits.Line `json:"dir,omitempty"`
}

// HelmOptions are options for the Helm release.
type HelmOptions struct {
	// chart is the chart's directory in the Bundle, its name in repo, or its address (oci:// or an
	// archive).
	// +optional
	// +nullable
	Chart limits.Line `json:"chart,omitempty"`
	// repo is the URL of the chart repository, for a chart outside the Bundle.
	// +optional
	// +nullable
	Repo limits.Line `json:"repo,omitempty"`
	// secretName names a Secret in the Bundle's namespace with credentials for the repository or
	// registry of the chart. Its keys are `username` and `password`, `token`, `.dockerconfigjson`,
	// `cacerts` or `ca.crt`. The hub copies it to the members. A Muster addition: agents of Rancher
	// Fleet ignore it.
	// +optional
	// +nullable
	SecretName limits.Name `json:"secretName,omitempty"`
	// releaseName is the name of the release; the default comes from the BundleDeployment's name. The
	// agent refuses the release name of another Bundle or Helm installation in the namespace, and its
	// own, `fleet-agent`. After a change it installs the new release, then uninstalls the old one.
	// With takeOwnership, the release continues under the new name with all its objects.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxLength=53
	ReleaseName string `json:"releaseName,omitempty"`
	// version is the version of a fetched chart, or a range of versions: the newest in the range is
	// used. Default: the newest of all.
	// +optional
	// +nullable
	Version limits.Line `json:"version,omitempty"`
	// timeoutSeconds is the time in seconds that the agent waits for the release to become ready.
	// Default 0: it does not wait.
	// +optional
	TimeoutSeconds int `json:"timeoutSeconds,omitempty"`
	// values are the values of the chart. Strings may hold templates between `${` and `}`.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *runtime.RawExtension `json:"values,omitempty"`
	// templateValues are templates by key. The agent parses the result of each as YAML, and uses it as
	// a value.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxProperties=1024
	TemplateValues map[string]limits.Value `json:"templateValues,omitempty"`
	// valuesFrom names ConfigMaps and Secrets downstream with further values. These override values. A
	// later entry overrides an earlier one.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=256
	ValuesFrom []ValuesFrom `json:"valuesFrom,omitempty"`
	// valuesFiles are values files of the Bundle, in order. The agent ignores a missing file, because
	// fleet apply has merged it into the values.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=256
	ValuesFiles []limits.Line `json:"valuesFiles,omitempty"`
	// force replaces a resource that cannot be updated.
	// +optional
	Force bool `json:"force,omitempty"`
	// takeOwnership adopts existing resources without an owner or of another release.
	// +optional
	TakeOwnership bool `json:"takeOwnership,omitempty"`
	// maxHistory is the number of revisions that Helm keeps. The agent sets the default.
	// +optional
	MaxHistory int `json:"maxHistory,omitempty"`
	// waitForJobs makes the agent wait for Jobs, too, up to timeoutSeconds.
	// +optional
	WaitForJobs bool `json:"waitForJobs,omitempty"`
	// atomic rolls back a failed upgrade.
	// +optional
	Atomic bool `json:"atomic,omitempty"`
	// disablePreProcess turns off the templates in values.
	// +optional
	DisablePreProcess bool `json:"disablePreProcess,omitempty"`
	// disableDNS forbids charts to look up host names.
	// +optional
	DisableDNS bool `json:"disableDNS,omitempty"`
	// skipSchemaValidation turns off the validation of values against the chart's schema.
	// +optional
	SkipSchemaValidation bool `json:"skipSchemaValidation,omitempty"`
	// disableDependencyUpdate deploys a chart without its missing dependencies. Otherwise a missing
	// dependency is an error. The agent downloads no dependencies.
	// +optional
	DisableDependencyUpdate bool `json:"disableDependencyUpdate,omitempty"`
	// crds is the treatment of definitions in the chart's directory `crds/`. `Create` creates missing
	// ones, and leaves existing ones unchanged. `CreateReplace` also replaces existing definitions of
	// the release. `Skip` does neither. Default `Create`. A Muster addition: agents of Rancher Fleet
	// ignore it.
	// +optional
	// +kubebuilder:validation:Enum=Create;CreateReplace;Skip
	CRDs string `json:"crds,omitempty"`
}

// ValuesFrom names one source of values downstream. Set one of its two fields.
type ValuesFrom struct {
	// configMapKeyRef is a key of a ConfigMap.
	// +optional
	// +nullable
	ConfigMapKeyRef *KeySelector `json:"configMapKeyRef,omitempty"`
	// secretKeyRef is a key of a Secret.
	// +optional
	// +nullable
	SecretKeyRef *KeySelector `json:"secretKeyRef,omitempty"`
}

// KeySelector is a key of a ConfigMap or Secret.
type KeySelector struct {
	// name is the name of the object.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
	// namespace is the namespace of the object. Default: the namespace of the release.
	// +optional
	// +nullable
	Namespace limits.Name `json:"namespace,omitempty"`
	// key is the key in the object. Default `values.yaml`.
	// +optional
	// +nullable
	Key limits.Name `json:"key,omitempty"`
}

// DiffOptions lists differences that do not count as drift.
type DiffOptions struct {
	// comparePatches are applied to both objects before their comparison.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	ComparePatches []ComparePatch `json:"comparePatches,omitempty"`
}

// ComparePatch excludes parts of a resource from the comparison.
type ComparePatch struct {
	// kind is the kind of the resource.
	// +optional
	// +nullable
	Kind limits.Name `json:"kind,omitempty"`
	// apiVersion is the API version of the resource.
	// +optional
	// +nullable
	APIVersion limits.Name `json:"apiVersion,omitempty"`
	// namespace is the namespace of the resource.
	// +optional
	// +nullable
	Namespace limits.Line `json:"namespace,omitempty"`
	// name is the name of the resource.
	// +optional
	// +nullable
	Name limits.Line `json:"name,omitempty"`
	// operations are the operations of a JSON patch. With `ignore`, a resource may be missing
	// downstream.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=256
	Operations []Operation `json:"operations,omitempty"`
	// jsonPointers are the fields to exclude, as JSON pointers.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	JSONPointers []limits.Line `json:"jsonPointers,omitempty"`
}

// Operation is one operation of a JSON patch.
type Operation struct {
	// op is `remove`, `add`, `replace` or `ignore`.
	// +optional
	// +nullable
	Op limits.Name `json:"op,omitempty"`
	// path is a JSON pointer.
	// +optional
	// +nullable
	Path limits.Line `json:"path,omitempty"`
	// value is the value for `add` and `replace`, as text.
	// +optional
	// +nullable
	Value limits.Value `json:"value,omitempty"`
}

// IgnoreOptions lists conditions without effect on readiness.
type IgnoreOptions struct {
	// conditions are patterns for the conditions of resources. A condition with all the fields of a
	// pattern has no effect on readiness.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxProperties=64
	Conditions []map[string]limits.Line `json:"conditions,omitempty"`
}

// CorrectDrift undoes changes made downstream.
type CorrectDrift struct {
	// enabled turns the correction on.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// force replaces resources that cannot be corrected in place.
	// +optional
	Force bool `json:"force,omitempty"`
	// keepFailHistory adds a failed revision to the release history after a failed correction: one
	// until the next success.
	// +optional
	KeepFailHistory bool `json:"keepFailHistory,omitempty"`
}

// DownstreamResource is a Secret or ConfigMap to copy downstream.
type DownstreamResource struct {
	// kind is Secret or ConfigMap.
	// +optional
	// +nullable
	Kind limits.Name `json:"kind,omitempty"`
	// name is the name of the object.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
}

// OverwrittenResource is a resource of another release that this release may take over.
type OverwrittenResource struct {
	// kind is the kind of the resource.
	// +optional
	// +nullable
	Kind limits.Name `json:"kind,omitempty"`
	// namespace is the namespace of the resource.
	// +optional
	// +nullable
	Namespace limits.Name `json:"namespace,omitempty"`
	// name is the name of the resource.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
}
