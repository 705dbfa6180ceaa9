package bundle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/deploy/drift"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/kube"
)

// agentBundle is how the names of the Bundles begin by which upstream's agents are managed.
const agentBundle = "fleet-agent"

// managesAgent says whether a release is that of a Bundle by which upstream's agent is managed,
// which is in the agent's namespace: to remove the release would be to remove who removes it.
func (d *Deployer) managesAgent(name string, s release.Summary) bool {
	return strings.HasPrefix(name, agentBundle) && s.Namespace == d.Cluster.AgentNamespace
}

// prune removes the release of a deleted BundleDeployment. A removal that takes long is a problem that the agent reports: there is no status.
func (d *Deployer) prune(ctx context.Context, name string, of *delivery) error {
	err := d.removeRelease(ctx, name, of, *of.release)
	switch {
	case err == nil:
		d.clearProblem(name)
	case !errors.Is(err, release.ErrBusy) && d.Clock.Since(of.removingSince) >= ReportAfter:
		d.setProblem(name, protocol.ReasonRemovalBlocked, err.Error())
	}
	return err
}

// removeRelease removes what can be removed of a release of a deployment. An error is returned as long as an object is left.
func (d *Deployer) removeRelease(ctx context.Context, name string, of *delivery, s release.Summary) error {
	owner := d.owner(name, of)
	if s.Member != d.Member && !s.Agent {
		// The release had a BundleDeployment, so it is this member's although an earlier member or another agent deployed it.
		if err := d.Cluster.SetMember(ctx, s, owner, s.HubUID, s.HubVersion); err != nil {
			return d.ignoreForeign(name, of, s, err)
		}
	}
	left, err := d.uninstall(ctx, name, s, owner)
	if err != nil {
		return d.ignoreForeign(name, of, s, err)
	}
	if left.Count > 0 {
		return errors.New(remaining(name, s, left))
	}
	d.Log.Info("release removed", "deployment", name, "release", s.String(), "kept", s.KeepResources, "namespace", left.Namespace)
	d.dropRelease(name, of, s)
	d.wakeForRelease(s.ID())
	return nil
}

// ignoreForeign forgets a release that belongs to somebody else by now.
func (d *Deployer) ignoreForeign(name string, of *delivery, s release.Summary, err error) error {
	if !release.IsForeign(err) {
		return err
	}
	d.Log.Info("release left alone", "deployment", name, "reason", err.Error())
	d.dropRelease(name, of, s)
	return nil
}

func (d *Deployer) uninstall(ctx context.Context, name string, of release.Summary, owner release.Owner) (release.Left, error) {
	switch {
	case of.Agent:
		return release.Left{}, d.Cluster.Disown(of, owner)
	case d.managesAgent(name, of):
		return release.Left{}, d.Cluster.Forget(ctx, of, owner)
	}
	return d.Cluster.Remove(ctx, of, owner)
}

// owner is the owner on whose behalf the release of a deployment is changed.
func (d *Deployer) owner(name string, of *delivery) release.Owner {
	workspace := of.workspace
	if workspace == "" && of.release != nil {
		workspace = of.release.Workspace
	}
	return release.Owner{Bundle: name, Workspace: workspace, Member: d.Member}
}

// watchRemoval sets since when a release is being removed, and watches its objects. Objects that cannot be watched are read again after a while.
func (d *Deployer) watchRemoval(ctx context.Context, name string, of *delivery, s release.Summary) {
	d.mu.Lock()
	if of.removingSince.IsZero() {
		of.removingSince = d.Clock.Now()
	}
	d.mu.Unlock()
	if of.set != nil || s.KeepResources {
		return
	}
	set, err := servedObjects(ctx, d.Cluster, d.detector, s)
	if err != nil {
		d.Log.Info("watching the objects of a release that is removed failing", "release", s.String(), "reason", err.Error())
		return
	}
	d.watch(name, of, set)
}

// servedObjects are the objects of a release whose kinds are served.
func servedObjects(ctx context.Context, cluster *release.Cluster, detector *drift.Detector, s release.Summary) (*drift.Set, error) {
	objects, err := cluster.Objects(ctx, s)
	if err != nil {
		return nil, err
	}
	objects = slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool {
		_, served, err := cluster.Find(ctx, object.GroupVersionKind())
		return err != nil || !served
	})
	return detector.NewSet(s, objects)
}

// remaining is the message about what is left of a release.
func remaining(name string, s release.Summary, left release.Left) string {
	what := fmt.Sprintf("release %s/%s of Bundle %s is not removed yet: %s", s.Namespace, s.Name, name, objects(left.Count))
	if len(left.Blocked) == 0 {
		return what + " being deleted"
	}
	return fmt.Sprintf("%s left; %s: mend that, or delete what is left by hand; it is tried again", what, kube.JoinTexts(left.Blocked[:1], len(left.Blocked)))
}

func objects(count int) string {
	if count == 1 {
		return "1 object is"
	}
	return fmt.Sprintf("%d objects are", count)
}
