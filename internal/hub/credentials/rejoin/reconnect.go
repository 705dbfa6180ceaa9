// Package rejoin issues the tokens for agents to rejoin after their credential has expired. Each
// workspace has one account for this, and all its native agents get tokens of this account. The
// account may only create registration requests in the workspace. The hub grants such a request
// only if it is signed with the key pinned to a Cluster.
//
// Rejoin owns the accounts, and their Roles and RoleBindings. Its invariant: a token of such an
// account is useless without the key of a member.
package rejoin

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// life is the longest time a cluster may be disconnected and still rejoin without a registration
	// token. The API server may grant less.
	life = 365 * 24 * time.Hour
	// sharedFor is the time during which all agents with a new or renewed credential get the same
	// token. Many agents at once then cost one request.
	sharedFor = 12 * time.Hour
	// retryAfter is the pause after a failed attempt.
	retryAfter = time.Minute
	prefix     = "reconnect-"
)

// Issuer issues the tokens for rejoining.
type Issuer struct {
	controller.Deps
	// workspaces by name.
	workspaces kube.Memory[string, *workspace]
	// sweeping guards swept, the time of the last removal of unused workspaces.
	sweeping sync.Mutex
	swept    time.Time
}

// workspace holds the state of one workspace.
type workspace struct {
	mu sync.Mutex
	// account is the UID of the token's ServiceAccount; issued is the token's time of issue.
	account types.UID
	token   string
	issued  time.Time
	// uid is the UID of the Namespace.
	uid types.UID
	// failed is the time of the last attempt if it failed, else zero.
	failed time.Time
}

// New returns an issuer.
func New(deps controller.Deps) *Issuer { return &Issuer{Deps: deps} }

// IsAccount reports whether a user is the account of a workspace.
func IsAccount(user, workspace string) bool {
	name, own := strings.CutPrefix(user, "system:serviceaccount:"+workspace+":")
	return own && IsName(name)
}

// IsName reports whether a ServiceAccount of a workspace is the workspace's account for rejoining.
func IsName(account string) bool { return strings.HasPrefix(account, prefix) }

// Token returns a token for the agents of a workspace; "" if it cannot get one. It logs the failure
// and returns no error, because membership does not depend on the token.
func (i *Issuer) Token(ctx context.Context, name string) string {
	now := i.Clock.Now()
	i.sweep(now)
	w := i.workspaces.Of(name, &workspace{})
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Before(w.failed.Add(retryAfter)) {
		return ""
	}
	token, err := i.token(ctx, name, w)
	if err != nil && !apierrors.IsForbidden(err) && ctx.Err() == nil { // a momentary failure must not cost an agent its token for a day
		token, err = i.token(ctx, name, w)
	}
	if err == nil {
		w.failed = time.Time{}
		return token
	}
	if w.failed.IsZero() {
		ctrl.LoggerFrom(ctx).Info("Agents with an expired credential cannot return with their key", "workspace", name, "reason",
			err.Error())
	}
	w.failed = now
	return ""
}

// sweep drops the workspaces with a token no longer issued to agents.
func (i *Issuer) sweep(now time.Time) {
	i.sweeping.Lock()
	defer i.sweeping.Unlock()
	if now.Before(i.swept.Add(sharedFor)) {
		return
	}
	i.swept = now
	i.workspaces.ForgetWhere(func(_ string, w *workspace) bool {
		if !w.mu.TryLock() {
			return false // it is in use
		}
		defer w.mu.Unlock()
		return !now.Before(w.issued.Add(sharedFor)) && !now.Before(w.failed.Add(retryAfter))
	})
}

func (i *Issuer) token(ctx context.Context, name string, w *workspace) (string, error) {
	now := i.Clock.Now()
	if w.uid == "" {
		namespace := kube.CoreMetadata("Namespace")
		if err := i.Live.Get(ctx, types.NamespacedName{Name: name}, namespace); err != nil {
			return "", fmt.Errorf("reading Namespace %s: %w", name, err)
		}
		w.uid = namespace.UID
	}
	account := kube.CoreMetadata("ServiceAccount")
	if err := i.Client.Get(ctx, types.NamespacedName{Namespace: name, Name: prefix + string(w.uid)},
		account); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading the account of workspace %s: %w", name, err)
	}
	if w.token != "" && account.UID == w.account && now.Before(w.issued.Add(sharedFor)) {
		return w.token, nil
	}
	objects := i.objects(name, prefix+string(w.uid))
	missing, err := kube.Missing(ctx, i.Live, kube.MetadataOf(i.Client.Scheme()), objects...)
	if err == nil {
		err = kube.Ensure(ctx, i.Client, missing...)
	}
	if err != nil {
		return "", err
	}
	own := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: prefix + string(w.uid)}}
	token, err := kube.RequestToken(ctx, i.Client.SubResource("token"), own, life)
	if err != nil {
		w.uid = "" // the Namespace may be a new one of the same name
		return "", err
	}
	if err := i.Live.Get(ctx, client.ObjectKeyFromObject(own), own); err != nil {
		return "", fmt.Errorf("reading the account of workspace %s: %w", name, err)
	}
	w.token, w.account, w.issued = token, own.UID, now
	return token, nil
}

// objects returns the account and its right to create registration requests, and the hub's right to
// issue tokens in the workspace.
func (i *Issuer) objects(workspace, name string) []client.Object {
	meta := metav1.ObjectMeta{Namespace: workspace, Name: name, Labels: map[string]string{fleet.LabelManaged: "true"}}
	return []client.Object{
		&rbacv1.Role{ObjectMeta: *meta.DeepCopy(), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusterregistrations"}, Verbs: []string{"create"}},
		}},
		kube.RoleBinding(*meta.DeepCopy(), "Role", name, kube.AccountSubject(workspace, name)),
		membernamespace.TokenIssuer(workspace, i.SystemNamespace),
		&corev1.ServiceAccount{ObjectMeta: *meta.DeepCopy(), AutomountServiceAccountToken: new(false)},
	}
}
