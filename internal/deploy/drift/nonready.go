package drift

import (
	"context"
	"strings"
	"time"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/cause"
	"github.com/muster-fleet/muster/internal/deploy/readiness"
)

// countNotReady counts an unready object.
func (o *Observation) countNotReady(key Key, is summary) {
	o.Counts.NotReady++
	if len(o.NonReady) < maxNamed {
		o.NonReady, o.unready = append(o.NonReady, nonReady(key, is)), append(o.unready, key)
	}
}

// follow adds causes to the named unready objects. It reads with the account of the release.
func (d *Detector) follow(ctx context.Context, s *Set, o *Observation, now time.Time) error {
	acting, err := d.cluster.As(s.release.ServiceAccount)
	if err != nil {
		return err
	}
	round := s.looks.Begin(now)
	for i, key := range o.unready {
		query, n := key.Object(), &o.NonReady[i]
		object := cause.Object{GroupVersionResource: query.GroupVersionResource, NamespacedName: query.NamespacedName, UID: n.UID}
		found := round.Of(ctx, acting.Dynamic, object, strings.Join(n.Summary.Message, "; "))
		n.Summary.Message = append(n.Summary.Message, found...)
	}
	o.LookAgain = round.End()
	return nil
}

// nonReady returns the status of an unready object.
func nonReady(key Key, object summary) fleet.NonReadyStatus {
	n := fleet.NonReadyStatus{
		UID: object.uid, Kind: key.Kind.Kind, APIVersion: key.Kind.GroupVersion().String(), Namespace: key.Namespace, Name: key.Name,
		Summary: fleet.ReadinessSummary{
			State: string(object.readiness.State), Error: object.readiness.State == readiness.Failed,
			Transitioning: object.readiness.State == readiness.Progressing || object.readiness.State == readiness.Terminating,
		},
	}
	if object.readiness.Message != "" {
		n.Summary.Message = []string{object.readiness.Message}
	}
	return n
}
