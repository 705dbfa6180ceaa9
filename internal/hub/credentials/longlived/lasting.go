// Package longlived issues tokens without renewal: for Rancher Fleet agents, and for
// ClusterRegistrationTokens without a TTL.
//
// Longlived owns the Secrets of such tokens; a token ends with its Secret. The API server issues a
// token bound to an empty Secret. If its life is too short, kube-controller-manager fills a Secret
// of another type with a token, at a few a second for all requests. Its invariant: a lasting token
// belongs to exactly the given account, and ends with this account or its Secret.
package longlived

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

const (
	// life is the longest life accepted by the TokenRequest API, 136 years.
	life = math.MaxUint32 * time.Second
	// enough is the shortest life of a lasting token.
	enough = 10 * 365 * 24 * time.Hour
	// retryAfter is the interval between requests after an API server granted less than enough.
	retryAfter = time.Hour
)

// Issuer issues tokens without renewal.
type Issuer struct {
	controller.Deps

	mu sync.Mutex
	// limited is the last time when the API server granted less than enough; zero if never.
	limited time.Time
}

// New returns an issuer.
func New(deps controller.Deps) *Issuer { return &Issuer{Deps: deps} }

// Secrets returns the two possible Secrets of a lasting token; one of them exists. The token is
// bound to the first, an empty one. kube-controller-manager fills the second. Both share the given
// metadata. Their names begin with the given name; by default it is the account.
func Secrets(account string, meta metav1.ObjectMeta) (bound, filled *corev1.Secret) {
	base := cmp.Or(meta.Name, account)
	bound = &corev1.Secret{ObjectMeta: *meta.DeepCopy(), Type: fleet.SecretTypeLastingToken}
	bound.Name = naming.LastingToken(base)
	filled = &corev1.Secret{ObjectMeta: *meta.DeepCopy(), Type: corev1.SecretTypeServiceAccountToken}
	filled.Name = naming.ServiceAccountToken(base)
	metav1.SetMetaDataAnnotation(&filled.ObjectMeta, corev1.ServiceAccountNameKey, account)
	return bound, filled
}

// Lasts reports whether a token needs no renewal.
func Lasts(claims credential.Claims) bool { return claims.Expires.IsZero() || claims.Life() >= enough }

// Token returns a lasting token of an account, with metadata for Secrets. The token is "" until
// kube-controller-manager has filled the returned Secret.
func (i *Issuer) Token(ctx context.Context, account *corev1.ServiceAccount,
	meta metav1.ObjectMeta) (token string, awaited *corev1.Secret, err error) {
	bound, filled := Secrets(account.Name, meta)
	pending, err := i.asked(ctx, account, filled)
	if err != nil {
		return "", nil, err
	}
	if pending {
		return i.read(ctx, account, filled)
	}
	if token, err := i.request(ctx, account, bound); err != nil || token != "" {
		return token, nil, err
	}
	return "", filled, kube.Ensure(ctx, i.Client, filled)
}

// asked reports whether a hub, this one or one of an earlier version, has created the Secret to be
// filled for exactly this account.
func (i *Issuer) asked(ctx context.Context, account *corev1.ServiceAccount, filled *corev1.Secret) (bool, error) {
	have := kube.CoreMetadata("Secret")
	if err := i.Client.Get(ctx, client.ObjectKeyFromObject(filled), have); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	of, said := have.Annotations[corev1.ServiceAccountUIDKey]
	return !said || of == string(account.UID), nil // else it belongs to the previous account, and Kubernetes deletes it
}

// read returns the token in a Secret filled by kube-controller-manager.
func (i *Issuer) read(ctx context.Context, account *corev1.ServiceAccount, filled *corev1.Secret) (string, *corev1.Secret, error) {
	var secret corev1.Secret
	if err := i.Live.Get(ctx, client.ObjectKeyFromObject(filled), &secret); err != nil {
		return "", nil, fmt.Errorf("reading Secret %s/%s: %w", filled.Namespace, filled.Name, err)
	}
	if secret.Annotations[corev1.ServiceAccountUIDKey] != string(account.UID) {
		return "", &secret, nil
	}
	return string(secret.Data[corev1.ServiceAccountTokenKey]), &secret, nil
}

// request returns a token bound to a Secret, or "" if the API server grants no lasting token.
func (i *Issuer) request(ctx context.Context, account *corev1.ServiceAccount, bound *corev1.Secret) (string, error) {
	if i.isLimited() {
		return "", nil
	}
	if err := kube.Ensure(ctx, i.Client, bound); err != nil {
		return "", err
	}
	token, err := kube.RequestBoundToken(ctx, i.Client.SubResource("token"), account, bound, life)
	if err != nil {
		return "", err
	}
	claims, err := credential.ReadClaims(token)
	if err != nil {
		return "", err
	}
	if claims.AccountUID != string(account.UID) {
		return "", fmt.Errorf("requesting a token for ServiceAccount %s/%s: the account was replaced meanwhile", account.Namespace, account.Name)
	}
	if Lasts(claims) {
		return token, nil
	}
	i.limit(ctx, claims.Life())
	return "", kube.Delete(ctx, i.Client, bound) // and with it the short-lived token
}

func (i *Issuer) isLimited() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return !i.limited.IsZero() && i.Clock.Since(i.limited) < retryAfter
}

func (i *Issuer) limit(ctx context.Context, granted time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.limited.IsZero() {
		ctrl.LoggerFrom(ctx).Info("The API server grants no long-lived tokens: kube-controller-manager issues the tokens without renewal",
			"granted", granted)
	}
	i.limited = i.Clock.Now()
}
