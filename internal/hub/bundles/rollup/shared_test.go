package rollup

import (
	"fmt"
	"testing"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestEqualListsOfResourcesAreSharedAndBounded(t *testing.T) {
	list := func(at string, count int) (resources []fleet.DeployedResource) {
		for i := range count {
			resources = append(resources, fleet.DeployedResource{APIVersion: "v1", Kind: "Secret", Name: fmt.Sprint(i), CreatedAt: at})
		}
		return resources
	}
	one, other := Shared(list("today", 300)), Shared(list("yesterday", 300))
	if len(one) != maxDeployed || &one[0] != &other[0] || one[7].Name != "7" || one[7].CreatedAt != "" {
		t.Errorf("%d resources, %+v", len(one), one[7])
	}
	if Shared(nil) != nil {
		t.Error("no list became one")
	}
	for i := range 200 {
		Shared(append(list("", 190), fleet.DeployedResource{Name: fmt.Sprint("own", i)}))
	}
	if lists.total > maxShared {
		t.Errorf("%d resources are held", lists.total)
	}
	if one[7].Name != "7" {
		t.Error("a list has changed")
	}
}
