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
	// bound holds the member namespaces of the accounts in the binding.
	bound namespaces
	// waiting holds the namespaces for the next writer to add.
	waiting map[string]*waiter
	// withdrawn holds the namespaces of quarantined members, excluded from all writes. The value
	// reports whether to add the namespace afterwards.
	withdrawn map[string]bool
	// foreign is set if the name belongs to a binding that is not the hub's.
	foreign bool
}

// namespaces maps names of namespaces to their UIDs. A namespace created again has another UID.
type namespaces map[string]types.UID

// holds reports whether the binding is the one of a namespace.
func (b *binding) holds(namespace string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, bound := b.bound[namespace]
	_, withdrawn := b.withdrawn[namespace]
	return bound || withdrawn || b.waiting[namespace] != nil
}

// size returns the number of accounts in the binding after its next write. It is -1 if the hub may
// not write the binding.
func (b *binding) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.foreign {
		return -1
	}
	size := len(b.bound)
	for namespace := range b.waiting {
		if _, bound := b.bound[namespace]; !bound {
			size++
		}
	}
	return size
}

// add binds the account of an enlisted member namespace.
func (b *binding) add(ctx context.Context, namespace string, uid types.UID) error {
	defer b.delist(namespace)
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

// remove unbinds the account of an excluded member namespace.
func (b *binding) remove(ctx context.Context, namespace string) error {
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

// settle removes the accounts that a write without an answer may have left in the binding.
func (b *binding) settle(ctx context.Context) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	if b.current != nil {
		return nil
	}
	edited, err := b.read(ctx)
	if err != nil || !edited || b.foreign {
		return err
	}
	return b.write(ctx, b.bound)
}

// restore sets the binding back to the state written or loaded by this process. It removes accounts
// of namespaces deleted or created again.
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

// read reads the binding, and reports whether its accounts differ from the desired ones.
func (b *binding) read(ctx context.Context) (edited bool, err error) {
	found := &rbacv1.ClusterRoleBinding{}
	err = b.deps.Live.Get(ctx, types.NamespacedName{Name: b.name}, found)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading ClusterRoleBinding %s: %w", b.name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.foreign = found.UID != "" && !managed(found)
	b.current = found
	if b.foreign {
		b.current = &rbacv1.ClusterRoleBinding{} // the write reports it
	}
	return !b.matches(b.current), nil
}

func managed(found *rbacv1.ClusterRoleBinding) bool {
	return found.Labels[fleet.LabelManaged] == "true"
}

// matches reports whether a binding has exactly the desired accounts. The caller holds mu.
func (b *binding) matches(found *rbacv1.ClusterRoleBinding) bool {
	return slices.Equal(found.Subjects, b.bound.accounts()) &&
		(found.UID == "" || found.Annotations[annotationNamespaces] == b.bound.String())
}

// load takes over the binding of an earlier process, nil for none, except for namespaces with
// another binding. It trusts the accounts of namespaces in the annotation. It precedes every read
// and write.
func (b *binding) load(ctx context.Context, found *rbacv1.ClusterRoleBinding, elsewhere func(namespace string) bool) {
	if found == nil {
		found = &rbacv1.ClusterRoleBinding{}
	}
	bound, err := recorded(found)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Granting a right again, because its namespaces are unknown", "clusterRoleBinding", b.name)
	}
	maps.DeleteFunc(bound, func(namespace string, _ types.UID) bool { return elsewhere(namespace) })
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bound = bound
	if b.matches(found) {
		b.current = found
	}
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
		if uid := noted[namespace]; uid != "" && subject == kube.AccountSubject(namespace, naming.MemberServiceAccount) {
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
	b.mu.Lock()
	defer b.mu.Unlock()
	b.foreign = kube.IsTaken(err)
	if err != nil {
		b.current = nil
		return err
	}
	b.current, b.bound = desired, bound
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
