package bundle

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

// isFromLost reports whether a release was deployed for this member by its hub before a restore on
// another cluster. The deployer keeps such a release until it has a BundleDeployment again.
func (d *Deployer) isFromLost(name string, delivery *delivery) bool {
	s := delivery.release
	return s != nil && !s.Agent && !d.managesAgent(name, *s) && s.Member != d.Member && slices.Contains(d.Lost, s.Member)
}

// observeLost adds whether a lost hub deployed the release. The hub may still write the
// BundleDeployments of its backup, so the release counts as unknown only after a pause.
func (s *observation) observeLost(d *Deployer, name string, delivery *delivery) {
	s.lost = d.isFromLost(name, delivery)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !s.lost || s.wanted:
		delivery.keepAt = time.Time{}
	case delivery.keepAt.IsZero():
		delivery.keepAt = d.Clock.Now().Add(d.pauses().Missing)
	}
	s.inherited, s.keepAt = s.inherited && !s.lost, delivery.keepAt
}

// keep reports a release unknown to a restored hub, and labels it, if it belongs to the present
// report. The label stays, because the resource versions of a restored hub grow again.
func (d *Deployer) keep(ctx context.Context, name string, delivery *delivery, s observation) error {
	if s.ours() && !delivery.release.HubRestored {
		if err := d.Cluster.MarkHubRestored(ctx, *delivery.release); err != nil {
			return err
		}
		kept := *delivery.release
		kept.HubRestored = true
		d.mu.Lock()
		delivery.release = &kept
		d.mu.Unlock()
	}
	d.setKept(name, describe(name, *delivery.release))
	return nil
}

// describe names a release and its Bundle, with the command to remove it.
func describe(name string, s release.Summary) applied.Kept {
	if s.Workspace != "" {
		name = s.Workspace + "/" + name
	}
	return applied.Kept{Name: fmt.Sprintf("release %s of Bundle %s", s.ID(), name), Remove: "helm uninstall RELEASE -n NAMESPACE"}
}

// setKept notes a release unknown to a restored hub.
func (d *Deployer) setKept(name string, kept applied.Kept) {
	d.problems.mu.Lock()
	defer d.problems.mu.Unlock()
	if d.problems.kept == nil {
		d.problems.kept = map[string]applied.Kept{}
	}
	d.problems.kept[name] = kept
	d.reportProblems()
}

// clearKept removes the note of a release that has its BundleDeployment again, or is gone.
func (d *Deployer) clearKept(name string) {
	d.problems.mu.Lock()
	defer d.problems.mu.Unlock()
	if _, noted := d.problems.kept[name]; noted {
		delete(d.problems.kept, name)
		d.reportProblems()
	}
}
