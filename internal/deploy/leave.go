package deploy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muster-fleet/muster/internal/agent/work"
	"github.com/muster-fleet/muster/internal/deploy/live"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

// removeRetry is when to try again to uninstall a release that could not be.
const removeRetry = 30 * time.Second

// removal is a release that goes.
type removal struct {
	// name is that of the BundleDeployment.
	name    string
	release release.Summary
	// objects are those that go with it; nil if it is only forgotten.
	objects *live.Set
	// over says that nothing is left to do.
	over bool
}

// RemoveAll removes everything that was delivered to this member, whatever the hub says. It is what a member does that leaves with policy
// Delete; the caller sees to it that Run is over. It tells whenever another number of objects is left, and returns when none is. It can be
// called again after it was interrupted at any point, because the history of a release is kept until its objects are gone.
func (d *Deployer) RemoveAll(ctx context.Context, progress func(work.Remaining)) error {
	moved := make(chan struct{}, 1)
	d.watcher = live.NewWatcher(d.Cluster, func(live.Key) {
		select {
		case moved <- struct{}{}:
		default:
		}
	})
	ctx, cancel := context.WithCancel(ctx)
	defer d.watcher.Wait()
	defer cancel()
	all, err := d.removals(ctx)
	if err != nil {
		return err
	}
	told := count(all)
	progress(told)
	for len(all) > 0 {
		left, failed := d.removeEach(ctx, all)
		if left.Left != told.Left || !slices.Equal(left.Held, told.Held) {
			progress(left)
			told = left
		}
		all = slices.DeleteFunc(all, func(r *removal) bool { return r.over })
		if len(all) == 0 {
			break
		}
		if err := d.untilMoved(ctx, moved, failed); err != nil {
			return err
		}
	}
	if err := d.unreadable(ctx); err != nil {
		return err
	}
	progress(work.Remaining{})
	return nil
}

// unreadable is an error if there is a release of this member of which nobody can say what it has delivered.
func (d *Deployer) unreadable(ctx context.Context) error {
	found, err := d.Cluster.List(ctx)
	if err != nil {
		return err
	}
	for _, secret := range found.Unreadable {
		if secret.Member == d.Member {
			return fmt.Errorf("what was delivered to this cluster is not all removed: %w", secret.Why)
		}
	}
	return nil
}

// untilMoved waits until something went, or until it is time to try again what failed.
func (d *Deployer) untilMoved(ctx context.Context, moved <-chan struct{}, failed bool) error {
	var again <-chan time.Time
	if failed {
		timer := d.Clock.NewTimer(removeRetry)
		defer timer.Stop()
		again = timer.C()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-again:
	case <-moved:
	}
	return nil
}

// removals are the releases of this member, whose objects are watched from now on.
func (d *Deployer) removals(ctx context.Context) ([]*removal, error) {
	found, err := d.Cluster.List(ctx)
	if err != nil {
		return nil, err
	}
	var all []*removal
	var keys [][]live.Key
	for name, summary := range found.Releases {
		if summary.Member != d.Member {
			continue
		}
		r := &removal{name: name, release: summary}
		all = append(all, r)
		if summary.KeepResources || strings.HasPrefix(name, agentBundle) {
			continue
		}
		if r.objects, err = leaving(ctx, d.Cluster, d.watcher, summary); err != nil {
			return nil, err
		}
		keys = append(keys, r.objects.Keys())
	}
	d.watcher.Watch(ctx, live.Kinds(keys...))
	return all, nil
}

// count is how many objects there were.
func count(all []*removal) work.Remaining {
	var left work.Remaining
	for _, r := range all {
		if r.objects != nil {
			left.Left += len(r.objects.Keys())
		}
	}
	return left
}

// removeEach goes on with each removal, and says what is left and whether something failed.
func (d *Deployer) removeEach(ctx context.Context, all []*removal) (left work.Remaining, failed bool) {
	var mu sync.Mutex
	room, removing := make(chan struct{}, workers), sync.WaitGroup{}
	for _, r := range all {
		room <- struct{}{}
		removing.Go(func() {
			defer func() { <-room }()
			now, err := d.goOn(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			left.Left, left.Held = left.Left+now.Count, append(left.Held, now.Blocked...)
			failed = failed || now.Count > 0
			if err == nil || ctx.Err() != nil {
				return
			}
			d.Log.Info("removing a release failing", "release", r.release.String(), "reason", err.Error())
			failed = true
			left.Left++
			left.Held = append(left.Held, fmt.Sprintf("release %s/%s: %v", r.release.Namespace, r.release.Name, err))
		})
	}
	removing.Wait()
	slices.Sort(left.Held)
	return left, failed
}

// goOn removes what it can of a release.
func (d *Deployer) goOn(ctx context.Context, r *removal) (release.Left, error) {
	left, err := d.uninstall(ctx, r.name, r.release, r.release.Owner())
	if release.IsForeign(err) {
		d.Log.Info("release left alone", "release", r.release.String(), "reason", err.Error())
		err = nil
	}
	r.over = err == nil && left.Count == 0
	if r.over {
		d.Log.Info("release removed", "release", r.release.String(), "namespace", left.Namespace)
	}
	return left, err
}
