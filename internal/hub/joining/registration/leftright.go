package registration

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/kube"
)

// mayRead reports whether an account may read anything because of a Role. A starting hub reads only
// these Roles.
func (c *Controller) mayRead(ctx context.Context, name types.NamespacedName) (bool, error) {
	c.readers.mu.Lock()
	known := c.readers.of[name] != nil
	c.readers.mu.Unlock()
	if known {
		return true, nil
	}
	role := kube.Metadata(rbacv1.SchemeGroupVersion.WithKind("Role"))
	if err := c.Client.Get(ctx, name, role); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return role.Annotations[annotationReadable] != "0", nil
}

// endReadingOfGone ends the rights to read deleted requests and answers, in a Role from an earlier
// hub. Such a request causes no event. It deletes the Role for answers after its account.
func (c *Controller) endReadingOfGone(ctx context.Context, name types.NamespacedName) error {
	role := kube.Metadata(rbacv1.SchemeGroupVersion.WithKind("Role"))
	if err := c.Client.Get(ctx, name, role); err != nil || !c.needsLook(role) {
		return client.IgnoreNotFound(err)
	}
	key, answersTo, _ := c.readerOf(role)
	answersIn := ""
	if answersTo != "" {
		answersIn = role.Namespace
		if account, err := c.tokenAccount(ctx, key); err != nil {
			return err
		} else if account == nil || account.UID != answersTo {
			return c.deleteAnswersRole(ctx, role)
		}
	}
	reader, err := c.reader(ctx, key, answersIn)
	if err != nil || reader == nil {
		return err
	}
	return reader.dropGone(ctx)
}

// endReadingNow ends the right to read an answer without a delay.
func (c *Controller) endReadingNow(ctx context.Context, request types.NamespacedName) error {
	c.readers.mu.Lock()
	found := c.readers.ofRequest[request]
	c.readers.mu.Unlock()
	if found.reader == nil {
		return nil
	}
	if err := found.endNow(ctx, found.name); err != nil {
		return err
	}
	c.readers.note(request, readable{})
	return nil
}

// endNow removes a name, with all other ended ones.
func (r *reader) endNow(ctx context.Context, name string) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	if err := r.load(ctx); err != nil {
		return err
	}
	if _, readable := r.delist(name); !readable {
		return nil
	}
	return r.write(ctx)
}

// needsLook reports whether a Role of an account may have to change. It names requests, or it is
// for answers and the account may be gone.
func (c *Controller) needsLook(role client.Object) bool {
	_, answersTo, found := c.readerOf(role)
	return found && (answersTo != "" || role.GetAnnotations()[annotationReadable] != "0")
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
