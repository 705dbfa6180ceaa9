package credential

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// AgentKey is the private key of an agent, which it keeps for good: requests that are signed with the same key are of the same cluster.
type AgentKey struct{ private ed25519.PrivateKey }

// NewAgentKey generates a key.
func NewAgentKey() (AgentKey, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return AgentKey{}, fmt.Errorf("generating the agent's key: %w", err)
	}
	return AgentKey{private}, nil
}

// ParseAgentKey reads what Seed returned. Its error never quotes that.
func ParseAgentKey(seed []byte) (AgentKey, error) {
	if len(seed) != ed25519.SeedSize {
		return AgentKey{}, fmt.Errorf("the agent's key has %d bytes, want %d", len(seed), ed25519.SeedSize)
	}
	return AgentKey{ed25519.NewKeyFromSeed(seed)}, nil
}

// Seed is the form in which the key is stored.
func (k AgentKey) Seed() []byte { return k.private.Seed() }

// Public is what goes into ClusterRegistration.spec.agentKey.
func (k AgentKey) Public() []byte { return k.private.Public().(ed25519.PublicKey) }

// Sign returns what goes into ClusterRegistration.spec.signature.
func (k AgentKey) Sign(c Claim) []byte { return ed25519.Sign(k.private, c.text()) }

// Claim is what the signature of a request covers, so that no part of it serves in another request.
type Claim struct {
	// Workspace is the namespace of the request, ClientID and Nonce its spec.clientID and spec.clientRandom, Token the name of the
	// ClusterRegistrationToken in its label, "" if there is none.
	Workspace, ClientID, Nonce, Token string
	// AnswerKey is spec.answerKey, without which the answer to a copy of the request can be opened by nobody else.
	AnswerKey []byte
	// HubCAs is spec.hubCAs, without which the request serves on another hub that is reached through somebody in between.
	HubCAs []string `json:",omitempty"`
}

func (c Claim) text() []byte {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and bytes can be encoded
	}
	return append([]byte("muster registration 2\n"), text...)
}

// VerifyClaim returns an error unless the claim was signed with the private half of a key.
func VerifyClaim(public, signature []byte, c Claim) error {
	if len(public) != ed25519.PublicKeySize {
		return fmt.Errorf("spec.agentKey has %d bytes, want an Ed25519 public key of %d", len(public), ed25519.PublicKeySize)
	}
	if !ed25519.Verify(public, c.text(), signature) {
		return errors.New("spec.signature is not that of this request by spec.agentKey")
	}
	return nil
}

var fingerprint = regexp.MustCompile(`^[0-9a-f]{32}$`)

// IsFingerprint says whether a text may be what Fingerprint returns.
func IsFingerprint(text string) bool { return fingerprint.MatchString(text) }

// Fingerprint names a public key: the first half of its SHA-256 digest in hexadecimal form.
func Fingerprint(public []byte) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:sha256.Size/2])
}
