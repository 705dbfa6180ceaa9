package credential

import (
	"crypto/ecdh"
	"crypto/hpke"
	"encoding/json"
	"fmt"
	"time"
)

// Answer is the answer to a granted request. Its JSON keys are the keys of the Secret for upstream
// agents.
type Answer struct {
	// Token is a bearer token for the hub's API.
	Token string `json:"token"`
	// DeploymentNamespace is the member namespace.
	DeploymentNamespace string `json:"deploymentNamespace"`
	// ClusterNamespace is the workspace.
	ClusterNamespace string `json:"clusterNamespace"`
	// ClusterName is the name of the Cluster in the workspace.
	ClusterName string `json:"clusterName"`
	// SystemNamespace is the hub's system namespace.
	SystemNamespace string `json:"systemNamespace"`
	// Reconnect is a token for joining again as this member after Token has expired; "" if the hub
	// issues none.
	Reconnect string `json:"reconnect,omitempty"`
	// Expires is the time of expiry of Token; the agent renews it before. Zero means never.
	Expires time.Time `json:"expires,omitzero"`
}

// AnswerKey is the private key for the answer to one request.
type AnswerKey struct{ private hpke.PrivateKey }

// NewAnswerKey generates a key for one request.
func NewAnswerKey() (AnswerKey, error) {
	private, err := kem().GenerateKey()
	if err != nil {
		return AnswerKey{}, fmt.Errorf("generating the key for the hub's answer: %w", err)
	}
	return AnswerKey{private}, nil
}

// Public returns the value of ClusterRegistration.spec.answerKey.
func (k AnswerKey) Public() []byte { return k.private.PublicKey().Bytes() }

// Open decrypts the answer to the request with the given UID.
func (k AnswerKey) Open(requestUID string, sealed []byte) (Answer, error) {
	return open[Answer](k.private, sealInfo(requestUID), sealed, "the hub's answer to request "+requestUID)
}

// Seal encrypts the answer to the request with the given UID. Only the holder of the key can read
// it, and it is useless for another request.
func Seal(answerKey []byte, requestUID string, answer Answer) ([]byte, error) {
	public, err := kem().NewPublicKey(answerKey)
	if err != nil {
		return nil, fmt.Errorf("reading spec.answerKey: want a 32 byte X25519 public key: %w", err)
	}
	return seal(public, sealInfo(requestUID), answer, "the answer")
}

// ValidAnswerKey reports whether an answer can be sealed to the key.
func ValidAnswerKey(answerKey []byte) bool {
	_, err := kem().NewPublicKey(answerKey)
	return err == nil
}

func kem() hpke.KEM { return hpke.DHKEM(ecdh.X25519()) }

// seal encrypts a value to a key, bound to the info.
func seal(public hpke.PublicKey, info []byte, value any, what string) ([]byte, error) {
	plain, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", what, err)
	}
	return hpke.Seal(public, hpke.HKDFSHA256(), hpke.AES256GCM(), info, plain)
}

// open decrypts the result of seal.
func open[T any](private hpke.PrivateKey, info, sealed []byte, what string) (T, error) {
	var value, none T
	plain, err := hpke.Open(private, hpke.HKDFSHA256(), hpke.AES256GCM(), info, sealed)
	if err != nil {
		return none, fmt.Errorf("opening %s: it is sealed to another key: %w", what, err)
	}
	if err := json.Unmarshal(plain, &value); err != nil {
		return none, fmt.Errorf("decoding %s: %w", what, err)
	}
	return value, nil
}

func sealInfo(requestUID string) []byte { return []byte("muster registration " + requestUID) }
