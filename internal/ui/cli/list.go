package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// eachOfKind calls a function for each object of a table. It returns the readable lists, and
// the errors of the others. Without a readable list, it returns an error. Lists unknown to an
// older hub count only if there are no objects.
func (h *access) eachOfKind(ctx context.Context, c client.Reader, server string, k kind, do func(client.Object),
	options ...client.ListOption) (seen []client.ObjectList, refused []error, err error) {
	var unserved []error
	found := false
	for _, list := range k.lists(*h.Namespace) {
		err := view.Each(ctx, c, list, func(o client.Object) {
			found = true
			do(o)
		}, options...)
		switch {
		case err == nil:
			seen = append(seen, list)
		case kube.NotServed(err):
			unserved = append(unserved, h.remedy(err, k.namespaced, list, server))
		case apierrors.IsForbidden(err):
			refused = append(refused, h.remedy(err, k.namespaced, list, server))
		default:
			return nil, nil, errors.Join(append(refused, h.remedy(err, k.namespaced, list, server))...)
		}
	}
	if len(seen) == 0 {
		return nil, nil, errors.Join(append(refused, unserved...)...)
	}
	if !found {
		refused = append(refused, unserved...)
	}
	return seen, refused, nil
}

// remedy adds the cause and the remedy to the error of a list. namespaced are the kinds with a
// list per namespace.
func (h *access) remedy(err error, namespaced []client.ObjectList, list client.ObjectList, server string) error {
	what := h.nameOfKind(list)
	switch {
	case kube.NotServed(err):
		gvk, _ := h.gvkOf(list) // the scheme knows the kind
		return fmt.Errorf("%s serves no %s (%s): it is not a hub, or the chart fleet-crd is not installed there; choose the hub with --context",
			server, what, gvk.GroupVersion())
	case apierrors.IsForbidden(err) && *h.Namespace == "" && slices.Contains(namespaced, list):
		return fmt.Errorf("%w; use --namespace for one workspace", err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s does not accept the credential of the kubeconfig, which may have expired: %w", server, err)
	}
	return fmt.Errorf("listing %s of %s: %w", what, server, err)
}

// nameOfKind returns the plural of a list's kind, such as Clusters.
func (h *access) nameOfKind(list client.ObjectList) string {
	gvk, err := h.gvkOf(list)
	if err != nil {
		return fmt.Sprintf("%T", list)
	}
	return strings.TrimSuffix(gvk.Kind, "List") + "s"
}
