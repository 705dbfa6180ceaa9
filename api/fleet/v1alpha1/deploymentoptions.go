package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-fleet/muster/api/limits"
)

// BundleDeploymentOptions controls the release of a Bundle's resources downstream. Every field is
// omitted when empty: the deployment ID is the hash of the JSON.
type BundleDeploymentOptions struct {
	// DefaultNamespace is the namespace of the release, and of resources without a namespace. Default
	// `default`.
	// +optional
	// +nullable
	DefaultNamespace limits.Name `json:"defaultNamespace,omitempty"`
	// TargetNamespace (`namespace`) forces all resources into one namespace. A cluster-scoped resource
	// is then an error, also in a hook or in a chart's directory crds/.
	// +optional
	// +nullable
	TargetNamespace limits.Name `json:"namespace,omitempty"`
	// Kustomize selects the kustomization to build.
	// +optional
	// +nullable
	Kustomize *KustomizeOptions `json:"kustomize,omitempty"`
	// Helm controls the installation of the release.
	// +optional
	// +nullable
	Helm *HelmOptions `json:"helm,omitempty"`
	// ServiceAccount is the account of the deployment in the agent's namespace downstream; not
	// `fleet-agent`, the agent's own. Default `fleet-default` if it exists, else the agent's own.
	// +optional
	// +nullable
	ServiceAccount limits.Name `json:"serviceAccount,omitempty"`
	// CreateNamespace creates the release's namespace; default true.
	// +optional
	// +nullable
	CreateNamespace *bool `json:"createNamespace,omitempty"`
	// ForceSyncGeneration deploys again after each change.
	// +optional
	ForceSyncGeneration int64 `json:"forceSyncGeneration,omitempty"`
	// YAML selects the overlays for plain YAML.
	// +optional
	// +nullable
	YAML *YAMLOptions `json:"yaml,omitempty"`
	// Diff lists differences that are no drift.
	// +optional
	// +nullable
	Diff *DiffOptions `json:"diff,omitempty"`
	// KeepResources leaves the resources downstream when the deployment goes.
	// +optional
	KeepResources bool `json:"keepResources,omitempty"`
	// DeleteNamespace deletes the release's namespace when the deployment goes, if it was created for
	// the release and holds nothing else. Default false.
	// +optional
	DeleteNamespace bool `json:"deleteNamespace,omitempty"`
	// IgnoreOptions (`ignore`) lists conditions without effect on readiness.
	// +optional
	// +nullable
	IgnoreOptions *IgnoreOptions `json:"ignore,omitempty"`
	// CorrectDrift undoes changes made downstream.
	// +optional
	// +nullable
	CorrectDrift *CorrectDrift `json:"correctDrift,omitempty"`
	// NamespaceLabels are set on the release's namespace.
	// +optional
	// +nullable
	NamespaceLabels limits.Labels `json:"namespaceLabels,omitempty"`
	// NamespaceAnnotations are set on the release's namespace.
	// +optional
	// +nullable
	NamespaceAnnotations limits.Annotations `json:"namespaceAnnotations,omitempty"`
	// DeleteCRDResources lets an upgrade or removal delete CustomResourceDefinitions and with them
	// their objects.
	// +optional
	DeleteCRDResources bool `json:"deleteCRDResources,omitempty"`
	// DownstreamResources are Secrets and ConfigMaps of the Bundle's namespace to copy downstream.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	DownstreamResources []DownstreamResource `json:"downstreamResources,omitempty"`
	// Overwrites are other releases' resources that this one may take over.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=8192
	Overwrites []OverwrittenResource `json:"overwrites,omitempty"`
	// AllowedTargetNamespaceSelector restricts the namespaces for deployments downstream.
	// +optional
	// +nullable
	AllowedTargetNamespaceSelector *metav1.LabelSelector `json:"allowedTargetNamespaceSelector,omitempty"`
	// NamespaceCreationForbiddenBy names the Policies that forbid the deployment to create namespaces.
	// The hub sets it, together with createNamespace.
	// +optional
	// +nullable
	NamespaceCreationForbiddenBy limits.Line `json:"namespaceCreationForbiddenBy,omitempty"`
}

