package dashboard

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// heldRemoval is a removal held back by the hub until a user confirms it.
type heldRemoval struct {
	// Path is the page of the Bundle or the placement.
	Path string
	UID  types.UID
	// Value confirms exactly the removal on the page.
	Value string
}

// heldFor returns the pending removal of a Bundle or a placement, if the visitor may confirm it;
// else nil.
func heldFor(ctx context.Context, v *visitor, resource string, o client.Object) (*heldRemoval, error) {
	_, value := view.HeldRemoval(o)
	if value == "" {
		return nil, nil
	}
	may, err := v.may(ctx, "patch", resource, o.GetNamespace())
	if err != nil || !may {
		return nil, err
	}
	return &heldRemoval{Path: deliveryPath(resource, o), UID: o.GetUID(), Value: value}, nil
}

// deliveryPath returns the page of a Bundle or a placement.
func deliveryPath(resource string, o client.Object) string {
	return deliveriesPath + "/" + resource + "/" + view.NameOf(o)
}

// confirm confirms the removal seen by the visitor, if the Bundle or the placement still waits
// for it.
func (s *Server) confirm(w http.ResponseWriter, r *http.Request, v *visitor) error {
	resource, err := deliveredKind(r)
	if err != nil {
		return err
	}
	if resource == clusterRuns || resource == runs {
		return s.approveStage(w, r, v, resource)
	}
	if r.PostFormValue("decision") != "confirm" {
		return s.pause(w, r, v, resource)
	}
	o, err := readDelivery(r, v, resource)
	if err != nil {
		return err
	}
	_, value := view.HeldRemoval(o)
	if value == "" {
		return &inputError{errors.New(view.NoConfirmationDue(o))}
	}
	if err := unchanged(o, r.PostFormValue, value); err != nil {
		return err
	}
	if err := kube.Annotate(r.Context(), v, o, map[string]any{fleet.AnnotationConfirmRemoval: value}); err != nil {
		return err
	}
	http.Redirect(w, r, deliveryPath(resource, o), http.StatusSeeOther)
	return nil
}
