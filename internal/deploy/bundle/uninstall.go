package bundle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-fleet/muster/internal/deploy/drift"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// agentBundle is the prefix of the names of upstream's agent Bundles.
const agentBundle = "fleet-agent"

// managesAgent reports whether a release in the agent's namespace belongs to a Bundle for
// upstream's agent. Removing it would remove the deployer itself.
func (d *Deployer) managesAgent(name string, s release.Summary) bool {
	return strings.HasPrefix(name, agentBundle) && s.Namespace == d.Cluster.AgentNamespace
}

// prune removes the release of a deleted BundleDeployment. The agent reports a long removal as a
// problem, because there is no status.
func (d *Deployer) prune(ctx context.Context, name string, delivery *delivery) error {
	err := d.removeRelease(ctx, name, delivery, *delivery.release)
	switch {
	case err == nil:
		d.clearProblem(name)
	case !errors.Is(err, release.ErrBusy) && d.Clock.Since(delivery.removingSince) >= ReportAfter:
		d.setProblem(name, reasons.RemovalBlocked, err.Error())
	}
	return err
}

// removeRelease removes as much as possible of a release of a deployment. It returns an error as
// long as an object is left.
func (d *Deployer) removeRelease(ctx context.Context, name string, delivery *delivery, s release.Summary) error {
	owner := d.owner(name, delivery)
	if s.Member != d.Member && !s.Agent {
		// The release had a BundleDeployment, so it belongs to this member, even if another agent
		// deployed it.
		if err := d.Cluster.SetMember(ctx, s, owner, s.HubUID, s.HubVersion); err != nil {
			return d.ignoreForeign(name, delivery, s, err)
		}
	}
	left, err := d.uninstall(ctx, name, s, owner)
	if err != nil {
		return d.ignoreForeign(name, delivery, s, err)
	}
	if left.Count > 0 {
		return errors.New(remaining(name, s, left))
	}
	d.Log.Info("Release removed", "deployment", name, "release", s.String(), "kept", s.KeepResources, "namespace", left.Namespace)
	d.dropRelease(name, delivery, s)
	d.wakeForRelease(s.ID())
	return nil
}

// ignoreForeign forgets a release after a change of its owner.
func (d *Deployer) ignoreForeign(name string, delivery *delivery, s release.Summary, err error) error {
	if !release.IsForeign(err) {
		return err
	}
	d.Log.Info("Release left alone", "deployment", name, "reason", err.Error())
	d.dropRelease(name, delivery, s)
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

// owner returns the owner of the release of a deployment.
func (d *Deployer) owner(name string, delivery *delivery) release.Owner {
	workspace := delivery.workspace
	if workspace == "" && delivery.release != nil {
		workspace = delivery.release.Workspace
	}
	return release.Owner{Bundle: name, Workspace: workspace, Member: d.Member}
}

// watchRemoval sets the start of the removal of a release, and watches its objects. Objects without
// a watch are read again after a while.
func (d *Deployer) watchRemoval(ctx context.Context, name string, delivery *delivery, s release.Summary) {
	d.mu.Lock()
	if delivery.removingSince.IsZero() {
		delivery.removingSince = d.Clock.Now()
	}
	d.mu.Unlock()
	if delivery.set != nil || s.KeepResources {
		return
	}
	set, err := servedObjects(ctx, d.Cluster, d.detector, s)
	if err != nil {
		d.Log.Info("Failed to watch the objects of a release in removal", "release", s.String(), "reason", err.Error())
		return
	}
	d.watch(name, delivery, set)
}

// servedObjects returns the objects of a release with a served kind.
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

// remaining describes the rest of a release.
func remaining(name string, s release.Summary, left release.Left) string {
	what := fmt.Sprintf("release %s/%s of Bundle %s is not removed yet: %s", s.Namespace, s.Name, name, objects(left.Count))
	if len(left.Blocked) == 0 {
		return what + " being deleted"
	}
	return fmt.Sprintf("%s left; %s: repair that, or delete the remaining objects by hand; the agent retries",
		what, kube.JoinTexts(left.Blocked[:1], len(left.Blocked)))
}

func objects(count int) string {
	if count == 1 {
		return "1 object is"
	}
	return fmt.Sprintf("%d objects are", count)
}