// YAMLOptions is for Bundles of plain YAML.
type YAMLOptions struct {
	// Overlays are directories below `overlays/` whose files replace or patch the Bundle's, in order.
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

// HelmOptions controls a release.
type HelmOptions struct {
	// Chart is the directory of the chart in the Bundle, its name in repo, or its address: an oci://
	// address or an archive's.
	// +optional
	// +nullable
	Chart limits.Line `json:"chart,omitempty"`
	// Repo is the URL of the chart repository, for a chart outside the Bundle.
	// +optional
	// +nullable
	Repo limits.Line `json:"repo,omitempty"`
	// SecretName names a Secret in the Bundle's namespace with credentials for the repository or
	// registry of the chart. Its keys are `username` and `password`, `token`, `.dockerconfigjson`,
	// `cacerts` or `ca.crt`. The hub copies it to the members. A Muster addition: agents of Rancher
	// Fleet ignore it.
	// +optional
	// +nullable
	SecretName limits.Name `json:"secretName,omitempty"`
	// ReleaseName of the release; default derived from the BundleDeployment's name. The agent refuses
	// a name in use by another Bundle or by a Helm installation in the same namespace, and
	// `fleet-agent` in the agent's namespace. After a change, the agent installs the release under the
	// new name and then uninstalls the old one. With takeOwnership the release continues under the new
	// name with all its objects.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxLength=53
	ReleaseName string `json:"releaseName,omitempty"`
	// Version of a fetched chart, or a range of versions to take the newest from; default the newest.
	// +optional
	// +nullable
	Version limits.Line `json:"version,omitempty"`
	// TimeoutSeconds is the time in seconds for the release to become ready; default 0: the agent does
	// not wait.
	// +optional
	TimeoutSeconds int `json:"timeoutSeconds,omitempty"`
	// Values of the chart. Strings may hold templates between `${` and `}`.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *runtime.RawExtension `json:"values,omitempty"`
	// TemplateValues are values whose text is a template; the agent parses the result as YAML.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxProperties=1024
	TemplateValues map[string]limits.Value `json:"templateValues,omitempty"`
	// ValuesFrom names ConfigMaps and Secrets downstream with further values. They override values,
	// and later ones override earlier ones.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=256
	ValuesFrom []ValuesFrom `json:"valuesFrom,omitempty"`
	// ValuesFiles are values files of the Bundle, in order. The agent ignores a file missing from the
	// resources: fleet apply has merged it into the values.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=256
	ValuesFiles []limits.Line `json:"valuesFiles,omitempty"`
	// Force replaces resources that cannot be updated.
	// +optional
	Force bool `json:"force,omitempty"`
	// TakeOwnership adopts existing resources without an owner or of another release.
	// +optional
	TakeOwnership bool `json:"takeOwnership,omitempty"`
	// MaxHistory is the number of revisions to keep; the agent sets the default.
	// +optional
	MaxHistory int `json:"maxHistory,omitempty"`
	// WaitForJobs waits for Jobs too, up to timeoutSeconds.
	// +optional
	WaitForJobs bool `json:"waitForJobs,omitempty"`
	// Atomic rolls a failed upgrade back.
	// +optional
	Atomic bool `json:"atomic,omitempty"`
	// DisablePreProcess leaves templates in values unchanged.
	// +optional
	DisablePreProcess bool `json:"disablePreProcess,omitempty"`
	// DisableDNS forbids charts to look up host names.
	// +optional
	DisableDNS bool `json:"disableDNS,omitempty"`
	// SkipSchemaValidation does not check values against the chart's schema.
	// +optional
	SkipSchemaValidation bool `json:"skipSchemaValidation,omitempty"`
	// DisableDependencyUpdate deploys the chart without its missing dependencies; otherwise these are
	// an error. The agent downloads none.
	// +optional
	DisableDependencyUpdate bool `json:"disableDependencyUpdate,omitempty"`
	// CRDs says what a deployment does with the definitions in the chart's directory `crds/`. `Create`
	// creates missing ones and leaves existing ones as they are. `CreateReplace` also replaces
	// existing ones of the release. `Skip` leaves all of them to others. Default `Create`. A Muster
	// addition: agents of Rancher Fleet ignore it.
	// +optional
	// +kubebuilder:validation:Enum=Create;CreateReplace;Skip
	CRDs string `json:"crds,omitempty"`
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

// DiffOptions lists differences that are no drift.
type DiffOptions struct {
	// ComparePatches are applied to both sides before the comparison.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	ComparePatches []ComparePatch `json:"comparePatches,omitempty"`
}

// ComparePatch excludes parts of a resource from the comparison.
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
	// JSONPointers to exclude.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	JSONPointers []limits.Line `json:"jsonPointers,omitempty"`
}

// Operation is one operation of a JSON patch.
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

// IgnoreOptions lists conditions without effect on readiness.
type IgnoreOptions struct {
	// Conditions are compared field by field with a resource's; readiness ignores a matching one.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxProperties=64
	Conditions []map[string]limits.Line `json:"conditions,omitempty"`
}

// CorrectDrift undoes changes made downstream.
type CorrectDrift struct {
	// Enabled turns it on.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// Force replaces resources that cannot be corrected in place.
	// +optional
	Force bool `json:"force,omitempty"`
	// KeepFailHistory adds a failed correction as a failed revision to the history of the release,
	// once until a correction succeeds.
	// +optional
	KeepFailHistory bool `json:"keepFailHistory,omitempty"`
}

// DownstreamResource is a Secret or ConfigMap to copy downstream.
type DownstreamResource struct {
	// Kind is Secret or ConfigMap.
	// +optional
	// +nullable
	Kind limits.Name `json:"kind,omitempty"`
	// Name of the object.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
}

// OverwrittenResource is a resource of another release that this one may take over.
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
