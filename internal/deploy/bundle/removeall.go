package bundle

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"

	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/drift"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/kubeclient"
)

// removal is a release in removal.
type removal struct {
	// name is the name of the BundleDeployment.
	name    string
	release release.Summary
	// objects are the objects of the release; nil if only its history is deleted.
	objects *drift.Set
	// over is set once nothing is left.
	over bool
}

// RemoveAll removes everything delivered to this member, regardless of the hub, because the member
// leaves with policy Delete. Run must have ended.
//
// RemoveAll calls progress at each change of the number of remaining objects, and returns when none
// remains. It can be repeated after an interruption at any point, because the history of a release
// stays until its objects are gone.
func (d *Deployer) RemoveAll(ctx context.Context, progress func(applied.Remaining)) error {
	moved := make(chan struct{}, 1)
	d.detector = drift.New(d.Cluster, func(applied.Query) { kubeclient.Notify(moved) }, func([]string) { kubeclient.Notify(moved) })
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() { _ = d.detector.Run(ctx) }) // always nil
	removals, err := d.removals(ctx)
	if err != nil {
		return err
	}
	progress(count(removals))
	loop := applied.Removal{Clock: d.Clock, Moved: moved, Progress: progress}
	return loop.Run(ctx, func(ctx context.Context) (applied.Remaining, bool, error) {
		left := d.removeEach(ctx, removals)
		removals = slices.DeleteFunc(removals, func(r *removal) bool { return r.over })
		if len(removals) > 0 {
			return left, false, nil
		}
		return left, true, d.unreadable(ctx)
	})
}

// unreadable returns an error if a Secret with this member's label has no readable release, because
// its objects are unknown.
func (d *Deployer) unreadable(ctx context.Context) error {
	found, err := d.Cluster.List(ctx)
	if err != nil {
		return err
	}
	for _, secret := range found.Unreadable {
		if secret.Member == d.Member {
			return fmt.Errorf("not all deliveries to this cluster are removed: %w", secret.Why)
		}
	}
	return nil
}

// removals returns the releases of this member, and watches their objects.
func (d *Deployer) removals(ctx context.Context) ([]*removal, error) {
	found, err := d.Cluster.List(ctx)
	if err != nil {
		return nil, err
	}
	var removals []*removal
	for name, releases := range found.Releases {
		for _, summary := range releases {
			if summary.Member != d.Member {
				continue
			}
			r := &removal{name: name, release: summary}
			removals = append(removals, r)
			if summary.KeepResources || d.managesAgent(name, summary) {
				continue
			}
			if r.objects, err = servedObjects(ctx, d.Cluster, d.detector, summary); err != nil {
				return nil, err
			}
			d.detector.Use(summary.String(), r.objects)
		}
	}
	return removals, nil
}

// count returns the initial number of objects of the releases.
func count(all []*removal) (left applied.Remaining) {
	for _, r := range all {
		left.Left += len(r.objects.Keys())
	}
	return left
}

// removeEach removes as much as possible of each release, and returns the rest.
func (d *Deployer) removeEach(ctx context.Context, removals []*removal) (left applied.Remaining) {
	var mu sync.Mutex
	workqueue.ParallelizeUntil(ctx, workers, len(removals), func(i int) {
		r := removals[i]
		now, err := d.removeOne(ctx, r)
		mu.Lock()
		defer mu.Unlock()
		left.Add(applied.Remaining{Left: now.Count, Held: now.Blocked, Retry: now.Count > 0})
		if err == nil || ctx.Err() != nil {
			return
		}
		d.Log.Info("Failed to remove a release", "release", r.release.String(), "reason", err.Error())
		left.Add(applied.Remaining{
			Left: 1, Held: []string{fmt.Sprintf("release %s/%s: %v", r.release.Namespace, r.release.Name, err)}, Retry: true,
		})
	})
	slices.Sort(left.Held)
	return left
}

// removeOne removes as much as possible of one release.
func (d *Deployer) removeOne(ctx context.Context, r *removal) (release.Left, error) {
	left, err := d.uninstall(ctx, r.name, r.release, r.release.Owner())
	if release.IsForeign(err) {
		d.Log.Info("Release left alone", "release", r.release.String(), "reason", err.Error())
		err = nil
	}
	r.over = err == nil && left.Count == 0
	if r.over {
		d.Log.Info("Release removed", "release", r.release.String(), "namespace", left.Namespace)
	}
	return left, err
}
