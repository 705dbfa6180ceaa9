package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-fleet/muster/api/limits"
)

// BundleDeploymentOptions is how the resources of a Bundle become a release downstream. Every field is omitted when empty: the
// deployment ID is the hash of the JSON.
type BundleDeploymentOptions struct {
	// DefaultNamespace is where resources go that name no namespace, and the release itself. Default `default`.
	// +optional
	// +nullable
	DefaultNamespace limits.Name `json:"defaultNamespace,omitempty"`
	// TargetNamespace (`namespace`) forces all resources into one namespace; a cluster-scoped resource is then an error, also
	// one of a hook or of a chart's directory crds/.
	// +optional
	// +nullable
	TargetNamespace limits.Name `json:"namespace,omitempty"`
	// Kustomize says which kustomization to build.
	// +optional
	// +nullable
	Kustomize *KustomizeOptions `json:"kustomize,omitempty"`
	// Helm says how the release is installed.
	// +optional
	// +nullable
	Helm *HelmOptions `json:"helm,omitempty"`
	// ServiceAccount of the agent's namespace downstream that the deployment acts as; not `fleet-agent`, the agent's
	// own. Default `fleet-default` if there is one, else the agent's own.
	// +optional
	// +nullable
	ServiceAccount limits.Name `json:"serviceAccount,omitempty"`
	// CreateNamespace says whether the release's namespace is created; default true.
	// +optional
	// +nullable
	CreateNamespace *bool `json:"createNamespace,omitempty"`
	// ForceSyncGeneration deploys again when it changes.
	// +optional
	ForceSyncGeneration int64 `json:"forceSyncGeneration,omitempty"`
	// YAML says which overlays apply to plain YAML.
	// +optional
	// +nullable
	YAML *YAMLOptions `json:"yaml,omitempty"`
	// Diff says which differences are no drift.
	// +optional
	// +nullable
	Diff *DiffOptions `json:"diff,omitempty"`
	// KeepResources leaves the resources downstream when the deployment goes.
	// +optional
	KeepResources bool `json:"keepResources,omitempty"`
	// DeleteNamespace deletes the release's namespace when the deployment goes, if it was made for the release and holds nothing else.
	// Default false.
	// +optional
	DeleteNamespace bool `json:"deleteNamespace,omitempty"`
	// IgnoreOptions (`ignore`) says what does not count against readiness.
	// +optional
	// +nullable
	IgnoreOptions *IgnoreOptions `json:"ignore,omitempty"`
	// CorrectDrift undoes changes made downstream.
	// +optional
	// +nullable
	CorrectDrift *CorrectDrift `json:"correctDrift,omitempty"`
	// NamespaceLabels are put on the release's namespace.
	// +optional
	// +nullable
	NamespaceLabels limits.Labels `json:"namespaceLabels,omitempty"`
	// NamespaceAnnotations are put on the release's namespace.
	// +optional
	// +nullable
	NamespaceAnnotations limits.Annotations `json:"namespaceAnnotations,omitempty"`
	// DeleteCRDResources lets an upgrade or removal delete CustomResourceDefinitions and with them their objects.
	// +optional
	DeleteCRDResources bool `json:"deleteCRDResources,omitempty"`
	// DownstreamResources are Secrets and ConfigMaps of the Bundle's namespace to copy downstream.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	DownstreamResources []DownstreamResource `json:"downstreamResources,omitempty"`
	// Overwrites are other releases' resources that this one may take.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=8192
	Overwrites []OverwrittenResource `json:"overwrites,omitempty"`
	// AllowedTargetNamespaceSelector limits the namespaces downstream that may be deployed to.
	// +optional
	// +nullable
	AllowedTargetNamespaceSelector *metav1.LabelSelector `json:"allowedTargetNamespaceSelector,omitempty"`
}

// YAMLOptions is for Bundles of plain YAML.
type YAMLOptions struct {
	// Overlays are directories below `overlays/` whose files replace or patch those of the Bundle, in order.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	Overlays []limits.Line `json:"overlays,omitempty"`
}

// KustomizeOptions is for Bundles with a kustomization.
type KustomizeOptions struct {
	// Dir is the directory of the kustomization, relative to the Bundle; default its root.
	// +optional
	// +nullable
	Dir limits.Line `json:"dir,omitempty"`
}

