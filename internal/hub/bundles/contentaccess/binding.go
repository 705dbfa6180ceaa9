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

// binding is a ClusterRoleBinding as last read or written by this process, its only writer.
type binding struct {
	deps controller.Deps
	name string

	// writing is held during a read or write of the binding.
	writing sync.Mutex
	// current is nil if the binding must be read first. It has no UID if there is no binding.
	current *rbacv1.ClusterRoleBinding

	mu sync.Mutex
	// bound holds the member namespaces of the accounts in the binding; nil before the first
	// read.
	bound namespaces
	// waiting holds the namespaces for the next writer to add.
	waiting namespaces
	// withdrawn holds the namespaces of quarantined members, excluded from all writes. The value
	// reports whether to add the namespace afterwards.
	withdrawn map[string]bool
}

// namespaces maps names of namespaces to their UIDs. A namespace created again has another UID.
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

// remove unbinds the account of a member namespace, and refuses it until readmit.
func (b *binding) remove(ctx context.Context, namespace string) error {
	b.mu.Lock()
	if b.withdrawn == nil {
		b.withdrawn = map[string]bool{}
	}
	if _, known := b.withdrawn[namespace]; !known {
		b.withdrawn[namespace] = false
	}
	b.mu.Unlock()
	b.writing.Lock()
	defer b.writing.Unlock()
	if b.current == nil {
		if _, err := b.read(ctx); err != nil {
			return err
		}
	}
	b.mu.Lock()
	_, has := b.bound[namespace]
	b.withdrawn[namespace] = b.withdrawn[namespace] || has
	left := maps.Clone(b.bound)
	b.mu.Unlock()
	if !has {
		return nil
	}
	delete(left, namespace)
	return b.write(ctx, left)
}

// readmit ends the refusal of a namespace. It binds the account again if it was bound, or if add
// was called meanwhile.
func (b *binding) readmit(ctx context.Context, namespace string, uid types.UID) error {
	b.mu.Lock()
	wanted := b.withdrawn[namespace]
	delete(b.withdrawn, namespace)
	b.mu.Unlock()
	if !wanted || uid == "" {
		return nil
	}
	return b.add(ctx, namespace, uid)
}

// enlist queues the account of a namespace for the next writer, unless it is bound already.
func (b *binding) enlist(namespace string, uid types.UID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bound[namespace] == uid || b.refuses(namespace) {
		return false
	}
	if b.waiting == nil {
		b.waiting = namespaces{}
	}
	b.waiting[namespace] = uid
	return true
}

// refuses reports whether a namespace must not be added now, and notes it for later. The caller
// holds mu.
func (b *binding) refuses(namespace string) bool {
	_, withdrawn := b.withdrawn[namespace]
	if withdrawn {
		b.withdrawn[namespace] = true
	}
	return withdrawn
}

// withWaiting returns the bound namespaces, the waiting ones, and the given one. It returns nil
// if another writer has bound the namespace meanwhile.
func (b *binding) withWaiting(namespace string, uid types.UID) namespaces {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bound[namespace] == uid || b.refuses(namespace) {
		return nil
	}
	all := maps.Clone(b.bound)
	maps.Copy(all, b.waiting)
	all[namespace] = uid
	maps.DeleteFunc(all, func(name string, _ types.UID) bool { return b.refuses(name) })
	b.waiting = nil
	return all
}

// restore sets the binding back to the state written by this process. It removes accounts of
// namespaces deleted or created again. If this process has not written the binding yet, the rest
// stays.
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

// uidOf returns the UID of the namespace with this name; "" if there is none.
func uidOf(ctx context.Context, reader client.Reader, name string) (types.UID, error) {
	namespace := kube.CoreMetadata("Namespace")
	if err := reader.Get(ctx, types.NamespacedName{Name: name}, namespace); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return namespace.UID, nil
}

// edited reads the binding if its version is unknown to this process. It reports whether the
// binding's accounts differ from the desired ones.
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

// read reads the binding, and reports whether its accounts differ from the desired ones. The first
// read trusts the accounts of namespaces in the annotation.
func (b *binding) read(ctx context.Context) (edited bool, err error) {
	found := &rbacv1.ClusterRoleBinding{}
	err = b.deps.Live.Get(ctx, types.NamespacedName{Name: b.name}, found)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading ClusterRoleBinding %s: %w", b.name, err)
	}
	b.current = found
	if found.Labels[fleet.LabelManaged] != "true" {
		b.current = &rbacv1.ClusterRoleBinding{} // not the hub's; the write reports it
	}
	if b.bound != nil {
		return !slices.Equal(b.current.Subjects, b.bound.accounts()) || b.current.Annotations[annotationNamespaces] != b.bound.String(), nil
	}
	bound, err := recorded(b.current)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Granting a right again, because its namespaces are unknown", "clusterRoleBinding", b.name)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bound = bound
	return err != nil || !slices.Equal(b.current.Subjects, bound.accounts()), nil
}

// recorded returns the member namespaces both bound by a binding and named in its annotation.
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

// write binds the accounts of these namespaces, and no others.
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

// accounts returns the bound accounts.
func (n namespaces) accounts() []rbacv1.Subject {
	var accounts []rbacv1.Subject
	for _, namespace := range slices.Sorted(maps.Keys(n)) {
		accounts = append(accounts, kube.AccountSubject(namespace, naming.MemberServiceAccount))
	}
	return accounts
}

// String returns the value of annotationNamespaces.
func (n namespaces) String() string {
	text, _ := json.Marshal(n) // a map of strings always marshals
	return string(text)
}
