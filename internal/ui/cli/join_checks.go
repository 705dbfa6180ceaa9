package cli

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// mayBegin refuses, before anything is written on the hub, what joinCluster would refuse after it
// has created the token. Without --hub-url, the address of the hub may come with the token.
func (j *joiner) mayBegin(ctx context.Context, cluster, hub *checked) error {
	is, err := j.mayMove(ctx, cluster)
	if err != nil {
		return err
	}
	values, err := j.expectedValues(hub)
	if err != nil {
		return err
	}
	address := values["apiServerURL"]
	if known := j.hubURL != "" || address != hub.server; !j.moves && (known || is.server == address) {
		if err := j.mayTake(ctx, cluster, hub, address); err != nil {
			return err
		}
	}
	_, err = cluster.agentFits(ctx, values)
	return err
}

// mayReplace refuses, before anything is written, what agentFits would refuse when the token is
// there.
func (j *joiner) mayReplace(ctx context.Context, cluster, hub *checked) error {
	values, err := j.expectedValues(hub)
	if err != nil {
		return err
	}
	_, err = cluster.agentFits(ctx, values)
	return err
}

// expectedValues returns the values of the chart fleet-agent as far as they are known without the
// token.
func (j *joiner) expectedValues(hub *checked) (map[string]any, error) {
	const none = "none-yet"
	return j.address(map[string]any{"apiServerURL": hub.server, "token": none, "tokenName": none, "clusterNamespace": none})
}

// mayMove returns the membership of a cluster. For muster move NAME it refuses any other Cluster.
func (j *joiner) mayMove(ctx context.Context, cluster *checked) (is installedAgent, err error) {
	is, err = cluster.installedFor(ctx)
	switch {
	case err != nil:
		return is, fmt.Errorf("checking whether %s is already a member: %w", cluster.role, err)
	case j.moved != "" && is.server == "":
		return is, fmt.Errorf("%s is not a Cluster of any hub, so it cannot move as %s: check muster get on its hub", cluster.role, j.moved)
	case j.moved != "" && j.moved != is.record.Name && j.moved != is.record.String():
		return is, fmt.Errorf("%s is Cluster %s of the hub at %s, not %s: it has moved already, or the --context is wrong",
			cluster.role, is.record, is.server, j.moved)
	}
	return is, nil
}

// mayTake refuses a member of another hub or workspace, except for a move. The hub is nil
// without access to it.
func (j *joiner) mayTake(ctx context.Context, cluster, hub *checked, address any) error {
	is, err := j.mayMove(ctx, cluster)
	switch {
	case err != nil:
		return err
	case j.moves:
		if is.server != "" && (is.server != address || is.record.Namespace != j.workspace()) {
			j.former = fmt.Sprintf("It was Cluster %s of the hub at %s", is.record, is.server)
			j.leavesHub = is.server != address
		}
		return nil
	case is.server != "" && is.server != address:
		return fmt.Errorf("%s is a member of the hub at %s, as Cluster %s: muster move takes it here; or if that is this hub, use --hub-url %s",
			cluster.role, is.server, is.record, is.server)
	case hub == nil || is.record.Namespace == "" || is.record.Namespace == j.workspace():
		return nil
	}
	if err := hub.Get(ctx, is.record, &fleet.Cluster{}); apierrors.IsNotFound(err) && !kube.NotServed(err) {
		return nil // the agent has left
	}
	return fmt.Errorf("%s is a member already, as Cluster %s: muster move takes it to workspace %s", cluster.role, is.record, j.workspace())
}
