// Package limits defines types that bound how much tenants and members may write into one field. To
// Go they are plain strings and maps. The schemas of the CRDs hold the maxima.
//
// Its invariant: a maximum is never lowered. It is well above the largest value of an agent or a
// command line of Rancher Fleet, KubeFleet or Muster. Maxima count characters; a character outside
// ASCII takes up to four bytes.
package limits

// Name is a name, a kind, an API version or a label's value: at most 253 characters, like the name
// of a Kubernetes object.
//
// +kubebuilder:validation:MaxLength=253
type Name = string

// Line is a URL, a path or a version: at most 2048 characters.
//
// +kubebuilder:validation:MaxLength=2048
type Line = string

// Message is a text for people: at most 32768 characters, like the message of a Kubernetes
// condition.
//
// +kubebuilder:validation:MaxLength=32768
type Message = string

// Value is a part of an object, such as a patch: at most 131072 characters.
//
// +kubebuilder:validation:MaxLength=131072
type Value = string

// Document is a file: at most 3145728 characters, the largest request that an API server reads.
//
// +kubebuilder:validation:MaxLength=3145728
type Document = string

// Labels are labels or annotations: at most 128. A key has at most 317 characters: a DNS name, a
// slash and a name.
//
// +kubebuilder:validation:MaxProperties=128
// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 317)",message="a key has more than 317 characters"
type Labels = map[string]Name

// Annotations are like Labels with longer values.
//
// +kubebuilder:validation:MaxProperties=128
// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 317)",message="a key has more than 317 characters"
type Annotations = map[string]Value
