package token

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/kube"
)

// known holds this process's knowledge of the objects of a token beyond their metadata; the cache
// holds only metadata. The hub reads an object again only if the cache shows another version than
// the last one read or written.
type known struct {
	// token is the UID of the token.
	token types.UID
	// secret is the resource version of the Secret, access the state of the rights.
	secret string
	access kube.Verified
	// foreign: the Secret is not the hub's.
	foreign bool
	// claims holds the data of the credential in the Secret. values is the rest of its content as the
	// hub renders it; "" if the content differs.
	claims credential.Claims
	values string
}

// knownOf returns the known of a token. Two reconciles of one token never overlap.
func (c *Controller) knownOf(token *fleet.ClusterRegistrationToken) *known {
	key := client.ObjectKeyFromObject(token)
	if k, found := c.known.Get(key); found && k.token == token.UID {
		return k
	}
	fresh := &known{token: token.UID}
	c.known.Set(key, fresh)
	return fresh
}

// cached reads the metadata of an object from the cache; nil if it has none.
func (c *Controller) cached(ctx context.Context, object client.Object) (*metav1.PartialObjectMetadata, error) {
	have := kube.MetadataOf(c.Client.Scheme())(object).(*metav1.PartialObjectMetadata)
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), have)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", kube.Describe(c.Client.Scheme(), object), err)
	}
	return have, nil
}

// read reads an object from the API server, and reports whether it exists.
func (c *Controller) read(ctx context.Context, into client.Object) (bool, error) {
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(into), into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", kube.Describe(c.Client.Scheme(), into), err)
	}
	return true, nil
}

// readSecret reads the values Secret and notes its content. It returns the credential in it.
func (c *Controller) readSecret(ctx context.Context, token *fleet.ClusterRegistrationToken, o *observation,
	k *known) (bearer string, err error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: token.Namespace, Name: token.Name}}
	found, err := c.read(ctx, secret)
	if err != nil || !found {
		o.secret = nil
		return "", err
	}
	o.secret = &secret.ObjectMeta
	bearer = credentialIn(secret)
	whole, err := renderValues(token, o.settings, c.SystemNamespace, bearer)
	if err != nil {
		return "", err
	}
	k.secret, k.foreign, k.claims, k.values = secret.ResourceVersion, secret.Type != fleet.SecretTypeValues, credential.ClaimsOf(bearer), ""
	if string(secret.Data[valuesKey]) == whole {
		k.values = o.values
	}
	return bearer, nil
}

// ensureAccess creates the rights of the account if they are missing or differ, even by an earlier
// version of the hub.
func (c *Controller) ensureAccess(ctx context.Context, token *fleet.ClusterRegistrationToken, k *known) error {
	role, binding := desiredAccess(token)
	seen, shown, err := kube.Shown(ctx, c.Client, []any{role.Rules, binding.Subjects}, role, binding)
	if err != nil || seen == k.access {
		return err
	}
	isKnown := len(shown) > 0 || k.access != kube.Verified{}
	rights := []client.Object{role, binding}
	for i, right := range rights {
		if isKnown { // else this process has never seen them
			have, _, same, err := kube.ReadRight(ctx, c.Live, right)
			if err != nil {
				return err
			}
			if same {
				rights[i] = have
				continue
			}
		}
		if err := kube.Ensure(ctx, c.Client, right); err != nil {
			return err
		}
	}
	k.access = seen.At(rights...)
	return nil
}

// ended reports whether the Secret of a credential is gone, and the credential with it.
func (c *Controller) ended(ctx context.Context, claims credential.Claims) (bool, error) {
	if claims.Secret == "" {
		return false, nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: claims.Namespace, Name: claims.Secret}}
	cached, err := c.cached(ctx, secret)
	if err != nil || cached != nil && (claims.SecretUID == "" || claims.SecretUID == string(cached.UID)) {
		return false, err
	}
	live := kube.CoreMetadata("Secret") // the cache may lag behind the last write
	live.Namespace, live.Name = secret.Namespace, secret.Name
	found, err := c.read(ctx, live)
	return !found || claims.SecretUID != "" && claims.SecretUID != string(live.UID), err
}
