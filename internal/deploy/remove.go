package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-fleet/muster/internal/agent/deployer"
	"github.com/muster-fleet/muster/internal/deploy/live"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

// prune removes the release of a BundleDeployment that is gone. What keeps it from being removed is told to the agent once it lasts: there is
// no status left to say it in.
func (d *Deployer) prune(ctx context.Context, name string, of *delivery) error {
	err := d.takeAway(ctx, name, of)
	switch {
	case err == nil:
		d.clearProblem(name)
	case !errors.Is(err, release.ErrBusy) && d.Clock.Since(of.leaving) >= patience:
		d.setProblem(name, deployer.ReasonRemovalBlocked, err.Error())
	}
	return err
}

// takeAway goes as far as it can with the removal of a release. It returns an error as long as something is left.
func (d *Deployer) takeAway(ctx context.Context, name string, of *delivery) error {
	s, owner := *of.release, d.owner(name, of)
	if s.Member != d.Member && !s.Agent {
		// There was a BundleDeployment for it: it is this member's although an earlier one or another agent made it.
		if err := d.Cluster.Claim(ctx, s, owner); err != nil {
			return d.leftAlone(name, of, err)
		}
	}
	left, err := d.uninstall(ctx, name, s, owner)
	if err != nil {
		return d.leftAlone(name, of, err)
	}
	if left.Count > 0 {
		return errors.New(remaining(name, s, left))
	}
	d.Log.Info("release removed", "deployment", name, "release", s.String(), "kept", s.KeepResources, "namespace", left.Namespace)
	d.hold(name, of, nil)
	d.freed(s.Name)
	return nil
}

// leftAlone forgets a release that turns out to be somebody else's by now.
func (d *Deployer) leftAlone(name string, of *delivery, err error) error {
	if !release.IsForeign(err) {
		return err
	}
	d.Log.Info("release left alone", "deployment", name, "reason", err.Error())
	d.hold(name, of, nil)
	return nil
}

func (d *Deployer) uninstall(ctx context.Context, name string, of release.Summary, owner release.Owner) (release.Left, error) {
	switch {
	case of.Agent:
		return release.Left{}, d.Cluster.Disown(of, owner)
	case strings.HasPrefix(name, agentBundle):
		return release.Left{}, d.Cluster.Forget(ctx, of, owner)
	}
	return d.Cluster.Remove(ctx, of, owner)
}

// owner is on whose behalf something is done to the release of a deployment.
func (d *Deployer) owner(name string, of *delivery) release.Owner {
	workspace := of.workspace
	if workspace == "" && of.release != nil {
		workspace = of.release.Workspace
	}
	return release.Owner{Bundle: name, Workspace: workspace, Member: d.Member}
}

// watchLeaving notes that a release is being removed, and follows its objects, so that their going is noticed. What cannot be followed is
// looked up again in time.
func (d *Deployer) watchLeaving(ctx context.Context, name string, of *delivery) {
	d.mu.Lock()
	if of.leaving.IsZero() {
		of.leaving = d.Clock.Now()
	}
	d.mu.Unlock()
	if of.set != nil || of.release.KeepResources {
		return
	}
	set, err := leaving(ctx, d.Cluster, d.watcher, *of.release)
	if err != nil {
		d.Log.Info("watching the objects of a release that is removed failing", "release", of.release.String(), "reason", err.Error())
		return
	}
	d.watch(ctx, name, of, set)
}

// leaving is the objects of a release that may be there.
func leaving(ctx context.Context, cluster *release.Cluster, watcher *live.Watcher, s release.Summary) (*live.Set, error) {
	objects, err := cluster.Objects(ctx, s)
	if err != nil {
		return nil, err
	}
	objects = slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool {
		_, served, err := cluster.Find(ctx, object.GroupVersionKind())
		return err != nil || !served
	})
	return watcher.NewSet(s, objects)
}

// remaining words what is left of a release.
func remaining(name string, s release.Summary, left release.Left) string {
	what := fmt.Sprintf("release %s/%s of Bundle %s is not removed yet: %s", s.Namespace, s.Name, name, objects(left.Count))
	if len(left.Blocked) == 0 {
		return what + " being deleted"
	}
	return fmt.Sprintf("%s left; %s%s: mend that, or delete what is left by hand; it is tried again", what, left.Blocked[0], more(len(left.Blocked)))
}

func objects(count int) string {
	if count == 1 {
		return "1 object is"
	}
	return fmt.Sprintf("%d objects are", count)
}
