package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/updaterun"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// Approval requests, outside the cache of the fleet.
const (
	clusterApprovals = "clusterapprovalrequests"
	approvals        = "approvalrequests"
)

// groupOf returns the API group of a resource.
func groupOf(resource string) string {
	switch resource {
	case clusterApprovals, approvals, evictions, works:
		return placement.GroupVersion.Group
	}
	return kinds[resource].group
}

// shownRun is the page data of a staged update run.
type shownRun struct {
	// Placement is the placement rolled out by the run. Version is the version of it.
	Placement link
	Version   string
	Stages    []view.Stage
	// Approval is the pending approval of the run; nil without one.
	Approval *stageApproval
}

// stageApproval is the approval of a stage.
type stageApproval struct {
	// Path is the page of the run, UID the run, Value the approval request.
	Path  string
	UID   types.UID
	Stage string
	Value string
	// Refused is the reason why the visitor may not approve; empty if they may.
	Refused string
}

// ofRun adds the stages of a run, and its pending approval.
func (d *shownDelivery) ofRun(ctx context.Context, v *visitor, resource string, run view.Run) error {
	placed := &placement.ClusterResourcePlacement{}
	placed.Name = run.Spec.PlacementName
	to := link{placed.Name, deliveryPath(clusterPlacements, placed)}
	if namespace := run.GetNamespace(); namespace != "" {
		placed.Namespace = namespace
		to = link{view.NameOf(placed), deliveryPath(placements, placed)}
	}
	d.Run = &shownRun{Placement: to, Version: run.Status.ResourceSnapshotIndexUsed, Stages: run.Stages()}
	for i, stage := range d.Run.Stages {
		if stage.Name == placement.DeletionStage {
			d.Run.Stages[i].Name = "removal from members no longer picked"
		}
	}
	stage, request := run.Awaited()
	if request == "" {
		return nil
	}
	refused, err := mayNotApprove(ctx, v, run.GetNamespace())
	d.Run.Approval = &stageApproval{Path: deliveryPath(resource, run), UID: run.GetUID(), Stage: stage, Value: request, Refused: refused}
	return err
}

// mayNotApprove returns the reason why a visitor may not approve stages; empty if they may.
func mayNotApprove(ctx context.Context, v *visitor, namespace string) (string, error) {
	resource := clusterApprovals
	if namespace != "" {
		resource = approvals
	}
	reads, err := v.may(ctx, "get", resource, namespace)
	writes, problem := v.may(ctx, "patch", resource+"/status", namespace)
	if err := cmp.Or(err, problem); err != nil || reads && writes {
		return "", err
	}
	return fmt.Sprintf("You cannot approve this stage. You need the rights to get %s and to patch %s/status.", resource, resource), nil
}

// approveStage approves the stage seen by the visitor, if the run still waits for it.
func (s *Server) approveStage(w http.ResponseWriter, r *http.Request, v *visitor, resource string) error {
	if r.PostFormValue("decision") != "approve" {
		return &inputError{errors.New("the decision about a staged update run is approve")}
	}
	o, err := readDelivery(r, v, resource)
	if err != nil {
		return err
	}
	run, _ := view.RunOf(o)
	_, name := run.Awaited()
	switch {
	case o.GetUID() != types.UID(r.PostFormValue("uid")):
		return &inputError{replaced(o)}
	case name == "":
		return &inputError{errors.New(view.NoApprovalDue(o))}
	case name != r.PostFormValue("reason"):
		return &inputError{fmt.Errorf("%s now waits for another approval: check it, and decide again", view.Title(o))}
	}
	request := updaterun.NewApprovalRequest(run.GetNamespace(), name)
	if err := v.Get(r.Context(), client.ObjectKeyFromObject(request), request.Object); err != nil {
		return err
	}
	if err := request.CheckOwner(run.Kind, run.Object); err != nil {
		return &inputError{err}
	}
	if !request.Approved() {
		if err := request.Approve(r.Context(), v, "approved in the dashboard"); err != nil {
			return err
		}
	}
	http.Redirect(w, r, deliveryPath(resource, o), http.StatusSeeOther)
	return nil
}
