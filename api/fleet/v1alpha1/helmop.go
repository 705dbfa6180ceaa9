package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// HelmOp is a Helm chart for Clusters of its workspace. The hub creates a Bundle of the same name,
// and keeps it at the newest version of a range.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=helmops,categories=fleet
// +kubebuilder:printcolumn:name="Repo",type=string,JSONPath=`.spec.helm.repo`
// +kubebuilder:printcolumn:name="Chart",type=string,JSONPath=`.spec.helm.chart`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="BundleDeployments-Ready",type=string,JSONPath=`.status.display.readyBundleDeployments`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type HelmOp struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec HelmOpSpec `json:"spec,omitempty"`
	// status keeps every field that upstream writes.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Status HelmOpStatus `json:"status,omitempty"`
}

// HelmOpSpec is the desired state of a HelmOp. Users write it. Its inline fields have the same
// meaning as in a Bundle. `helm` names a chart in one of three forms: `repo` and `chart`, `repo`
// with an oci:// address, or `chart` with the address of an archive.
type HelmOpSpec struct {
	BundleSpec `json:",inline"`

	// labels are the labels of the Bundle.
	// +optional
	// +nullable
	Labels limits.Labels `json:"labels,omitempty"`
	// pollingInterval is the time between two checks for a newer version, if helm.version is a range.
	// Default 0: the hub checks only after a change of this spec.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == '0' || (self.matches('^[-+]?([0-9]+([.][0-9]*)?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('2562047h'))",message="pollingInterval must be 0 or a Go duration such as 60s or 10m, at most 2562047h; the units are ns, us, µs, ms, s, m and h, there is none for days"
	PollingInterval *metav1.Duration `json:"pollingInterval,omitempty"`
	// helmSecretName is the name of the Secret with the credentials for the chart. Its keys are
	// `username`, `password` and `cacerts`. The Secret stays on the hub.
	// +optional
	// +nullable
	HelmSecretName limits.Name `json:"helmSecretName,omitempty"`
	// insecureSkipTLSVerify turns off the check of the server's certificate.
	// +optional
	InsecureSkipTLSVerify bool `json:"insecureSkipTLSVerify,omitempty"`
}

// HelmOpStatus is the observed state of a HelmOp. The hub writes it.
type HelmOpStatus struct {
	// conditions: Ready, Accepted, Polled.
	// +optional
	// +nullable
	Conditions []Condition `json:"conditions,omitempty"`
	// version is the version of the chart in the Bundle.
	// +optional
	// +nullable
	Version string `json:"version,omitempty"`
	// observedGeneration is the metadata.generation of the spec behind the Bundle. A Muster addition.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// summary counts the BundleDeployments by state.
	// +optional
	Summary BundleSummary `json:"summary,omitempty"`
	// display holds the columns of `kubectl get`.
	// +optional
	Display SourceDisplay `json:"display,omitempty"`
	// SourceResources describes the deployed resources of the Bundle.
	SourceResources `json:",inline"`
}

// HelmOpList is a list of HelmOps.
//
// +kubebuilder:object:root=true
type HelmOpList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HelmOp `json:"items"`
}
