package registration

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/kube"
)

// mayRead reports whether an account may read any request. A starting hub reads the Roles of these
// accounts only.
func (c *Controller) mayRead(ctx context.Context, account types.NamespacedName) (bool, error) {
	c.readers.mu.Lock()
	known := c.readers.of[roleOf(account)] != nil
	c.readers.mu.Unlock()
	if known {
		return true, nil
	}
	role := kube.Metadata(rbacv1.SchemeGroupVersion.WithKind("Role"))
	if err := c.Client.Get(ctx, roleOf(account), role); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return role.Annotations[annotationReadable] != "0", nil
}

// endReadingOfGone ends the rights to read deleted requests, in a Role from an earlier hub. Such a
// request causes no event.
func (c *Controller) endReadingOfGone(ctx context.Context, name types.NamespacedName) error {
	role := kube.Metadata(rbacv1.SchemeGroupVersion.WithKind("Role"))
	if err := c.Client.Get(ctx, name, role); err != nil || !hasRequests(role) {
		return client.IgnoreNotFound(err)
	}
	account := types.NamespacedName{Namespace: role.Namespace, Name: metav1.GetControllerOf(role).Name}
	reader, err := c.reader(ctx, account)
	if err != nil || reader == nil {
		return err
	}
	return reader.dropGone(ctx)
}

// hasRequests reports whether a Role of a token or an account has requests.
func hasRequests(role client.Object) bool {
	count := role.GetAnnotations()[annotationReadable]
	return count != "" && count != "0" && metav1.GetControllerOf(role) != nil
}

// dropGone removes deleted requests from the Role, if it has any.
func (r *reader) dropGone(ctx context.Context) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	if err := r.load(ctx); err != nil {
		return err
	}
	have, _ := r.objects(sets.List(r.readable))
	if r.role.Annotations[annotationReadable] == have.Annotations[annotationReadable] {
		return nil
	}
	return r.write(ctx)
}
