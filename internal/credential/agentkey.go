package credential

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"filippo.io/edwards25519"
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

// TimedNonce appends to the random part of a nonce the time at which an agent asks. The signature of a request covers the nonce, also for hubs that do not
// look for a time in it.
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

// Fingerprint names a public key: the first half of its SHA-256 digest in hexadecimal form.
func Fingerprint(public []byte) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:sha256.Size/2])
}

// Renewal names one credential that the hub issues to an agent that has joined, so that what is sealed serves as no other.
type Renewal struct {
	// AccountUID is the UID of the account on the hub that the token is of.
	AccountUID string
	// Sequence counts the credentials of the account.
	Sequence int64
}

func (r Renewal) info() []byte {
	return fmt.Appendf(nil, "muster renewal %s %d", r.AccountUID, r.Sequence)
}

// ValidAgentKey says whether tokens can be sealed to the key.
func ValidAgentKey(agentKey []byte) bool {
	_, err := SealTokens(agentKey, Renewal{}, Tokens{})
	return err == nil
}

// Tokens are what a renewal consists of.
type Tokens struct {
	// Token is the bearer token for the hub's API.
	Token string `json:"token"`
	// Reconnect is a token with which the agent may ask to be this member again, once Token has run out; "" if the hub issues none.
	Reconnect string `json:"reconnect,omitempty"`
}

// SealTokens encrypts tokens to the public key of an agent, which is used in its Montgomery form, as by RFC 7748, section 4.1.
func SealTokens(agentKey []byte, r Renewal, tokens Tokens) ([]byte, error) {
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
	return seal(public, r.info(), tokens, "the tokens")
}

// OpenTokens decrypts what SealTokens has encrypted.
func (k AgentKey) OpenTokens(r Renewal, sealed []byte) (Tokens, error) {
	scalar := sha512.Sum512(k.Seed()) // RFC 8032, section 5.1.5; X25519 clamps it
	private, err := kem().NewPrivateKey(scalar[:32])
	if err != nil {
		return Tokens{}, fmt.Errorf("reading the agent's key: %w", err)
	}
	return open[Tokens](private, r.info(), sealed, fmt.Sprintf("credential %d of account %s", r.Sequence, r.AccountUID))
}
