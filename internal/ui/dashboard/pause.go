package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/decision"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// pausable holds the buttons for pausing, resuming and redeploying a delivery.
type pausable struct {
	Path string
	UID  types.UID
	// State is the visible state: paused or not.
	State  string
	Paused bool
	// Retries reports whether the delivery can be deployed again.
	Retries bool
	// Source makes the Bundle: it is paused there. Nil without one.
	Source *link
	// Refused is the reason why the visitor may not change the delivery; empty if they may.
	Refused string
}

// retriable are the resources that can be deployed again.
var retriable = map[string]bool{bundles: true, gitRepos: true, helmOps: true}

// pauseOf returns the buttons of a delivery; nil for a run.
func pauseOf(ctx context.Context, v *visitor, resource string, o client.Object) (*pausable, error) {
	if resource == clusterRuns || resource == runs || o.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	p := &pausable{
		Path: deliveryPath(resource, o), UID: o.GetUID(), State: pauseState(o), Paused: decision.Paused(o), Retries: retriable[resource],
	}
	source, err := decision.SourceOf(ctx, v, o)
	switch {
	case err != nil:
		p.Refused = fmt.Sprintf("The source of %s cannot be read: %v", view.Title(o), err)
		return p, nil
	case source != nil:
		p.Source = &link{view.Title(source), deliveryPath(resourceOf(source), source)}
		return p, nil
	}
	permitted, err := v.may(ctx, "patch", resource, o.GetNamespace())
	if err == nil && !permitted {
		p.Refused = "You need the right to patch " + resource + "."
	}
	return p, err
}

func pauseState(o client.Object) string {
	if decision.Paused(o) {
		return "paused"
	}
	return "not paused"
}

// resourceOf returns the resource of the source of a Bundle.
func resourceOf(source client.Object) string {
	if _, is := source.(*fleet.HelmOp); is {
		return helmOps
	}
	return gitRepos
}

// pause pauses a delivery, lets it go on, or deploys it again.
func (s *Server) pause(w http.ResponseWriter, r *http.Request, v *visitor, resource string) error {
	write := map[string]func(context.Context, client.Client, client.Object) error{
		"pause": decision.Pause, "resume": decision.Resume, "retry": decision.Retry,
	}[r.PostFormValue("decision")]
	if write == nil {
		return &inputError{errors.New("the decision about a delivery is confirm, pause, resume or retry")}
	}
	o, err := readDelivery(r, v, resource)
	if err != nil {
		return err
	}
	if err := unchanged(o, r.PostFormValue, pauseState(o)); err != nil {
		return err
	}
	source, err := decision.SourceOf(r.Context(), v, o)
	if err != nil {
		return err
	}
	if source != nil {
		return &inputError{fmt.Errorf("%s makes %s, and sets its spec: decide about that instead", view.Title(source), view.Title(o))}
	}
	if err := write(r.Context(), v, o); err != nil {
		return err
	}
	http.Redirect(w, r, deliveryPath(resource, o), http.StatusSeeOther)
	return nil
}