// HelmOptions is how a release is made.
type HelmOptions struct {
	// Chart is the directory of the chart in the Bundle, its name in repo, or its address: an oci:// one or that of an archive.
	// +optional
	// +nullable
	Chart limits.Line `json:"chart,omitempty"`
	// Repo is the URL of the chart repository, for a chart that is not in the Bundle; the agent fetches it without credentials.
	// +optional
	// +nullable
	Repo limits.Line `json:"repo,omitempty"`
	// ReleaseName of the release; default derived from the BundleDeployment's name. One that another Bundle has in the same namespace, or that
	// somebody installed there with Helm, is refused, as is `fleet-agent` in the agent's namespace. If it changes, the release is installed
	// under the new name and then uninstalled, or with takeOwnership goes on under it with all its objects.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxLength=53
	ReleaseName string `json:"releaseName,omitempty"`
	// Version of a chart that is fetched, or a range of versions, of which the newest is taken; default the newest.
	// +optional
	// +nullable
	Version limits.Line `json:"version,omitempty"`
	// TimeoutSeconds, in seconds, that the release may take to become ready; default 0: it is not waited for.
	// +optional
	TimeoutSeconds int `json:"timeoutSeconds,omitempty"`
	// Values of the chart. Strings may hold templates between `${` and `}`.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *runtime.RawExtension `json:"values,omitempty"`
	// TemplateValues are values whose text is a template; the result is parsed as YAML.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxProperties=1024
	TemplateValues map[string]limits.Value `json:"templateValues,omitempty"`
	// ValuesFrom names ConfigMaps and Secrets downstream with further values, which win over values; later ones over earlier ones.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=256
	ValuesFrom []ValuesFrom `json:"valuesFrom,omitempty"`
	// ValuesFiles are values files of the Bundle, in order. One that is not among its resources was merged into the values by fleet apply, and is ignored.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=256
	ValuesFiles []limits.Line `json:"valuesFiles,omitempty"`
	// Force replaces what cannot be updated.
	// +optional
	Force bool `json:"force,omitempty"`
	// TakeOwnership adopts resources that exist and belong to nobody or to another release.
	// +optional
	TakeOwnership bool `json:"takeOwnership,omitempty"`
	// MaxHistory is how many revisions are kept; default decided by the agent.
	// +optional
	MaxHistory int `json:"maxHistory,omitempty"`
	// WaitForJobs waits for Jobs too, up to timeoutSeconds.
	// +optional
	WaitForJobs bool `json:"waitForJobs,omitempty"`
	// Atomic rolls a failed upgrade back.
	// +optional
	Atomic bool `json:"atomic,omitempty"`
	// DisablePreProcess leaves templates in values alone.
	// +optional
	DisablePreProcess bool `json:"disablePreProcess,omitempty"`
	// DisableDNS forbids charts to look up host names.
	// +optional
	DisableDNS bool `json:"disableDNS,omitempty"`
	// SkipSchemaValidation does not check values against the chart's schema.
	// +optional
	SkipSchemaValidation bool `json:"skipSchemaValidation,omitempty"`
	// DisableDependencyUpdate deploys the chart without the charts that it depends on and lacks; otherwise that is an error. Nothing is downloaded.
	// +optional
	DisableDependencyUpdate bool `json:"disableDependencyUpdate,omitempty"`
}

// ValuesFrom names one source of values downstream; one of its fields is set.
type ValuesFrom struct {
	// ConfigMapKeyRef is a key of a ConfigMap.
	// +optional
	// +nullable
	ConfigMapKeyRef *KeySelector `json:"configMapKeyRef,omitempty"`
	// SecretKeyRef is a key of a Secret.
	// +optional
	// +nullable
	SecretKeyRef *KeySelector `json:"secretKeyRef,omitempty"`
}

// KeySelector is a key of a ConfigMap or Secret.
type KeySelector struct {
	// Name of the object.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
	// Namespace of the object; default the release's.
	// +optional
	// +nullable
	Namespace limits.Name `json:"namespace,omitempty"`
	// Key in the object; default `values.yaml`.
	// +optional
	// +nullable
	Key limits.Name `json:"key,omitempty"`
}

// DiffOptions says which differences are no drift.
type DiffOptions struct {
	// ComparePatches are applied to both sides before they are compared.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	ComparePatches []ComparePatch `json:"comparePatches,omitempty"`
}

// ComparePatch leaves parts of a resource out of the comparison.
type ComparePatch struct {
	// Kind of the resource.
	// +optional
	// +nullable
	Kind limits.Name `json:"kind,omitempty"`
	// APIVersion of the resource.
	// +optional
	// +nullable
	APIVersion limits.Name `json:"apiVersion,omitempty"`
	// Namespace of the resource.
	// +optional
	// +nullable
	Namespace limits.Line `json:"namespace,omitempty"`
	// Name of the resource.
	// +optional
	// +nullable
	Name limits.Line `json:"name,omitempty"`
	// Operations of a JSON patch; `ignore` lets the resource be missing downstream.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=256
	Operations []Operation `json:"operations,omitempty"`
	// JSONPointers to leave out.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	JSONPointers []limits.Line `json:"jsonPointers,omitempty"`
}

// Operation is one of a JSON patch.
type Operation struct {
	// Op is `remove`, `add`, `replace` or `ignore`.
	// +optional
	// +nullable
	Op limits.Name `json:"op,omitempty"`
	// Path is a JSON pointer.
	// +optional
	// +nullable
	Path limits.Line `json:"path,omitempty"`
	// Value for `add` and `replace`, as text.
	// +optional
	// +nullable
	Value limits.Value `json:"value,omitempty"`
}

// IgnoreOptions says what does not count against readiness.
type IgnoreOptions struct {
	// Conditions are matched field by field against those of a resource; one that matches is left out.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxProperties=64
	Conditions []map[string]limits.Line `json:"conditions,omitempty"`
}

// CorrectDrift undoes changes made downstream.
type CorrectDrift struct {
	// Enabled switches it on.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// Force replaces what cannot be corrected in place.
	// +optional
	Force bool `json:"force,omitempty"`
	// KeepFailHistory notes a correction that failed as a failed revision in the history of the release, once until one succeeds.
	// +optional
	KeepFailHistory bool `json:"keepFailHistory,omitempty"`
}

// DownstreamResource is a Secret or ConfigMap to copy downstream.
type DownstreamResource struct {
	// Kind is Secret or ConfigMap.
	// +optional
	// +nullable
	Kind limits.Name `json:"kind,omitempty"`
	// Name of it.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
}

// OverwrittenResource is a resource of another release that this one may take.
type OverwrittenResource struct {
	// Kind of the resource.
	// +optional
	// +nullable
	Kind limits.Name `json:"kind,omitempty"`
	// Namespace of the resource.
	// +optional
	// +nullable
	Namespace limits.Name `json:"namespace,omitempty"`
	// Name of the resource.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
}
