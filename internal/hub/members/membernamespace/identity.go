package membernamespace

import (
	"context"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/agentroles"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/credentials/longlived"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// Identity is the identity of a member's agent on the hub.
type Identity struct {
	Member
	Kind membership.AgentKind
	// Shared reports whether agents of both kinds may use the credential; see membership.Shared.
	Shared bool
	// RenewsItself: the agent, of an earlier version, has no key to seal a credential to, and requests
	// its tokens itself.
	RenewsItself bool
	// Quarantined: the agent may only send heartbeats and reports.
	Quarantined bool
	// Registration is the name of the granted request.
	Registration string
	// RegistrationUID distinguishes requests of one name.
	RegistrationUID types.UID
}

const annotationRegistrationUID = "muster/cluster-registration-uid"

// account returns the ServiceAccount of the identity. A member has only one, so its replacement
// ends all earlier credentials at once.
func (i Identity) account() *corev1.ServiceAccount {
	off := false
	account := &corev1.ServiceAccount{ObjectMeta: i.meta(i.Namespace, naming.MemberServiceAccount), AutomountServiceAccountToken: &off}
	account.Annotations[membership.AnnotationAgent] = string(i.Kind)
	account.Annotations[fleet.AnnotationRegistration] = i.Registration
	account.Annotations[fleet.AnnotationRegistrationNamespace] = i.Workspace
	account.Annotations[annotationRegistrationUID] = string(i.RegistrationUID)
	return account
}

// IssuedFor reports whether the hub created a member's ServiceAccount for a request.
func IssuedFor(account client.Object, r *fleet.ClusterRegistration) bool {
	return account.GetAnnotations()[annotationRegistrationUID] == string(r.UID)
}

// IssuedForUID returns the UID of the request for a member's ServiceAccount.
func IssuedForUID(account client.Object) types.UID {
	return types.UID(account.GetAnnotations()[annotationRegistrationUID])
}

// ReadAccount reads the metadata of the member's ServiceAccount. The result has no UID if there is
// none.
func (m Member) ReadAccount(ctx context.Context, reader client.Reader) (*metav1.PartialObjectMetadata, error) {
	account := kube.CoreMetadata("ServiceAccount")
	err := reader.Get(ctx, types.NamespacedName{Namespace: m.Namespace, Name: naming.MemberServiceAccount}, account)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the account of %s: %w", m.Namespace, err)
	}
	return account, nil
}

// ReadAccountLive reads the member's ServiceAccount for Establish. The result has no UID if there
// is none.
func (m Member) ReadAccountLive(ctx context.Context, live client.Reader) (*corev1.ServiceAccount, error) {
	account := &corev1.ServiceAccount{}
	err := live.Get(ctx, types.NamespacedName{Namespace: m.Namespace, Name: naming.MemberServiceAccount}, account)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ServiceAccount %s/%s: %w", m.Namespace, naming.MemberServiceAccount, err)
	}
	return account, nil
}

// HandOver writes the kind of agent now acting with the account of a Rancher Fleet agent.
func HandOver(ctx context.Context, c client.Client, account client.Object, to membership.AgentKind) error {
	if err := annotateAccount(ctx, c, account, membership.AnnotationActing, string(to)); err != nil {
		return fmt.Errorf("recording the agent that acts with ServiceAccount %s/%s: %w", account.GetNamespace(), account.GetName(), err)
	}
	return nil
}

// annotateAccount sets an annotation of a ServiceAccount. It leaves the given object as it is.
func annotateAccount(ctx context.Context, c client.Client, account client.Object, key, value string) error {
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: account.GetNamespace(), Name: account.GetName(), UID: account.GetUID(),
	}}
	return kube.Annotate(ctx, c, object, map[string]any{key: value}, kube.FieldOwner)
}

// Establish makes the identity the only one of the member and returns its account, still without a
// credential. The given account is the present one, without a UID if there is none. If it was
// issued for another request and mayReplace agrees, Establish first deletes it, and with it its
// credentials. It deletes the rights of the other kind of agent while there is no account: the hub
// restores them as long as there is one. It creates the new account after the rights, so an
// existing account is complete.
func (i Identity) Establish(ctx context.Context, c client.Client, account *corev1.ServiceAccount,
	mayReplace func(*corev1.ServiceAccount) error, objects ...client.Object) (*corev1.ServiceAccount, error) {
	former := slices.Concat(i.other().grants(), i.tokenSecrets(), []client.Object{i.SelfRenewal()})
	if account.UID != "" {
		if account.Annotations[annotationRegistrationUID] == string(i.RegistrationUID) {
			return account, nil
		}
		if err := mayReplace(account); err != nil {
			return nil, err
		}
		if err := c.Delete(ctx, account, client.Preconditions{UID: &account.UID}); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("revoking the identity issued to ClusterRegistration %s: %w",
				account.Annotations[fleet.AnnotationRegistration], err)
		}
	} else {
		var err error
		if former, err = Known(ctx, c, c.Scheme(), former); err != nil {
			return nil, err
		}
	}
	if err := kube.Delete(ctx, c, former...); err != nil {
		return nil, err
	}
	if err := kube.Ensure(ctx, c, objects...); err != nil {
		return nil, err
	}
	account = i.account()
	if err := c.Create(ctx, account, kube.FieldOwner); err != nil {
		return nil, fmt.Errorf("creating ServiceAccount %s/%s: %w", account.Namespace, account.Name, err)
	}
	return account, nil
}

