package customization

import (
	"bytes"
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// FuzzMerge merges the options of a target into the options of a Bundle. The result does not depend
// on the order in which maps are read, and can be merged again.
func FuzzMerge(f *testing.F) {
	f.Add([]byte(`{"helm":{"values":{"a":{"b":[1]}}},"namespace":"x"}`), []byte(`{"helm":{"values":{"a":null},"valuesFiles":["v.yaml"]}}`))
	f.Add([]byte(`{"helm":{"values":[]},"diff":{"comparePatches":[{}]}}`),
		[]byte(`{"namespaceLabels":{"a":"b"},"ignore":{"conditions":[{"a":"b"}]}}`))
	f.Fuzz(func(t *testing.T, under, over []byte) {
		var base, target fleet.BundleDeploymentOptions
		if json.Unmarshal(under, &base) != nil || json.Unmarshal(over, &target) != nil {
			return
		}
		for _, version := range []Rules{Former, Present} {
			first, err := mergeOptions(version, base, target)
			if err != nil {
				continue
			}
			second, err := mergeOptions(version, base, target)
			one, two := encode(t, first), encode(t, second)
			if err != nil || !bytes.Equal(one, two) {
				t.Errorf("the same options merge into %s and %s (%v)", one, two, err)
			}
		}
	})
}

// FuzzRender fills the values of a Bundle for a Cluster.
func FuzzRender(f *testing.F) {
	f.Add([]byte(`{"a":"${ .ClusterName }","b":[{"c":"${ .ClusterValues.x }"}]}`), "k: ${ .ClusterLabels.env }", []byte(`{"x":1e400}`))
	f.Add([]byte(`[]`), "a: &a [*a]", []byte(`null`))
	f.Add([]byte(`{"a":"global.fleet.clusterLabels.env"}`), "${ range until 10 }${ . }${ end }", []byte(`{"x":[]}`))
	f.Fuzz(func(t *testing.T, values []byte, whole string, ofCluster []byte) {
		if !json.Valid(values) || !json.Valid(ofCluster) { // the API server stores nothing else
			return
		}
		cluster := &fleet.Cluster{}
		cluster.Name, cluster.Labels = "edge-1", map[string]string{"env": "dev"}
		cluster.Spec.TemplateValues = &runtime.RawExtension{Raw: ofCluster}
		options := fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{
			Values: &runtime.RawExtension{Raw: values}, TemplateValues: map[string]string{"k": whole},
		}}
		if err := render(Present, &options, cluster); err == nil && !json.Valid(options.Helm.Values.Raw) {
			t.Errorf("the values are no JSON: %s", options.Helm.Values.Raw)
		}
	})
}

func encode(t *testing.T, options fleet.BundleDeploymentOptions) []byte {
	text, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
