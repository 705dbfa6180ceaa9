package hubclient

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// MayRegister reports whether the token may create registration requests in a workspace. Any
// account may ask this about itself.
func (h *Hub) MayRegister(ctx context.Context, workspace string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client, err := h.connection.REST(authorizationv1.SchemeGroupVersion)
	if err != nil {
		return false, err
	}
	review := &authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectAccessReview"},
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: workspace, Verb: "create", Group: fleet.GroupVersion.Group, Resource: "clusterregistrations",
		}},
	}
	if err := client.Post().Resource("selfsubjectaccessreviews").Body(review).Do(ctx).Into(review); err != nil {
		return false, fmt.Errorf("reading the rights of the token: %w", err)
	}
	return review.Status.Allowed, nil
}
