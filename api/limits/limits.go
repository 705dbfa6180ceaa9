// Package limits says how much tenants and members may write into one field: fields of the API
// are of these types, which are plain strings and maps to Go, and whose maxima are in the
// schemas of the CRDs.
//
// Its invariant: a maximum is well above what an agent or a command line of Rancher Fleet,
// KubeFleet or Muster writes, and is never lowered. It is a number of characters: one that is not
// ASCII takes up to four bytes.
package limits

// Name is a name, a kind, an API version, a label's value: at most 253 characters, as the name of
// a Kubernetes object.
//
// +kubebuilder:validation:MaxLength=253
type Name = string

// Line is a URL, a path or a version: at most 2048 characters.
//
// +kubebuilder:validation:MaxLength=2048
type Line = string

// Message is what a person reads: at most 32768 characters, as the message of a
// condition of Kubernetes.
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

// Labels are labels or annotations: at most 128 of them, with keys of at most 317 characters, which
// is a DNS name, a slash and a name.
//
// +kubebuilder:validation:MaxProperties=128
// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 317)",message="a key has more than 317 characters"
type Labels = map[string]Name

// Annotations are like Labels with longer values.
//
// +kubebuilder:validation:MaxProperties=128
// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 317)",message="a key has more than 317 characters"
type Annotations = map[string]Value
