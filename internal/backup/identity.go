package backup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-fleet/muster/internal/fleet/term"
	"github.com/muster-fleet/muster/internal/naming"
)

// Hub is the identity of the hub in a backup. A hub with the same key and a higher term fences the
// lost hub.
type Hub struct {
	Key  []byte `json:"key"`
	Term int64  `json:"term"`
}

const identityName = "Secret " + naming.SystemNamespace + "/" + naming.HubIdentitySecret

// identity reads the identity of the hub; nil if the hub has none, as an earlier version.
func (t *taking) identity(ctx context.Context) (*Hub, error) {
	o, err := t.hub.Resource(secrets).Namespace(naming.SystemNamespace).Get(ctx, naming.HubIdentitySecret, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // there is none
	case apierrors.IsForbidden(err):
		if !t.WithoutSecrets && len(t.SecretsFrom) == 0 {
			t.forbidden = append(t.forbidden, "secrets in namespace "+naming.SystemNamespace+" (the key of the hub)")
		}
		return nil, nil //nolint:nilnil // the summary reports it
	case err != nil:
		return nil, fmt.Errorf("reading %s, the identity of the hub: %w", identityName, err)
	}
	_, identity, err := decodeIdentity(o)
	if err != nil {
		return nil, err
	}
	return &Hub{Key: identity.Seed(), Term: identity.Term}, nil
}

func decodeIdentity(o *unstructured.Unstructured) (*corev1.Secret, term.Identity, error) {
	secret := &corev1.Secret{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, secret); err != nil {
		return nil, term.Identity{}, fmt.Errorf("decoding %s: %w", identityName, err)
	}
	identity, err := term.FromSecret(secret)
	if err != nil {
		return nil, identity, fmt.Errorf("%s is no identity of a hub: %w", identityName, err)
	}
	return secret, identity, nil
}

// keepsOwnKey reports whether the hub does not get the key of the lost hub.
func (r *restoring) keepsOwnKey() bool { return r.done.Hub == nil || r.Merge }

// restoreIdentity gives the hub the key of the backup, and a higher term. It comes before all
// members, so no hub acts for them with the term of the lost hub. A repeated restore raises the
// term once.
func (r *restoring) restoreIdentity(ctx context.Context) error {
	if r.keepsOwnKey() {
		r.done.Notes = append(r.done.Notes, "the hub keeps its own key: members cannot tell that it succeeds the lost hub, so stop the lost "+
			"hub for good")
		return nil
	}
	identity, err := term.Restored(r.done.Hub.Key, r.done.Hub.Term)
	if err != nil {
		return fmt.Errorf("reading the identity of the hub in the backup: %w", err)
	}
	stored := r.hub.Resource(secrets).Namespace(naming.SystemNamespace)
	current, err := stored.Get(ctx, naming.HubIdentitySecret, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading %s, the identity of the hub: %w", identityName, err)
	}
	exists := err == nil
	secret := identity.Secret(naming.SystemNamespace)
	if exists {
		before, own, err := decodeIdentity(current)
		switch {
		case err != nil:
			return err
		case before.Annotations[AnnotationRestored] == r.done.ID:
			r.done.Term = own.Term
			return nil
		case own.SameKey(identity):
			identity = own.Promote(r.done.Hub.Term)
		}
		secret = before
		identity.Fill(secret)
	}
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, AnnotationRestored, r.done.ID)
	secret.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(secret)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", identityName, err)
	}
	if o := (&unstructured.Unstructured{Object: content}); exists {
		_, err = stored.Update(ctx, o, metav1.UpdateOptions{FieldManager: fieldManager})
	} else {
		_, err = stored.Create(ctx, o, metav1.CreateOptions{FieldManager: fieldManager})
	}
	if err != nil {
		return fmt.Errorf("writing %s, the identity of the hub: %w", identityName, err)
	}
	r.done.Term = identity.Term
	return nil
}
