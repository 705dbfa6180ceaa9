package membership

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// AgentKind is the kind of agent that an identity was issued to.
type AgentKind string

// The kinds of agents.
const (
	// Native agents are Muster's own: they beat through a Lease and report.
	Native AgentKind = "native"
	// Legacy agents are unmodified Rancher Fleet agents.
	Legacy AgentKind = "legacy"
)

// annotationAgent on a member's ServiceAccount says which kind of agent it was issued to.
const annotationAgent = "muster/agent"

// Identity is who a member's agent acts as on the hub.
type Identity struct {
	Member
	Kind AgentKind
	// Registration is the request that the identity was issued for.
	Registration string
	// RegistrationUID tells requests of one name apart.
	RegistrationUID types.UID
}

const annotationRegistrationUID = "muster/cluster-registration-uid"

// account returns the ServiceAccount of the identity. There is one per member, so that replacing it ends all credentials issued
// before at once.
func (i Identity) account() *corev1.ServiceAccount {
	off := false
	account := &corev1.ServiceAccount{ObjectMeta: i.meta(i.Namespace, naming.MemberServiceAccount), AutomountServiceAccountToken: &off}
	account.Annotations[annotationAgent] = string(i.Kind)
	account.Annotations[fleet.AnnotationRegistration] = i.Registration
	account.Annotations[fleet.AnnotationRegistrationNamespace] = i.Workspace
	account.Annotations[annotationRegistrationUID] = string(i.RegistrationUID)
	return account
}

// KindOf says which kind of agent a member's ServiceAccount was issued to.
func KindOf(account client.Object) AgentKind {
	return AgentKind(account.GetAnnotations()[annotationAgent])
}

// Establish makes the identity the only one of the member and returns its account, which has no credential yet. An account that was
// issued for another request is deleted first, and with it die its credentials; the new one comes last, after all that it may do, so
// that an account which is there is complete.
func (i Identity) Establish(ctx context.Context, c client.Client, live client.Reader, objects ...client.Object) (*corev1.ServiceAccount, error) {
	account := &corev1.ServiceAccount{}
	err := live.Get(ctx, types.NamespacedName{Namespace: i.Namespace, Name: naming.MemberServiceAccount}, account)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ServiceAccount %s/%s: %w", i.Namespace, naming.MemberServiceAccount, err)
	}
	if err == nil {
		if account.Annotations[annotationRegistrationUID] == string(i.RegistrationUID) {
			return account, nil
		}
		if err := c.Delete(ctx, account, client.Preconditions{UID: &account.UID}); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("revoking the identity issued to ClusterRegistration %s: %w", account.Annotations[fleet.AnnotationRegistration], err)
		}
		if err := kube.Delete(ctx, c, i.other().grants()...); err != nil {
			return nil, err
		}
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

// TokenSecret asks Kubernetes for a token of the account without an end, because upstream agents never renew theirs.
func (i Identity) TokenSecret() *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: i.meta(i.Namespace, naming.ServiceAccountToken(naming.MemberServiceAccount)),
		Type:       corev1.SecretTypeServiceAccountToken,
	}
	secret.Annotations[corev1.ServiceAccountNameKey] = naming.MemberServiceAccount
	return secret
}

// other is the same member with the other kind of agent, whose rights have to go.
func (i Identity) other() Identity {
	other := i
	other.Kind = Native
	if i.Kind == Native {
		other.Kind = Legacy
	}
	return other
}

// Objects returns everything but the account that the identity needs: what it may do, and, for a native agent, the report and the
// Lease that it writes to.
func (i Identity) Objects(asked clusterv1beta1.InternalMemberClusterSpec) []client.Object {
	objects := i.grants()
	if i.Kind == Native {
		objects = append(objects, i.report(asked), i.lease())
	}
	return objects
}

func (i Identity) grants() []client.Object {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: i.Namespace, Name: naming.MemberServiceAccount}}
	bind := func(role string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{
			ObjectMeta: i.meta(i.Namespace, role),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   subjects,
		}
	}
	if i.Kind == Native {
		return []client.Object{bind(memberRole)}
	}
	// Upstream agents write their beat into the status of their Cluster.
	beat := &rbacv1.Role{
		ObjectMeta: i.meta(i.Workspace, i.Namespace),
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusters/status"},
			ResourceNames: []string{i.Name}, Verbs: []string{"patch"},
		}},
	}
	beat.OwnerReferences = i.recordOwner()
	beatBinding := &rbacv1.RoleBinding{
		ObjectMeta: i.meta(i.Workspace, i.Namespace),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: beat.Name},
		Subjects:   subjects,
	}
	beatBinding.OwnerReferences = i.recordOwner()
	return []client.Object{bind(bundleDeploymentRole), beat, beatBinding}
}

// ContentBinding lets the agent of a member read Contents by name. It is made with the first deployment and not with the identity, so that
// joining does not pay for it. The UID is that of the member namespace, with which it goes.
func (m Member) ContentBinding(namespaceUID types.UID) *rbacv1.ClusterRoleBinding {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: m.meta("", naming.SafeConcat(m.Namespace, "content")),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: contentRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: m.Namespace, Name: naming.MemberServiceAccount}},
	}
	binding.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: m.Namespace, UID: namespaceUID}}
	return binding
}

func (m Member) recordOwner() []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: fleet.GroupVersion.String(), Kind: "Cluster", Name: m.Name, UID: m.UID}}
}

func (m Member) report(asked clusterv1beta1.InternalMemberClusterSpec) *clusterv1beta1.InternalMemberCluster {
	return &clusterv1beta1.InternalMemberCluster{ObjectMeta: m.meta(m.Namespace, m.Name), Spec: asked}
}

func (m Member) lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: m.meta(m.Namespace, naming.HeartbeatLease)}
}

// Revoke ends the identity that a registration gave to a member, and with it all of its credentials.
func (m Member) Revoke(ctx context.Context, c client.Client) error {
	return kube.Delete(ctx, c, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: naming.MemberServiceAccount}})
}
