package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterProfile describes one cluster, for tools and users.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusterprofiles,scope=Namespaced
// +kubebuilder:printcolumn:name="Manager",type=string,JSONPath=`.spec.clusterManager.name`
// +kubebuilder:printcolumn:name="Joined",type=string,JSONPath=`.status.conditions[?(@.type=="Joined")].status`
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.conditions[?(@.type=="ControlPlaneHealthy")].status`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version.kubernetes`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterProfile struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec ClusterProfileSpec `json:"spec"`
	// +optional
	Status ClusterProfileStatus `json:"status,omitempty"`
}

// ClusterProfileSpec is written by the cluster manager.
type ClusterProfileSpec struct {
	// displayName is the name of the cluster for people.
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// clusterManager is the program that manages the cluster, and writes this object.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterManager is immutable"
	ClusterManager ClusterManager `json:"clusterManager"`
}

// ClusterManager names a cluster manager.
type ClusterManager struct {
	// name is the name of the manager, the same in all profiles of the manager.
	// +required
	Name string `json:"name"`
}

// ClusterProfileStatus is written by the cluster manager.
type ClusterProfileStatus struct {
	// conditions: ControlPlaneHealthy, Joined.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// version is the version of the cluster.
	// +optional
	Version ClusterVersion `json:"version,omitempty"`
	// properties are the properties of the cluster.
	// +optional
	// +listType=map
	// +listMapKey=name
	Properties []Property `json:"properties,omitempty"`
	// accessProviders list the ways to reach the cluster. Muster writes the entry
	// kubeconfig-secretreader if its settings enable it.
	// +optional
	// +listType=map
	// +listMapKey=name
	AccessProviders []AccessProvider `json:"accessProviders,omitempty"`
	// credentialProviders is the former name of accessProviders. If both have an entry with the same
	// name, the entry in accessProviders wins.
	// +optional
	// +listType=map
	// +listMapKey=name
	CredentialProviders []AccessProvider `json:"credentialProviders,omitempty"`
}

// ClusterVersion is the version of a cluster.
type ClusterVersion struct {
	// kubernetes is the version of the API server, such as v1.36.3.
	// +optional
	Kubernetes string `json:"kubernetes,omitempty"`
}

// Property is a fact about a cluster that seldom changes.
type Property struct {
	// name is the name of the property.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// value is the value of the property.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value"`
	// lastObservedTime is the time when the value was first observed, by the clock of the cluster.
	// +optional
	LastObservedTime *metav1.Time `json:"lastObservedTime,omitempty"`
}

// AccessProvider is a way to reach the cluster.
type AccessProvider struct {
	// name is the name of the provider.
	// +required
	Name string `json:"name"`
	// cluster is a cluster entry in the form of a kubeconfig.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Cluster runtime.RawExtension `json:"cluster,omitempty"`
}

// ClusterProfileList is a list of ClusterProfiles.
//
// +kubebuilder:object:root=true
type ClusterProfileList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterProfile `json:"items"`
}
