package membercluster

import (
	"os"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestAllConditionsFit compares the possible conditions with the limit of the definition. The API
// server refuses a status with one too many, and with it a revocation.
func TestAllConditionsFit(t *testing.T) {
	text, err := os.ReadFile("../../../../api/crds/cluster.kubernetes-fleet.io_memberclusters.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatal(err)
	}
	for _, version := range definition.Spec.Versions {
		conditions := version.Schema.OpenAPIV3Schema.Properties["status"].Properties["conditions"]
		if most := len(hubTypes) + len(reportedTypes) + maxOwn; conditions.MaxItems == nil || int64(most) > *conditions.MaxItems {
			t.Errorf("%s: there may be %d conditions, and %v fit", version.Name, most, conditions.MaxItems)
		}
	}
}
