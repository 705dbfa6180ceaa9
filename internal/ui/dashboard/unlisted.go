package dashboard

import (
	"context"
	"slices"
)

// unlisted returns the resources a visitor may list in no known workspace. An empty list of them
// says nothing about the fleet.
func (s *Server) unlisted(ctx context.Context, v *visitor, resources ...string) (unlisted []string, err error) {
	for _, resource := range resources {
		every, err := v.may(ctx, "list", resource, "")
		if err != nil {
			return nil, err
		}
		if every {
			continue
		}
		entries, _ := s.cache.of(resource) // a problem of the dashboard's own account is on the page already
		visible, _, err := s.entries(ctx, v, clusters)
		if err != nil {
			return nil, err
		}
		allowed, err := v.mayIn(ctx, "list", resource, append(slices.Clip(entries), visible...))
		if err != nil {
			return nil, err
		}
		some := false
		for _, one := range allowed {
			some = some || one
		}
		if !some {
			unlisted = append(unlisted, resource)
		}
	}
	return unlisted, nil
}
