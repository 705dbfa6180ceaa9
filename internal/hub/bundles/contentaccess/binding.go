package contentaccess

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/agentroles"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// binding is a ClusterRoleBinding as this process, the only one that writes it, has last
// read or written it.
type binding struct {
	deps controller.Deps
	name string

	// writing is held while the binding is read or written.
	writing sync.Mutex
	// current is nil while the binding has to be read first; it has no UID if there is none.
	current *rbacv1.ClusterRoleBinding

	mu sync.Mutex
	// bound are the member namespaces of the accounts in the binding; nil until it was read once.
	bound namespaces
	// waiting are those that are to be added by whoever writes next.
	waiting namespaces
}

// namespaces are the UIDs of namespaces by their names: one that is made anew is another one.
type namespaces map[string]types.UID

// add binds the account of a member namespace.
func (b *binding) add(ctx context.Context, namespace string, uid types.UID) error {
	if !b.enlist(namespace, uid) {
		return nil
	}
	b.writing.Lock()
	defer b.writing.Unlock()
	if b.current == nil {
		if _, err := b.read(ctx); err != nil {
			return err
		}
	}
	all := b.withWaiting(namespace, uid)
	if all == nil {
		return nil
	}
	return b.write(ctx, all)
}

// enlist has the account of a namespace added by whoever writes next, unless it is bound already.
func (b *binding) enlist(namespace string, uid types.UID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bound[namespace] == uid {
		return false
	}
	if b.waiting == nil {
		b.waiting = namespaces{}
	}
	b.waiting[namespace] = uid
	return true
}

// withWaiting returns what is bound, all that wait, and the given namespace; nil if another has
// written that meanwhile.
func (b *binding) withWaiting(namespace string, uid types.UID) namespaces {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bound[namespace] == uid {
		return nil
	}
	all := maps.Clone(b.bound)
	maps.Copy(all, b.waiting)
	all[namespace] = uid
	b.waiting = nil
	return all
}

// restore makes the binding what this process has made it, without the accounts whose namespace is
// gone or another one by now. Of one that it has not written yet the rest stays.
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
	for namespace, uid := range bound {
		current, err := uidOf(ctx, b.deps.Client, namespace)
		if err != nil {
			return err
		}
		if current != uid {
			delete(bound, namespace)
			edited = true
		}
	}
	if !edited {
		return nil
	}
	return b.write(ctx, bound)
}

// uidOf returns the UID of the namespace of this name; "" if there is none.
func uidOf(ctx context.Context, reader client.Reader, name string) (types.UID, error) {
	namespace := kube.CoreMetadata("Namespace")
	if err := reader.Get(ctx, types.NamespacedName{Name: name}, namespace); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return namespace.UID, nil
}

// edited reads the binding if it is not in the version that this process knows, and returns whether
// it binds others than it should.
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

// read reads the binding, and returns whether it binds others than it should. What the first read
// finds is as it should be, as far as it says of which namespaces.
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
		return !slices.Equal(b.current.Subjects, b.bound.accounts()) || b.current.Annotations[annotationNamespaces] != b.bound.String(), nil
	}
	bound, err := recorded(b.current)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Not knowing for which namespaces a right was given, it is given anew", "ClusterRoleBinding", b.name)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bound = bound
	return err != nil || !slices.Equal(b.current.Subjects, bound.accounts()), nil
}

// recorded returns the member namespaces that a binding both binds the accounts of and
// names in its annotation.
func recorded(found *rbacv1.ClusterRoleBinding) (namespaces, error) {
	noted, bound := namespaces{}, namespaces{}
	if note := found.Annotations[annotationNamespaces]; note != "" {
		if err := json.Unmarshal([]byte(note), &noted); err != nil {
			return bound, fmt.Errorf("annotation %s of ClusterRoleBinding %s: %w", annotationNamespaces, found.Name, err)
		}
	}
	for _, subject := range found.Subjects {
		namespace := subject.Namespace
		if uid := noted[namespace]; uid != "" && subject == kube.AccountSubject(namespace, naming.MemberServiceAccount) &&
			BindingOf(namespace) == found.Name {
			bound[namespace] = uid
		}
	}
	return bound, nil
}

// write makes the binding that of the accounts of these namespaces.
func (b *binding) write(ctx context.Context, bound namespaces) error {
	desired := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: b.name, ResourceVersion: b.current.ResourceVersion,
			Labels: map[string]string{fleet.LabelManaged: "true"}, Annotations: map[string]string{annotationNamespaces: bound.String()},
		},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: agentroles.ContentRole},
		Subjects: bound.accounts(),
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

// accounts are what is bound.
func (n namespaces) accounts() []rbacv1.Subject {
	var accounts []rbacv1.Subject
	for _, namespace := range slices.Sorted(maps.Keys(n)) {
		accounts = append(accounts, kube.AccountSubject(namespace, naming.MemberServiceAccount))
	}
	return accounts
}

// String is what annotationNamespaces says.
func (n namespaces) String() string {
	text, _ := json.Marshal(n) // a map of strings can be written
	return string(text)
}
