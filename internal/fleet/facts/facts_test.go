package facts

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

func TestAMemberCannotWriteCustomFactsUnderReservedNames(t *testing.T) {
	all := map[string]string{
		ClusterID: "a", ClusterSet: "b", "color": "blue", "rack.example.com": "r1",
		"muster": "x", "x.muster": "x", Region: "x", KubernetesVersion: "x", "k8s.io": "x", "other.clusterset.k8s.io": "x",
		"a.kubernetes.io": "x", "a.kubernetes-fleet.io": "x", "fleet.cattle.io": "x", "kubernetes.azure.com": "x",
		"empty": "", "long": strings.Repeat("x", MaxCustomValue+1), strings.Repeat("n", MaxCustomName+1): "x", "": "x",
	}
	want := map[string]string{ClusterID: "a", ClusterSet: "b", "color": "blue", "rack.example.com": "r1"}
	if diff := cmp.Diff(want, Custom(all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range 2 * MaxCustom {
		all[fmt.Sprintf("a-%03d", i)] = "x"
	}
	if got := Custom(all); len(got) != MaxCustom || got["a-000"] == "" {
		t.Errorf("%d custom facts are reported", len(got))
	}
}

func TestALongListEndsWithDots(t *testing.T) {
	if got := List([]string{"a", "b"}); got != "a,b" {
		t.Error(got)
	}
	var zones []string
	for range 200 {
		zones = append(zones, "eu-west-1a")
	}
	if got := List(zones); len(got) > maxList+len(more) || !strings.HasSuffix(got, ",...") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

func TestLabelsOfFacts(t *testing.T) {
	properties := map[string]clusterv1beta1.PropertyValue{}
	for name, value := range map[string]string{
		Provider: "aws", Region: "not a label", Zones: "eu-1a,eu-1b,...", KubernetesVersion: "v1.36.3+k3s1",
		ExtendedResources: "nvidia.com/gpu=8,example.com/fpga=1", "color": "blue", NodeCount: "3",
		"muster/revoked": "true", "fleet.cattle.io": "x",
	} {
		properties[name] = clusterv1beta1.PropertyValue{Value: value}
	}
	for what, row := range map[string]struct {
		wanted string
		want   map[string]string
	}{
		"without a list there are none": {"", map[string]string{}},
		"a fact with one value is the value, a list has a label per entry": {
			"zones, provider", map[string]string{
				"facts.muster/provider": "aws", "zones.facts.muster/eu-1a": "true", "zones.facts.muster/eu-1b": "true",
			},
		},
		"the version is the minor version": {"kubernetes-version", map[string]string{"facts.muster/kubernetes-version": "v1.36"}},
		"resources are there by name": {"extended-resources", map[string]string{
			"extended-resources.facts.muster/nvidia.com.gpu": "true", "extended-resources.facts.muster/example.com.fpga": "true",
		}},
		"a custom fact has a domain of its own":              {"color", map[string]string{"custom.facts.muster/color": "blue"}},
		"a value that no label may have makes none":          {"region", map[string]string{}},
		"no other property that the member wrote is a label": {"muster/revoked,revoked,fleet.cattle.io," + NodeCount, map[string]string{}},
	} {
		got := Labels(Wanted(row.wanted), properties)
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		for key := range got {
			if !IsLabel(key) {
				t.Errorf("%s is no label of facts", key)
			}
		}
	}
}
