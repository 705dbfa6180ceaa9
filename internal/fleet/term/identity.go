package term

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/naming"
)

// SecretType is the type of the Secret with the identity of a hub. The admission policy of the hub
// permits the hub this type in its own namespace.
const SecretType corev1.SecretType = "muster/hub-identity"

// Keys of the Secret with the identity of a hub.
const (
	keySeed     = "key"
	keyTerm     = "term"
	keyFencedBy = "fencedBy"
	keyDemoted  = "demoted"
	keyInForce  = "inForce"
)

// Identity is the identity of a hub, as stored in a Secret of its namespace.
type Identity struct {
	key ed25519.PrivateKey
	// Term is the number of the term.
	Term int64
	// FencedBy is the proof of another hub with a higher term; nil if there is none.
	FencedBy *clusterv1beta1.HubTerm
	// Demoted is set if an administrator has stopped the hub.
	Demoted bool
	// InForce is the term at the last start of the controllers of the hub; 0 before the first one.
	InForce int64
}

// NewIdentity returns the identity of a new hub, with the term 1.
func NewIdentity() (Identity, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Identity{}, fmt.Errorf("generating the key of the hub: %w", err)
	}
	return Identity{key: key, Term: 1}, nil
}

// Restored returns the identity of a hub restored from a backup, above the term of the backup.
func Restored(seed []byte, backedUp int64) (Identity, error) {
	if len(seed) != ed25519.SeedSize {
		return Identity{}, fmt.Errorf("the key of the hub has %d bytes, want %d", len(seed), ed25519.SeedSize)
	}
	if backedUp < 1 {
		return Identity{}, fmt.Errorf("the term of the backup is %d, want at least 1", backedUp)
	}
	return Identity{key: ed25519.NewKeyFromSeed(seed), Term: backedUp + 1}, nil
}

// Seed returns the private key in the form for Restored.
func (i Identity) Seed() []byte { return i.key.Seed() }

// Fingerprint returns the name of the hub's key.
func (i Identity) Fingerprint() string {
	return credential.Fingerprint(i.key.Public().(ed25519.PublicKey))
}

// SameKey reports whether two identities have the same key.
func (i Identity) SameKey(other Identity) bool { return i.key.Equal(other.key) }

// SameExceptInForce reports whether two identities differ at most in InForce. The hub stores it by
// itself.
func (i Identity) SameExceptInForce(other Identity) bool {
	i.InForce = other.InForce
	one, two := &corev1.Secret{}, &corev1.Secret{}
	i.Fill(one)
	other.Fill(two)
	return maps.EqualFunc(one.Data, two.Data, bytes.Equal)
}

// On returns the signed term of the hub on a cluster.
func (i Identity) On(cluster string) *clusterv1beta1.HubTerm { return Sign(i.key, i.Term, cluster) }

// Stopped returns the reason of the hub to stand still on a cluster; "" if it works.
func (i Identity) Stopped(cluster string) string {
	switch by := i.FencedBy; {
	case by != nil && Fences(by, i.On(cluster)):
		return fmt.Sprintf("the hub is fenced: it has term %d, and %s has term %d. It changes nothing. If this hub is to be the hub of the "+
			"members again, run muster hub promote; else uninstall it", i.Term, Name(by), by.Term)
	case i.Demoted:
		return fmt.Sprintf("the hub is demoted at term %d, and changes nothing: to let it work again, run muster hub promote", i.Term)
	}
	return ""
}

// Promote returns the identity with a term above its own, above all terms that stopped it, and
// above another one.
func (i Identity) Promote(above int64) Identity {
	if i.FencedBy != nil {
		above = max(above, i.FencedBy.Term)
	}
	i.Term, i.FencedBy, i.Demoted = max(i.Term, above)+1, nil, false
	return i
}

// Fill writes the identity into its Secret.
func (i Identity) Fill(secret *corev1.Secret) {
	secret.Data = map[string][]byte{keySeed: i.key.Seed(), keyTerm: []byte(strconv.FormatInt(i.Term, 10))}
	if i.FencedBy != nil {
		secret.Data[keyFencedBy] = []byte(Encode(i.FencedBy))
	}
	if i.Demoted {
		secret.Data[keyDemoted] = []byte("true")
	}
	if i.InForce > 0 {
		secret.Data[keyInForce] = []byte(strconv.FormatInt(i.InForce, 10))
	}
}

// Secret returns the Secret of the identity in the hub's namespace.
func (i Identity) Secret(namespace string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: naming.HubIdentitySecret}, Type: SecretType}
	i.Fill(secret)
	return secret
}

// FromSecret reads the identity of a hub. Its error never quotes the key.
func FromSecret(secret *corev1.Secret) (Identity, error) {
	if secret.Type != SecretType {
		return Identity{}, fmt.Errorf("it has the type %q, want %q", secret.Type, SecretType)
	}
	seed := secret.Data[keySeed]
	if len(seed) != ed25519.SeedSize {
		return Identity{}, errors.New("it holds no key of a hub")
	}
	number, err := strconv.ParseInt(string(secret.Data[keyTerm]), 10, 64)
	if err != nil || number < 1 {
		return Identity{}, errors.New("it holds no term of at least 1")
	}
	i := Identity{key: ed25519.NewKeyFromSeed(seed), Term: number, Demoted: string(secret.Data[keyDemoted]) == "true"}
	i.InForce, _ = strconv.ParseInt(string(secret.Data[keyInForce]), 10, 64) // absent before the first start of the hub
	if stored := secret.Data[keyFencedBy]; len(stored) > 0 {
		if i.FencedBy, err = Decode(string(stored)); err != nil {
			return Identity{}, fmt.Errorf("its proof of another hub is invalid: %w", err)
		}
	}
	return i, nil
}
