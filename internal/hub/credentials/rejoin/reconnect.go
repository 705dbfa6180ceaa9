// Package rejoin issues the tokens with which agents whose credential has run out ask to be members again. Each workspace has one account for that,
// whose tokens are given to all of its native agents. The account may make requests in the workspace and nothing else, and such a request is granted only
// if it is signed with the key that is pinned to a Cluster.
//
// The package owns the accounts, and their Roles and RoleBindings. Its invariant: a token of such an account is worth nothing without the key of a member.
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
	// life is how long a cluster may be switched off and still come back without a registration token. The API server may grant less.
	life = 365 * 24 * time.Hour
	// sharedFor is how long one token is given to all agents that join or whose credential is renewed, so that a crowd costs one request.
	sharedFor = 12 * time.Hour
	// retryAfter is how long nothing is tried again that has failed.
	retryAfter = time.Minute
	prefix     = "reconnect-"
)

// Issuer issues the tokens.
type Issuer struct {
	controller.Deps
	// workspaces are by name.
	workspaces sync.Map
	// sweeping guards swept, which is when workspaces were last dropped for which nobody asks any more.
	sweeping sync.Mutex
	swept    time.Time
}

// workspace is what is known of one.
type workspace struct {
	mu sync.Mutex
	// account is the ServiceAccount that token is of, issued when.
	account types.UID
	token   string
	issued  time.Time
	// uid is that of the Namespace.
	uid types.UID
	// failed is when the last attempt failed; zero if it did not.
	failed time.Time
}

// New returns an Issuer.
func New(deps controller.Deps) *Issuer { return &Issuer{Deps: deps} }

// IsAccount says whether a user is the account of a workspace.
func IsAccount(user, workspace string) bool {
	name, own := strings.CutPrefix(user, "system:serviceaccount:"+workspace+":")
	return own && IsName(name)
}

// IsName reports whether a ServiceAccount of a workspace is the account of that workspace.
func IsName(account string) bool { return strings.HasPrefix(account, prefix) }

// Token returns a token for the agents of a workspace; "" if there cannot be one, which the log says: membership does not depend on it.
func (i *Issuer) Token(ctx context.Context, name string) string {
	now := i.Clock.Now()
	i.sweep(now)
	entry, _ := i.workspaces.LoadOrStore(name, &workspace{})
	w := entry.(*workspace)
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Before(w.failed.Add(retryAfter)) {
		return ""
	}
	token, err := i.token(ctx, name, w)
	if err != nil && !apierrors.IsForbidden(err) && ctx.Err() == nil { // what is wrong for a moment only is not to cost an agent its token for a day
		token, err = i.token(ctx, name, w)
	}
	if err == nil {
		w.failed = time.Time{}
		return token
	}
	if w.failed.IsZero() {
		ctrl.LoggerFrom(ctx).Info("Agents cannot come back by their key once their credential has run out", "workspace", name, "reason", err.Error())
	}
	w.failed = now
	return ""
}

// sweep drops the workspaces whose token is not given to anybody any more.
func (i *Issuer) sweep(now time.Time) {
	i.sweeping.Lock()
	defer i.sweeping.Unlock()
	if now.Before(i.swept.Add(sharedFor)) {
		return
	}
	i.swept = now
	i.workspaces.Range(func(name, entry any) bool {
		if w := entry.(*workspace); w.mu.TryLock() { // else it is in use
			if !now.Before(w.issued.Add(sharedFor)) && !now.Before(w.failed.Add(retryAfter)) {
				i.workspaces.Delete(name)
			}
			w.mu.Unlock()
		}
		return true
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
	if err := i.Client.Get(ctx, types.NamespacedName{Namespace: name, Name: prefix + string(w.uid)}, account); client.IgnoreNotFound(err) != nil {
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
		w.uid = "" // the Namespace may be another one of the same name
		return "", err
	}
	if err := i.Live.Get(ctx, client.ObjectKeyFromObject(own), own); err != nil {
		return "", fmt.Errorf("reading the account of workspace %s: %w", name, err)
	}
	w.token, w.account, w.issued = token, own.UID, now
	return token, nil
}

// objects are the account and its right to make requests; and the right of the hub to issue tokens in the workspace.
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
