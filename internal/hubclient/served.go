package hubclient

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Serves verifies that the hub serves a kind and keeps it. The deletion of a
// CustomResourceDefinition deletes all its objects. Meanwhile, an API server lists the kind without
// the verb create. An unlisted kind may be back in a moment.
func (m *Member) Serves(ctx context.Context, resource schema.GroupVersionResource) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	group, err := m.connection.REST(resource.GroupVersion())
	if err != nil {
		return err
	}
	var served metav1.APIResourceList
	if err := group.Get().Do(ctx).Into(&served); err != nil {
		return fmt.Errorf("asking whether the hub serves %s: %w", resource.GroupResource(), err)
	}
	i := slices.IndexFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource })
	switch {
	case i < 0:
		return fmt.Errorf("the hub does not serve %s: install its CustomResourceDefinition again (chart fleet-crd)", resource.GroupResource())
	case !slices.Contains(served.APIResources[i].Verbs, "create"):
		return fmt.Errorf("the hub is deleting the CustomResourceDefinition of %s, and all of them with it: install it again (chart fleet-crd)",
			resource.GroupResource())
	}
	return nil
}
