package ownbundle

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestTheDigestOfASpecIsTheSameAfterItIsStored(t *testing.T) {
	var one, other fleet.BundleSpec
	one.Helm = &fleet.HelmOptions{Values: &runtime.RawExtension{Raw: []byte(`{"b": 1.0, "a": 1e3}`)}}
	other.Helm = &fleet.HelmOptions{Values: &runtime.RawExtension{Raw: []byte(`{"a":1000,"b":1}`)}}
	a, err := digestOf(&one)
	b, otherErr := digestOf(&other)
	if err != nil || otherErr != nil || a != b {
		t.Errorf("%s, %s, %v, %v", a, b, err, otherErr)
	}
}

func TestABundleOfTheCacheShowsAChangeOfItsSpec(t *testing.T) {
	spec := fleet.BundleSpec{Resources: []fleet.BundleResource{{Name: "a.yaml", Content: "x"}}}
	spec.Helm = &fleet.HelmOptions{Values: &runtime.RawExtension{Raw: []byte(`{"b": 1.0, "a": [1e3, "x"]}`)}}
	own, err := digestOf(&spec)
	if err != nil {
		t.Fatal(err)
	}
	for digest, want := range map[string]bool{own: true, "other": false} {
		bundle := &fleet.Bundle{Spec: spec}
		bundle.Annotations = map[string]string{annotationWritten: fmt.Sprintf(`{"spec":%q}`, digest)}
		slim, err := Slim(bundle)
		if err == nil {
			slim, err = Slim(slim) // as a cache does at its start
		}
		if err != nil || len(slim.(*fleet.Bundle).Spec.Resources) > 0 || Unchanged(slim.(*fleet.Bundle)) != want {
			t.Errorf("%s: %+v, %v", digest, slim, err)
		}
	}
}
