// Package term decides which of two hubs a member obeys: the hub with the higher term.
//
// A hub has a key and a term. A backup holds both, and a restore raises the term. The hub signs its
// term, so a member can prove a higher term to an old hub, and cannot invent one.
//
// Its invariant: the decisions are pure, and a term without a valid signature proves nothing. The
// package reads and writes no objects.
package term

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
)

// text returns the signed content of a term.
func text(t *clusterv1beta1.HubTerm) []byte {
	content, err := json.Marshal(struct {
		Term    int64
		Cluster string
	}{t.Term, t.Cluster})
	if err != nil {
		panic(err) // a number and a string always encode
	}
	return append([]byte("muster hub term 1\n"), content...)
}

// Sign returns the term of a hub on a cluster, signed with the key of the hub.
func Sign(key ed25519.PrivateKey, number int64, cluster string) *clusterv1beta1.HubTerm {
	t := &clusterv1beta1.HubTerm{Hub: key.Public().(ed25519.PublicKey), Term: number, Cluster: cluster}
	t.Signature = ed25519.Sign(key, text(t))
	return t
}

// Verify returns an error unless the hub named in a term has signed it.
func Verify(t *clusterv1beta1.HubTerm) error {
	if len(t.Hub) != ed25519.PublicKeySize {
		return fmt.Errorf("the key of the hub has %d bytes, want %d", len(t.Hub), ed25519.PublicKeySize)
	}
	if !ed25519.Verify(t.Hub, text(t), t.Signature) {
		return errors.New("the signature is not from the key of the hub")
	}
	return nil
}

// SameHub reports whether two terms belong to hubs with the same key.
func SameHub(a, b *clusterv1beta1.HubTerm) bool {
	return a != nil && b != nil && len(a.Hub) > 0 && bytes.Equal(a.Hub, b.Hub)
}

// Supersedes reports whether a is the higher of two terms of hubs with the same key.
func Supersedes(a, b *clusterv1beta1.HubTerm) bool { return SameHub(a, b) && a.Term > b.Term }

// Claims reports whether a term is higher than another one of the same hub, or equal on another
// cluster. Of two equal terms, neither is the newer one.
func Claims(other, own *clusterv1beta1.HubTerm) bool {
	return Supersedes(other, own) || SameHub(other, own) && other.Term == own.Term && other.Cluster != own.Cluster
}

// Fences reports whether a term stops the hub with the term own. A term without a valid signature
// stops no hub.
func Fences(other, own *clusterv1beta1.HubTerm) bool {
	return Claims(other, own) && Verify(other) == nil
}

// Refusal returns the reason of a member to refuse the orders of its hub; "" if it obeys. The
// member has obeyed a term before. A hub without a term is a hub of an earlier version.
func Refusal(obeyed, offered *clusterv1beta1.HubTerm) string {
	switch {
	case obeyed == nil || offered == nil:
		return ""
	case Verify(offered) != nil:
		return fmt.Sprintf("the term %d of the hub has no valid signature", offered.Term)
	case Claims(obeyed, offered):
		return fmt.Sprintf("%s has term %d, and this cluster obeys term %d of %s", Name(offered), offered.Term, obeyed.Term, Name(obeyed))
	}
	return ""
}

// Adopts reports whether a member remembers a term of its hub. It does not remember a refused term,
// and not a term without a valid signature.
func Adopts(obeyed, offered *clusterv1beta1.HubTerm) bool {
	return offered != nil && Verify(offered) == nil && Refusal(obeyed, offered) == "" &&
		(!SameHub(obeyed, offered) || offered.Term > obeyed.Term)
}

// Name returns the name of a hub for messages: the begin of its fingerprint, and its cluster.
func Name(t *clusterv1beta1.HubTerm) string {
	const enough = 8
	return fmt.Sprintf("the hub %s on the cluster %.36s", credential.Fingerprint(t.Hub)[:enough], t.Cluster)
}

// Encode returns the stored form of a term.
func Encode(t *clusterv1beta1.HubTerm) string {
	content, err := json.Marshal(t)
	if err != nil {
		panic(err) // plain data: a mistake in this program
	}
	return string(content)
}

// maxStored bounds the stored form of a term. It may stand on a foreign cluster.
const maxStored = 1024

// Decode reads the result of Encode. A term without a valid signature is an error.
func Decode(stored string) (*clusterv1beta1.HubTerm, error) {
	if len(stored) > maxStored {
		return nil, fmt.Errorf("the stored term has %d bytes, and the limit is %d", len(stored), maxStored)
	}
	t := &clusterv1beta1.HubTerm{}
	if err := json.Unmarshal([]byte(stored), t); err != nil {
		return nil, fmt.Errorf("decoding the stored term: %w", err)
	}
	return t, Verify(t)
}

// ConfigMapKey is the key of the ConfigMap with the term that a member obeys.
const ConfigMapKey = "hubTerm"
