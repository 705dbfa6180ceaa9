package dashboard

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mostRuns limits the staged update runs shown for a placement.
const mostRuns = 20

// runsOf is the key of the staged update runs of one kind and one placement.
type runsOf struct{ resource, placement string }

// indexRun replaces an entry among the staged update runs of a placement; the caller has the lock.
func (r *fleetCache) indexRun(resource string, before, after *entry) {
	if before != nil && before.placement != "" {
		of := runsOf{resource, before.placement}
		if delete(r.runs[of], before.name); len(r.runs[of]) == 0 {
			delete(r.runs, of)
		}
	}
	if after != nil && after.placement != "" {
		of := runsOf{resource, after.placement}
		if r.runs[of] == nil {
			r.runs[of] = map[string]*entry{}
		}
		r.runs[of][after.name] = after
	}
}

// ofPlacement returns the staged update runs of a placement, the newest first, as of does.
func (r *fleetCache) ofPlacement(resource, placement string) ([]*entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.runs[runsOf{resource, placement}]), func(a, b *entry) int {
		return cmp.Or(b.object.GetCreationTimestamp().Compare(a.object.GetCreationTimestamp().Time), strings.Compare(a.name, b.name))
	}), r.problem(resource)
}

// runsOfPlacement returns the staged update runs of a placement for a visitor.
func (s *Server) runsOfPlacement(ctx context.Context, v *visitor, o client.Object) (seen []*entry, stale []string, err error) {
	resource := clusterRuns
	if o.GetNamespace() != "" {
		resource = runs
	}
	return s.seenBy(ctx, v, func(resource string) ([]*entry, error) {
		return s.cache.ofPlacement(resource, client.ObjectKeyFromObject(o).String())
	}, []string{resource})
}

// addRuns adds the links to the staged update runs of a placement. It returns why they may be out
// of date.
func (s *Server) addRuns(ctx context.Context, v *visitor, d *shownDelivery, o client.Object) (stale []string, err error) {
	all, stale, err := s.runsOfPlacement(ctx, v, o)
	all, d.MoreRuns = atMost(mostRuns, all)
	for _, e := range all {
		run := delivery{entry: e}
		run.Ready, run.All = share(e.members)
		d.Runs = append(d.Runs, run)
	}
	return stale, err
}
