package hubclient

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/retry"
)

// Result is the outcome of an attempt to use the hub, about the hub and the credential.
type Result string

// The results.
const (
	// Accepted: it worked.
	Accepted Result = "Accepted"
	// Unreachable: there was no trustworthy answer, or the hub is busy. The state of the credential is
	// unknown.
	Unreachable Result = "Unreachable"
	// Unauthorized: the hub does not know the token, or no longer.
	Unauthorized Result = "Unauthorized"
	// Forbidden: the hub knows the token, but grants it no such right.
	Forbidden Result = "Forbidden"
	// NotFound: the object does not exist.
	NotFound Result = "NotFound"
	// Invalid: the hub refuses the content of the request.
	Invalid Result = "Invalid"
)

// Refuses reports whether the hub itself refused.
func (r Result) Refuses() bool { return r == Unauthorized || r == Forbidden || r == NotFound }

// Classify returns the result of an error. Any answer that may come from a proxy or another web
// server is Unreachable.
func Classify(err error) Result {
	if err == nil {
		return Accepted
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || foreign(status.Status()) {
		return Unreachable
	}
	switch code := status.Status().Code; {
	case code == http.StatusUnauthorized:
		return Unauthorized
	case code == http.StatusForbidden:
		return Forbidden
	case code == http.StatusNotFound:
		return NotFound
	case code >= 400 && code < 500 && code != http.StatusTooManyRequests && code != http.StatusRequestTimeout:
		return Invalid
	default:
		return Unreachable
	}
}

// foreign reports whether client-go made up the status. It does so if the answer does not come from
// a Kubernetes API server, or if the server does not know the resource.
func foreign(status metav1.Status) bool {
	if status.Details == nil {
		return false
	}
	for _, cause := range status.Details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			return true
		}
	}
	return false
}

// refusedAfter returns the time until a lasting result counts. The hub's API server takes a moment
// to see a new account or right. A running hub also restores a lost RoleBinding or report.
func refusedAfter(result Result) time.Duration {
	switch result {
	case Unauthorized:
		return 2 * time.Second
	case Forbidden, NotFound:
		return 15 * time.Second
	default:
		return 0
	}
}

// Persist calls the hub, repeatedly while the reason of a refusal may be an unfinished hub, and
// passes each error to doubt. It returns the last error, nil if and only if the result is Accepted.
func Persist(ctx context.Context, clk clock.Clock, call func(context.Context) error, doubt func(error)) (Result, error) {
	start, backoff := clk.Now(), retry.Soon()
	for {
		err := call(ctx)
		if err != nil && ctx.Err() != nil {
			return Unreachable, ctx.Err()
		}
		result := Classify(err)
		if clk.Since(start) >= refusedAfter(result) {
			return result, err
		}
		doubt(err)
		if err := retry.Wait(ctx, clk, backoff.Step()); err != nil {
			return Unreachable, err
		}
	}
}

// Explain returns the message for an error between the agent and its hub.
func (h *Hub) Explain(err error) string {
	target, roots := h.Target(), h.route.Load().roots
	if sentence, ok := roots.Explain(err); ok {
		return fmt.Sprintf("the hub at %s cannot be trusted: %s", target.Server, sentence)
	}
	var authority x509.UnknownAuthorityError
	if errors.As(err, &authority) {
		return fmt.Sprintf("the hub at %s cannot be trusted: %v; %s", target.Server, authority, target.Trust.Settings.SetCA)
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return fmt.Sprintf("%s does not speak TLS: check %s", target.Server, target.Trust.Settings.URL)
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		if foreign(status.Status()) {
			return fmt.Sprintf("%s does not serve Muster's API (status %d): check %s and that the hub's chart fleet-crd is installed",
				target.Server, status.Status().Code, target.Trust.Settings.URL)
		}
		return fmt.Sprintf("the hub at %s answers: %s", target.Server, status.Status().Message)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("the hub at %s does not answer within %s", target.Server, timeout)
	}
	var where *url.Error
	if errors.As(err, &where) {
		return fmt.Sprintf("the hub at %s cannot be reached: %v", target.Server, where.Err)
	}
	return fmt.Sprintf("%s does not answer as a Kubernetes API server does (%v): check %s", target.Server, err, target.Trust.Settings.URL)
}
