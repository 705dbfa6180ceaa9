package credential

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha512"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"filippo.io/edwards25519"

	"github.com/muster-fleet/muster/internal/naming"
)

// AgentKey is the permanent private key of an agent: requests signed with the same key come from
// the same cluster.
type AgentKey struct{ private ed25519.PrivateKey }

// NewAgentKey generates a key.
func NewAgentKey() (AgentKey, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return AgentKey{}, fmt.Errorf("generating the agent's key: %w", err)
	}
	return AgentKey{private}, nil
}

// ParseAgentKey parses the result of Seed. Its error never quotes the seed.
func ParseAgentKey(seed []byte) (AgentKey, error) {
	if len(seed) != ed25519.SeedSize {
		return AgentKey{}, fmt.Errorf("the agent's key has %d bytes, want %d", len(seed), ed25519.SeedSize)
	}
	return AgentKey{ed25519.NewKeyFromSeed(seed)}, nil
}

// Seed returns the stored form of the key.
func (k AgentKey) Seed() []byte { return k.private.Seed() }

// Public returns the value of ClusterRegistration.spec.agentKey.
func (k AgentKey) Public() []byte { return k.private.Public().(ed25519.PublicKey) }

// Sign returns the value of ClusterRegistration.spec.signature.
func (k AgentKey) Sign(c Claim) []byte { return ed25519.Sign(k.private, c.text()) }

// Claim is the content that the signature of a request covers, so that no part of it is valid in
// another request.
type Claim struct {
	// Workspace is the namespace of the request, ClientID and Nonce its spec.clientID and
	// spec.clientRandom. Token is the name of the ClusterRegistrationToken in its label, "" if there
	// is none.
	Workspace, ClientID, Nonce, Token string
	// AnswerKey is spec.answerKey. Because it is signed, only the agent can open the answer to a copy
	// of the request.
	AnswerKey []byte
	// HubCAs is spec.hubCAs. Because it is signed, an attacker between agent and hub cannot use the
	// request on another hub.
	HubCAs []string `json:",omitempty"`
}

// TimedNonce appends the time of the request to the random part of a nonce. The signature covers
// the nonce, also for hubs that ignore the time.
func TimedNonce(random string, at time.Time) string {
	return random + "." + strconv.FormatInt(at.UnixMicro(), 10)
}

// NonceTime returns the time in a nonce, if it has one.
func NonceTime(nonce string) (at time.Time, timed bool) {
	_, digits, timed := strings.Cut(nonce, ".")
	micros, err := strconv.ParseInt(digits, 10, 64)
	if !timed || err != nil {
		return time.Time{}, false
	}
	return time.UnixMicro(micros), true
}

func (c Claim) text() []byte {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and bytes always encode
	}
	return append([]byte("muster registration 2\n"), text...)
}

// VerifyClaim returns an error unless c was signed with the private half of a key.
func VerifyClaim(public, signature []byte, c Claim) error {
	if len(public) != ed25519.PublicKeySize {
		return fmt.Errorf("spec.agentKey has %d bytes, want an Ed25519 public key of %d", len(public), ed25519.PublicKeySize)
	}
	if !ed25519.Verify(public, c.text(), signature) {
		return errors.New("spec.signature is not a signature of this request with spec.agentKey")
	}
	return nil
}

// fingerprintDigits is the length of a fingerprint, 128 bits.
const fingerprintDigits = 32

// Fingerprint returns the name of a public key: the first half of its SHA-256 digest in hexadecimal
// form.
func Fingerprint(public []byte) string {
	return naming.Digest(public)[:fingerprintDigits]
}

// Renewal identifies one credential for a joined agent, so that its sealed form is useless for any
// other.
type Renewal struct {
	// AccountUID is the UID of the token's account on the hub.
	AccountUID string
	// Sequence counts the credentials of the account.
	Sequence int64
}

func (r Renewal) info() []byte {
	return fmt.Appendf(nil, "muster renewal %s %d", r.AccountUID, r.Sequence)
}

// ValidAgentKey reports whether tokens can be sealed to the key.
func ValidAgentKey(agentKey []byte) bool {
	_, err := SealTokens(agentKey, Renewal{}, Tokens{})
	return err == nil
}

// Tokens are the content of a renewal.
type Tokens struct {
	// Token is the bearer token for the hub's API.
	Token string `json:"token"`
	// Reconnect is a token for joining again as this member after Token has expired; "" if the hub
	// issues none.
	Reconnect string `json:"reconnect,omitempty"`
}

// SealTokens encrypts tokens to the public key of an agent in its Montgomery form, as in RFC 7748,
// section 4.1.
func SealTokens(agentKey []byte, r Renewal, tokens Tokens) ([]byte, error) {
	return sealTo(agentKey, r.info(), tokens, "the tokens")
}

// SealStandby encrypts a token for a further address of the hub. It is useless for another address.
func SealStandby(agentKey []byte, server, token string) ([]byte, error) {
	return sealTo(agentKey, standbyInfo(server), token, "the token of the standby")
}

func standbyInfo(server string) []byte { return []byte("muster standby " + server) }

// sealTo encrypts a value to the public key of an agent, bound to the info.
func sealTo(agentKey, info []byte, value any, what string) ([]byte, error) {
	if len(agentKey) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("the agent's key has %d bytes, want %d", len(agentKey), ed25519.PublicKeySize)
	}
	point, err := new(edwards25519.Point).SetBytes(agentKey)
	if err != nil {
		return nil, fmt.Errorf("the agent's key is no Ed25519 public key: %w", err)
	}
	public, err := kem().NewPublicKey(point.BytesMontgomery())
	if err != nil {
		return nil, fmt.Errorf("the agent's key cannot be encrypted to: %w", err)
	}
	return seal(public, info, value, what)
}

// OpenTokens decrypts the result of SealTokens.
func (k AgentKey) OpenTokens(r Renewal, sealed []byte) (Tokens, error) {
	return openWith[Tokens](k, r.info(), sealed, fmt.Sprintf("credential %d of account %s", r.Sequence, r.AccountUID))
}

// OpenStandby decrypts the result of SealStandby.
func (k AgentKey) OpenStandby(server string, sealed []byte) (string, error) {
	return openWith[string](k, standbyInfo(server), sealed, "the token for the address "+server)
}

// openWith decrypts the result of sealTo.
func openWith[T any](k AgentKey, info, sealed []byte, what string) (T, error) {
	scalar := sha512.Sum512(k.Seed()) // RFC 8032, section 5.1.5; X25519 clamps it
	private, err := kem().NewPrivateKey(scalar[:32])
	if err != nil {
		var none T
		return none, fmt.Errorf("reading the agent's key: %w", err)
	}
	return open[T](private, info, sealed, what)
}
