package contentaccess

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/controller"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// binding is a ClusterRoleBinding as this process, the only one that writes it, has last read or written it.
type binding struct {
	deps controller.Deps
	name string

	// writing is held while the binding is read or written.
	writing sync.Mutex
	// current is nil while the binding has to be read first; it has no UID if there is none.
	current *rbacv1.ClusterRoleBinding

	mu sync.Mutex
	// bound are the member namespaces of the accounts in the binding; nil until it was read once.
	bound map[string]bool
	// waiting are those that are to be added by whoever writes next.
	waiting map[string]bool
}

// add binds the account of a member namespace.
func (b *binding) add(ctx context.Context, namespace string) error {
	if !b.enlist(namespace) {
		return nil
	}
	b.writing.Lock()
	defer b.writing.Unlock()
	if b.current == nil {
		if _, err := b.read(ctx); err != nil {
			return err
		}
	}
	all := b.withWaiting(namespace)
	if all == nil {
		return nil
	}
	return b.write(ctx, all)
}

// enlist has the account of a namespace added by whoever writes next, unless it is bound already.
func (b *binding) enlist(namespace string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bound[namespace] {
		return false
	}
	if b.waiting == nil {
		b.waiting = map[string]bool{}
	}
	b.waiting[namespace] = true
	return true
}

// withWaiting returns what is bound, all that wait, and the given namespace; nil if another has written that meanwhile.
func (b *binding) withWaiting(namespace string) map[string]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bound[namespace] {
		return nil
	}
	all := maps.Clone(b.bound)
	maps.Copy(all, b.waiting)
	all[namespace] = true
	b.waiting = nil
	return all
}

// restore makes the binding what this process has made it, without the accounts whose namespace is gone. Of one that it has not written yet the rest stays.
func (b *binding) restore(ctx context.Context) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	edited, err := b.edited(ctx)
	if err != nil {
		return err
	}
	b.mu.Lock()
	bound := maps.Clone(b.bound)
	b.mu.Unlock()
	for namespace := range bound {
		err := b.deps.Client.Get(ctx, types.NamespacedName{Name: namespace}, kube.CoreMetadata("Namespace"))
		if apierrors.IsNotFound(err) {
			delete(bound, namespace)
			edited = true
		} else if err != nil {
			return fmt.Errorf("reading namespace %s: %w", namespace, err)
		}
	}
	if !edited {
		return nil
	}
	return b.write(ctx, bound)
}

// edited reads the binding if it is not in the version that this process knows, and returns whether it binds others than it should.
func (b *binding) edited(ctx context.Context) (bool, error) {
	cached := kube.Metadata(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"))
	if err := b.deps.Client.Get(ctx, types.NamespacedName{Name: b.name}, cached); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading ClusterRoleBinding %s: %w", b.name, err)
	}
	if b.current != nil && b.current.ResourceVersion == cached.ResourceVersion {
		return false, nil
	}
	return b.read(ctx)
}

// read reads the binding, and returns whether it binds others than it should. What the first read finds is as it should be, if they are accounts of members.
func (b *binding) read(ctx context.Context) (edited bool, err error) {
	found := &rbacv1.ClusterRoleBinding{}
	err = b.deps.Live.Get(ctx, types.NamespacedName{Name: b.name}, found)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading ClusterRoleBinding %s: %w", b.name, err)
	}
	b.current = found
	if found.Labels[fleet.LabelManaged] != "true" {
		b.current = &rbacv1.ClusterRoleBinding{} // somebody else's, as writing it will say
	}
	if b.bound != nil {
		return !slices.Equal(b.current.Subjects, subjects(b.bound)), nil
	}
	bound := map[string]bool{}
	for _, subject := range b.current.Subjects {
		if subject == kube.AccountSubject(subject.Namespace, naming.MemberServiceAccount) && BindingOf(subject.Namespace) == b.name {
			bound[subject.Namespace] = true
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bound = bound
	return len(bound) != len(b.current.Subjects), nil
}

// write makes the binding that of the accounts of these namespaces.
func (b *binding) write(ctx context.Context, bound map[string]bool) error {
	desired := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: b.name, Labels: map[string]string{fleet.LabelManaged: "true"}, ResourceVersion: b.current.ResourceVersion},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: membership.ContentRole},
		Subjects:   subjects(bound),
	}
	var err error
	switch {
	case b.current.UID == "" && len(bound) > 0:
		err = kube.Ensure(ctx, b.deps.Client, desired)
	case b.current.UID == "":
	case len(bound) == 0:
		err = kube.DeleteByUID(ctx, b.deps.Client, b.current)
		desired = &rbacv1.ClusterRoleBinding{}
	default:
		if err = b.deps.Client.Update(ctx, desired, kube.FieldOwner); err != nil {
			err = fmt.Errorf("writing ClusterRoleBinding %s: %w", b.name, err)
		}
	}
	if err != nil {
		b.current = nil
		return err
	}
	b.current = desired
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bound = bound
	return nil
}

func subjects(namespaces map[string]bool) []rbacv1.Subject {
	var accounts []rbacv1.Subject
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		accounts = append(accounts, kube.AccountSubject(namespace, naming.MemberServiceAccount))
	}
	return accounts
}
