package rollup

import (
	"strings"
	"sync"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

const (
	// maxDeployed limits the resources kept of a deployment.
	maxDeployed = 200
	// maxShared limits the resources in all lists for new deployments to share.
	maxShared = 16384
)

// lists holds lists of resources by their text. Deployments of one version have equal lists, and
// the cache needs each list once.
var lists = struct {
	sync.Mutex
	byText map[string][]fleet.DeployedResource
	total  int
}{byText: map[string][]fleet.DeployedResource{}}

// Shared returns the first resources of a deployment, without their times of creation. Equal lists
// share their memory.
func Shared(resources []fleet.DeployedResource) []fleet.DeployedResource {
	resources = resources[:min(len(resources), maxDeployed)]
	if len(resources) == 0 {
		return nil
	}
	var text strings.Builder
	for _, r := range resources {
		for _, part := range []string{r.APIVersion, r.Kind, r.Namespace, r.Name} {
			text.WriteString(part)
			text.WriteByte(0)
		}
	}
	lists.Lock()
	defer lists.Unlock()
	if list, found := lists.byText[text.String()]; found {
		return list
	}
	list := make([]fleet.DeployedResource, len(resources))
	for i, r := range resources {
		list[i] = fleet.DeployedResource{APIVersion: strings.Clone(r.APIVersion), Kind: strings.Clone(r.Kind),
			Namespace: strings.Clone(r.Namespace), Name: strings.Clone(r.Name)}
	}
	if lists.total += len(list); lists.total > maxShared { // deployments keep their shared lists
		clear(lists.byText)
		lists.total = len(list)
	}
	lists.byText[text.String()] = list
	return list
}
