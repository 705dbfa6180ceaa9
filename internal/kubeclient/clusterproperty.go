package kubeclient

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ClusterPropertyVersions lists the versions of ClusterProperty, the best first.
var ClusterPropertyVersions = []schema.GroupVersion{
	{Group: "about.k8s.io", Version: "v1beta1"}, {Group: "about.k8s.io", Version: "v1alpha1"},
}

// ClusterProperty is a fact about a cluster, as KEP-2149 defines the kind.
type ClusterProperty struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterPropertySpec `json:"spec,omitempty"`
}

// ClusterPropertySpec holds the value of the fact.
type ClusterPropertySpec struct {
	Value string `json:"value"`
}

// ClusterPropertyList is a list of them.
type ClusterPropertyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterProperty `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (p *ClusterProperty) DeepCopyObject() runtime.Object {
	clone := *p
	clone.ObjectMeta = *p.ObjectMeta.DeepCopy()
	return &clone
}

// DeepCopyObject implements runtime.Object.
func (l *ClusterPropertyList) DeepCopyObject() runtime.Object {
	clone := *l
	clone.ListMeta = *l.ListMeta.DeepCopy()
	clone.Items = make([]ClusterProperty, len(l.Items))
	for i := range l.Items {
		clone.Items[i] = *l.Items[i].DeepCopyObject().(*ClusterProperty)
	}
	return &clone
}
