package settings

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/standby"
)

// readAgain is the wait between two reads of the Secrets with tokens of standbys.
const readAgain = time.Hour

// StandbyToken is the token of the API server at a further address of the hub.
type StandbyToken struct {
	// Secret and Key name the Secret in the namespace of the hub, and the key in it. Without a Secret
	// the address has no token.
	Secret, Key string
	// Expires is the end of the token; zero if it is unknown.
	Expires time.Time
	// Problem is about a token without use, or near its end; "" if there is no problem.
	Problem string
	token   string
}

// Token returns the token; "" if there is none that can be used.
func (t StandbyToken) Token() string { return t.token }

// String keeps the token out of every message.
func (t StandbyToken) String() string { return "token of Secret " + t.Secret }

// GoString keeps the token out of every message.
func (t StandbyToken) GoString() string { return t.String() }

// readTokens reads the tokens of the further addresses. A missing token costs its address only.
func (c *Controller) readTokens(ctx context.Context, into *Config, now time.Time) error {
	failing := 0
	for i := range into.Fallbacks.Tokens {
		t := &into.Fallbacks.Tokens[i]
		if t.Secret == "" {
			continue
		}
		secret, key := &corev1.Secret{}, types.NamespacedName{Namespace: c.namespace, Name: t.Secret}
		err := c.live.Get(ctx, key, secret)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading Secret %s, the token of a standby: %w", key, err)
		}
		if t.read(secret, apierrors.IsNotFound(err), now); t.Problem != "" {
			failing++
		}
	}
	standbyMetric.Set(float64(failing))
	return nil
}

// read takes the token out of its Secret.
func (t *StandbyToken) read(secret *corev1.Secret, missing bool, now time.Time) {
	token := strings.TrimSpace(string(secret.Data[t.Key]))
	claims, err := credential.ReadClaims(token)
	switch {
	case missing:
		t.Problem = fmt.Sprintf("the hub has no Secret %s with the token of the standby: create it with muster hub standby-token", t.Secret)
	case token == "" || err != nil:
		t.Problem = fmt.Sprintf("the Secret %s has no token of a ServiceAccount in its key %s: create it with muster hub standby-token",
			t.Secret, t.Key)
	default:
		t.Expires = claims.Expires
		if t.Problem = standby.Problem(claims.Expires, now); claims.Expires.IsZero() || now.Before(claims.Expires) {
			t.token = token
		}
	}
}

// nextRead returns the wait for the next read of the tokens; 0 if there are none. A token can end,
// or get near its end, before.
func (c Config) nextRead(now time.Time) time.Duration {
	wait := time.Duration(0)
	for _, t := range c.Fallbacks.Tokens {
		if t.Secret == "" {
			continue
		}
		if wait == 0 {
			wait = readAgain
		}
		for _, at := range []time.Time{t.Expires, t.Expires.Add(-standby.WarnBefore)} {
			if left := at.Sub(now); left > 0 && left < wait {
				wait = left
			}
		}
	}
	return wait
}
