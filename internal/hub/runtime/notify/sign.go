package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// secretKey is the key of the signing keys in the Secret's data.
	secretKey = "key"
	// keyPrefix begins a key in the notation of Standard Webhooks.
	keyPrefix = "whsec_"
	// minKey and maxKey bound a key in bytes, as Standard Webhooks recommend.
	minKey, maxKey = 24, 64
	// maxKeys is the number of concurrent signing keys: the next one and the previous one.
	maxKeys = 2
	// keysLife is the time between two reads of the keys.
	keysLife = time.Minute
)

// keys are the signing keys of a sink.
type keys struct {
	of [][]byte
	// read is the time of the read; zero if there was none.
	read time.Time
}

// readKeys reads the Secret of the sink, unless it has done so within the last minute.
func (w *worker) readKeys(ctx context.Context, now time.Time) error {
	if !w.keys.read.IsZero() && now.Before(w.keys.read.Add(keysLife)) {
		return nil
	}
	var secret corev1.Secret
	name := client.ObjectKey{Namespace: w.namespace, Name: w.to.SecretName}
	if err := w.live.Get(ctx, name, &secret); apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no Secret %s: create it with the signing key under %s", name, secretKey)
	} else if err != nil {
		return fmt.Errorf("reading Secret %s: %w", name, err)
	}
	parsed, err := parseKeys(secret.Data[secretKey])
	if err != nil {
		return fmt.Errorf("reading the key in Secret %s: %w", name, err)
	}
	w.keys = keys{parsed, now}
	return nil
}

// parseKeys reads keys in the notation of Standard Webhooks, one a line.
func parseKeys(text []byte) (parsed [][]byte, err error) {
	lines := bytes.Fields(text)
	if len(lines) == 0 || len(lines) > maxKeys {
		return nil, fmt.Errorf("%s has %d lines: want one key, or two while the receiver changes to the next one", secretKey, len(lines))
	}
	for _, line := range lines {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(string(line), keyPrefix))
		if err != nil || len(key) < minKey || len(key) > maxKey {
			return nil, fmt.Errorf("%s is no signing key: want %s and the base64 of %d to %d random bytes", secretKey, keyPrefix, minKey, maxKey)
		}
		parsed = append(parsed, key)
	}
	return parsed, nil
}

// sign returns the header webhook-signature: a signature by each key.
func (k keys) sign(id, stamp string, body []byte) string {
	signatures := make([]string, len(k.of))
	for i, key := range k.of {
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.", id, stamp)
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}
