package sourcestatus

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

const (
	// maxResources limits the listed resources, and maxBytes their length as JSON.
	maxResources, maxBytes = 500, 256 << 10
	// maxClusters limits the Clusters with counts of their own, and maxNamed the Clusters named for a
	// state of a resource.
	maxClusters, maxNamed = 200, 20
)

// result returns the fields of the status.
func (t *tally) result() *fleet.SourceResources {
	result := &fleet.SourceResources{DesiredReadyClusters: len(t.clusters), ResourceCounts: t.counts}
	for _, on := range t.clusters {
		if !on.unready {
			result.ReadyClusters++
		}
	}
	result.PerClusterResourceCounts = t.perCluster()
	resources := t.resources()
	bytes := 0
	for _, r := range resources {
		text, err := json.Marshal(r)
		if bytes += len(text); err != nil || bytes > maxBytes || len(result.Resources) == maxResources {
			break
		}
		result.Resources = append(result.Resources, *r)
	}
	if left := len(resources) - len(result.Resources); left > 0 {
		result.ResourceErrors = append(result.ResourceErrors, fmt.Sprintf("%d more resources are not listed: resourceCounts has all", left))
	}
	if left := len(t.clusters) - len(result.PerClusterResourceCounts); left > 0 {
		result.ResourceErrors = append(result.ResourceErrors, fmt.Sprintf("%d more Clusters have no counts of their own here", left))
	}
	return result
}

// perCluster returns the counts of the first Clusters; those with a problem come first.
func (t *tally) perCluster() map[string]fleet.ResourceCounts {
	names := slices.SortedFunc(maps.Keys(t.clusters), func(a, b string) int {
		if t.clusters[a].unready != t.clusters[b].unready {
			if t.clusters[a].unready {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	counts := map[string]fleet.ResourceCounts{}
	for _, name := range names[:min(len(names), maxClusters)] {
		counts[name] = t.clusters[name].counts
	}
	return counts
}

// resources returns all resources, those with the worst states first.
func (t *tally) resources() []*fleet.SourceResource {
	found := map[resourceKey]*fleet.SourceResource{}
	get := func(key resourceKey) *fleet.SourceResource {
		if found[key] == nil {
			found[key] = described(key)
		}
		return found[key]
	}
	for _, g := range t.sorted() {
		for _, r := range g.resources {
			key := resourceKey{r.APIVersion, r.Kind, r.Namespace, r.Name}
			resource, others := get(key), t.exceptions[key]
			resource.IncompleteState = resource.IncompleteState || g.partial
			for _, cluster := range g.clusters {
				if _, differs := others[cluster]; !differs {
					note(resource, cluster, g.state)
				}
			}
		}
	}
	for key, states := range t.exceptions {
		resource := get(key)
		for _, cluster := range slices.Sorted(maps.Keys(states)) {
			note(resource, cluster, states[cluster])
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *fleet.SourceResource) int {
		return cmp.Or(cmp.Compare(rank(a.State), rank(b.State)), strings.Compare(a.APIVersion, b.APIVersion), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.ID, b.ID))
	})
}

// stated is a group with its state.
type stated struct {
	*group
	state state
}

// sorted returns the groups in a stable order, each with its first Clusters.
func (t *tally) sorted() (groups []stated) {
	for key, g := range t.groups {
		slices.Sort(g.clusters)
		g.clusters = g.clusters[:min(len(g.clusters), maxNamed)]
		groups = append(groups, stated{g, key.state})
	}
	slices.SortFunc(groups, func(a, b stated) int {
		return cmp.Or(cmp.Compare(rank(a.state.name), rank(b.state.name)), strings.Compare(a.clusters[0], b.clusters[0]),
			strings.Compare(a.state.message, b.state.message))
	})
	return groups
}

// described returns a resource without a state.
func described(key resourceKey) *fleet.SourceResource {
	r := &fleet.SourceResource{APIVersion: key.apiVersion, Kind: key.kind, Namespace: key.namespace, Name: key.name,
		ID: key.name, Type: strings.ToLower(key.kind), PerClusterState: &fleet.PerClusterState{}}
	if group, _, grouped := strings.Cut(key.apiVersion, "/"); grouped {
		r.Type = group + "." + r.Type
	}
	if key.namespace != "" {
		r.ID = key.namespace + "/" + key.name
	}
	return r
}

// note adds the state of a resource on a Cluster.
func note(r *fleet.SourceResource, cluster string, s state) {
	if r.State == "" || rank(s.name) < rank(r.State) {
		r.State, r.Message = s.name, s.message
	}
	r.Error, r.Transitioning = r.Error || s.fails, r.Transitioning || s.moves
	if list := listOf(r.PerClusterState, s.name); len(*list) < maxNamed && !slices.Contains(*list, cluster) {
		*list = append(*list, cluster)
	}
}

// listOf returns the list of the Clusters with a state.
func listOf(p *fleet.PerClusterState, name string) *[]string {
	switch name {
	case string(fleet.StateErrApplied):
		return &p.ErrApplied
	case missing:
		return &p.Missing
	case orphaned:
		return &p.Orphaned
	case string(fleet.StateModified):
		return &p.Modified
	case string(fleet.StateNotReady):
		return &p.NotReady
	case string(fleet.StateWaitApplied):
		return &p.WaitApplied
	case unknown:
		return &p.Unknown
	case string(fleet.StatePending):
		return &p.Pending
	}
	return &p.Ready
}