// Known returns the objects found by a reader. In Establish the reader is the cache: without an
// account, the objects are leftovers of an account deleted by hand or by an earlier attempt. A new
// member costs no read.
func Known(ctx context.Context, reader client.Reader, scheme *runtime.Scheme, objects []client.Object) ([]client.Object, error) {
	missing, err := kube.Missing(ctx, reader, kube.MetadataOf(scheme), objects...)
	return slices.DeleteFunc(objects, func(o client.Object) bool { return slices.Contains(missing, o) }), err
}

// LastingToken issues a token of the account through longlived.Issuer, because upstream agents do
// not renew theirs.
func (i Identity) LastingToken(ctx context.Context, issuer *longlived.Issuer,
	account *corev1.ServiceAccount) (string, *corev1.Secret, error) {
	return issuer.Token(ctx, account, i.meta(i.Namespace, ""))
}

// tokenSecrets returns the Secrets of a lasting token of the member's account; the token ends with
// them.
func (m Member) tokenSecrets() []client.Object {
	bound, filled := longlived.Secrets(naming.MemberServiceAccount, m.meta(m.Namespace, ""))
	return []client.Object{bound, filled}
}

// every returns all objects that may grant rights to the agent of a Cluster, of any kind.
func (m Member) every() []client.Object {
	any := Identity{Member: m, Kind: membership.Legacy, Shared: true}
	return append(any.grants(), any.Lapsed()...)
}

// other returns the identity of the same member for the other kind of agent.
func (i Identity) other() Identity {
	other := i
	other.Kind = membership.Native
	if i.Kind == membership.Native {
		other.Kind = membership.Legacy
	}
	return other
}

// Objects returns the objects of the identity except the account: its rights and, for a native
// agent, the report and the Lease.
func (i Identity) Objects(asked clusterv1beta1.InternalMemberClusterSpec) []client.Object {
	objects := i.grants()
	if i.Kind == membership.Native || i.Shared {
		objects = append(objects, i.NewReport(asked), i.NewLease())
	}
	return objects
}

// bind returns the binding of a ClusterRole for members.
func (m Member) bind(role string) *rbacv1.RoleBinding {
	return kube.RoleBinding(m.meta(m.Namespace, role), "ClusterRole", role, kube.AccountSubject(m.Namespace, naming.MemberServiceAccount))
}

// deliveries returns the bindings to remove from a Cluster's agent in a quarantine. They are the
// same for agents of both kinds.
func (m Member) deliveries() []client.Object {
	return []client.Object{m.bind(agentroles.MemberRole), m.bind(agentroles.BundleDeploymentRole)}
}

// Lapsed returns the rights to remove from the agent of a Cluster. In a quarantine these are the
// rights to deliveries, otherwise the narrow ones of a quarantine.
func (i Identity) Lapsed() []client.Object {
	if i.Quarantined {
		return i.deliveries()
	}
	return []client.Object{i.bind(agentroles.QuarantinedRole)}
}

func (i Identity) grants() []client.Object {
	account := kube.AccountSubject(i.Namespace, naming.MemberServiceAccount)
	native := []client.Object{i.bind(agentroles.MemberRole)}
	if i.Quarantined {
		native = []client.Object{i.bind(agentroles.QuarantinedRole)}
	}
	if i.RenewsItself {
		native = append(native, i.SelfRenewal())
	}
	if i.Kind == membership.Native && !i.Shared {
		return native
	}
	// Upstream agents write their heartbeat into the status of their Cluster.
	beat := &rbacv1.Role{
		ObjectMeta: i.meta(i.Workspace, i.Namespace),
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusters/status"},
			ResourceNames: []string{i.Name}, Verbs: []string{"patch"},
		}},
	}
	beat.OwnerReferences = []metav1.OwnerReference{{APIVersion: fleet.GroupVersion.String(), Kind: "Cluster", Name: i.Name, UID: i.UID}}
	legacy := []client.Object{beat, kube.RoleBinding(*beat.ObjectMeta.DeepCopy(), "Role", beat.Name, account)}
	if !i.Quarantined {
		legacy = append(legacy, i.bind(agentroles.BundleDeploymentRole))
	}
	if i.Shared {
		return append(legacy, native...)
	}
	return legacy
}

// SelfRenewal lets the agent of a member request tokens for its own account.
func (m Member) SelfRenewal() *rbacv1.RoleBinding {
	return kube.RoleBinding(m.meta(m.Namespace, agentroles.SelfRenewalRole), "ClusterRole", agentroles.SelfRenewalRole,
		kube.AccountSubject(m.Namespace, naming.MemberServiceAccount))
}

// NewReport returns the report of a member with the given spec.
func (m Member) NewReport(asked clusterv1beta1.InternalMemberClusterSpec) *clusterv1beta1.InternalMemberCluster {
	return &clusterv1beta1.InternalMemberCluster{ObjectMeta: m.meta(m.Namespace, m.Name), Spec: asked}
}

// NewLease returns the Lease for the heartbeats of a member's agent.
func (m Member) NewLease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: m.meta(m.Namespace, naming.HeartbeatLease)}
}

// Account returns the name of a member's ServiceAccount. All its credentials end with its deletion.
func (m Member) Account() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: naming.MemberServiceAccount}}
}
