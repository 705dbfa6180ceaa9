package cli

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// mayBegin makes the checks of joinCluster before anything is written on the hub; joinCluster
// repeats them after it has created the token. Without --hub-url, the token may contain the address
// of the hub.
func (j *joiner) mayBegin(ctx context.Context, cluster, hub *checked) error {
	installed, err := j.mayMove(ctx, cluster)
	if err != nil {
		return err
	}
	values, err := j.expectedValues(hub)
	if err != nil {
		return err
	}
	address := values["apiServerURL"]
	if known := j.hubURL != "" || address != hub.server; !j.moves && (known || installed.server == address) {
		if err := j.mayTake(ctx, cluster, hub, address); err != nil {
			return err
		}
	}
	_, err = cluster.agentFits(ctx, values)
	return err
}

// mayReplace makes the checks of agentFits before anything is written; agentFits repeats them with
// the token.
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
func (j *joiner) mayMove(ctx context.Context, cluster *checked) (installed installedAgent, err error) {
	installed, err = cluster.installedFor(ctx)
	switch {
	case err != nil:
		return installed, fmt.Errorf("checking whether %s is already a member: %w", cluster.role, err)
	case j.moved != "" && installed.server == "":
		return installed, fmt.Errorf("%s is not a Cluster of any hub, so it cannot move as %s: check muster get on its hub",
			cluster.role, j.moved)
	case j.moved != "" && j.moved != installed.record.Name && j.moved != installed.record.String():
		return installed, fmt.Errorf("%s is Cluster %s of the hub at %s, not %s: it has moved already, or the --context is wrong",
			cluster.role, installed.record, installed.server, j.moved)
	}
	return installed, nil
}

// mayTake refuses a member of another hub, workspace or name, except for a move. The hub is nil
// without access to it.
func (j *joiner) mayTake(ctx context.Context, cluster, hub *checked, address any) error {
	installed, err := j.mayMove(ctx, cluster)
	switch {
	case err != nil:
		return err
	case j.moves:
		if installed.server != "" && (installed.server != address || installed.record.Namespace != j.workspace()) {
			j.former = fmt.Sprintf("It was Cluster %s of the hub at %s", installed.record, installed.server)
			j.leavesHub = installed.server != address
		}
		return nil
	case installed.server != "" && installed.server != address:
		return fmt.Errorf("%s is a member of the hub at %s, as Cluster %s: muster move takes it here; or if that is this hub, use --hub-url %s",
			cluster.role, installed.server, installed.record, installed.server)
	}
	renamed := j.name != "" && j.name != installed.record.Name
	elsewhere := installed.record.Namespace != j.workspace()
	if hub == nil || installed.record.Namespace == "" || !elsewhere && !renamed {
		return nil
	}
	switch err := hub.Get(ctx, installed.record, &fleet.Cluster{}); {
	case apierrors.IsNotFound(err) && !kube.NotServed(err):
		return nil // the agent has left
	case err != nil && !apierrors.IsForbidden(err): // without the right to read it, the settings of the agent decide
		return fmt.Errorf("checking whether %s is still Cluster %s: %w", cluster.role, installed.record, err)
	}
	if !elsewhere {
		return fmt.Errorf("%s is a member already, as Cluster %s: use --name %s, or run muster leave %s first",
			cluster.role, installed.record, installed.record.Name, installed.record)
	}
	return fmt.Errorf("%s is a member already, as Cluster %s: muster move takes it to workspace %s",
		cluster.role, installed.record, j.workspace())
}
