package remote

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

	"github.com/muster-fleet/muster/internal/agent/retry"
)

// Verdict is what an attempt to use the hub tells about the hub and the credential.
type Verdict string

// The verdicts.
const (
	// Accepted: it worked.
	Accepted Verdict = "Accepted"
	// Unreachable: nothing that can be trusted was heard, or the hub is busy. It says nothing about the credential.
	Unreachable Verdict = "Unreachable"
	// Unauthorized: the hub does not know the token, or no longer.
	Unauthorized Verdict = "Unauthorized"
	// Forbidden: the hub knows the token and grants it no such right.
	Forbidden Verdict = "Forbidden"
	// NotFound: the object is not there.
	NotFound Verdict = "NotFound"
	// Invalid: the hub does not accept what was sent.
	Invalid Verdict = "Invalid"
)

// Classify draws the verdict from an error. Anything that a proxy or another web server may have said is Unreachable.
func Classify(err error) Verdict {
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

// foreign says whether client-go made up the status because the answer was not one of a Kubernetes API server, or was one
// that does not know the resource.
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

// refusedAfter is how long a verdict has to last before it counts. A fresh account or right takes the hub's API server a
// moment to see, and a lost RoleBinding or report is put back by a hub that runs.
func refusedAfter(verdict Verdict) time.Duration {
	switch verdict {
	case Unauthorized:
		return 2 * time.Second
	case Forbidden, NotFound:
		return 15 * time.Second
	default:
		return 0
	}
}

// Persist calls the hub, again and again while a refusal may be that the hub is not done yet, and tells doubt why. The error
// is the last one, and nil iff the verdict is Accepted.
func Persist(ctx context.Context, clk clock.Clock, call func(context.Context) error, doubt func(error)) (Verdict, error) {
	start, pace := clk.Now(), retry.Soon()
	for {
		err := call(ctx)
		if err != nil && ctx.Err() != nil {
			return Unreachable, ctx.Err()
		}
		verdict := Classify(err)
		if clk.Since(start) >= refusedAfter(verdict) {
			return verdict, err
		}
		doubt(err)
		if err := retry.Wait(ctx, clk, pace.Step()); err != nil {
			return Unreachable, err
		}
	}
}

// Explain says what went wrong between the agent and its hub, for people.
func (h *Hub) Explain(err error) string {
	way := h.route.Load()
	if sentence, ok := way.roots.Explain(err); ok {
		return fmt.Sprintf("the hub at %s cannot be trusted: %s", way.target.Server, sentence)
	}
	var authority x509.UnknownAuthorityError
	if errors.As(err, &authority) {
		return fmt.Sprintf("the hub at %s cannot be trusted: %v; %s", way.target.Server, authority, way.target.Trust.Settings.SetCA)
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return fmt.Sprintf("%s does not speak TLS: check %s", way.target.Server, way.target.Trust.Settings.URL)
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		if foreign(status.Status()) {
			return fmt.Sprintf("%s does not serve Muster's API (status %d): check %s and that the hub's chart fleet-crd is installed",
				way.target.Server, status.Status().Code, way.target.Trust.Settings.URL)
		}
		return fmt.Sprintf("the hub at %s answers: %s", way.target.Server, status.Status().Message)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("the hub at %s does not answer within %s", way.target.Server, timeout)
	}
	var where *url.Error
	if errors.As(err, &where) {
		return fmt.Sprintf("the hub at %s cannot be reached: %v", way.target.Server, where.Err)
	}
	return fmt.Sprintf("%s does not answer as a Kubernetes API server does (%v): check %s", way.target.Server, err, way.target.Trust.Settings.URL)
}
