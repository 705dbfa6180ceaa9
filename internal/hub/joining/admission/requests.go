package admission

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// RegistrationToken is the name of a policy and its binding. The policy makes a ClusterRegistration
// name its token and its requester.
const RegistrationToken = "muster-registration-token"

// maxAbsenceLife bounds the validity of a proven absence. The validity begins with absenceLife and
// doubles.
const maxAbsenceLife = 5 * time.Minute

// Attribution reports whether the token and the user named in ClusterRegistrations are reliable.
type Attribution struct {
	// Reason and Problem give the cause if they are not; else empty.
	Reason, Problem string
	// Since is the start of the policy; the requester of an older request is unknown.
	Since time.Time
	// Until is the time of the next check.
	Until time.Time
}

// Requests reports whether the token and the user named in a ClusterRegistration are reliable.
func (c *Checker) Requests(ctx context.Context) Attribution {
	c.mu.Lock()
	now, before := c.Clock.Now(), c.requests
	if now.Before(before.Until) || c.asking && !before.Until.IsZero() {
		c.mu.Unlock()
		return before // the last answer counts during another caller's query
	}
	c.asking = true
	c.mu.Unlock()
	// The Checker holds no lock during the query of the API server and its webhooks.
	limited, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	after := Attribution{Until: now.Add(effectLife)}
	effective, err := c.refusesForgedRequest(limited)
	if err == nil && effective {
		after.Since, err = c.inForceSince(limited, RegistrationToken)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking = false
	if !c.requests.Until.Equal(before.Until) {
		return c.requests // another of the first concurrent callers was faster
	}
	switch {
	case err != nil:
		after.Reason = reasons.PolicyUnchecked
		after.Problem = fmt.Sprintf("the hub cannot find out whether the admission policy %s has an effect, and tries again: %s",
			RegistrationToken, kube.Clip(err.Error(), maxError))
	case !effective:
		after.Reason = reasons.PolicyMissing
		after.Problem = fmt.Sprintf("the admission policy %s has no effect, and the creators of registration requests are unknown: "+
			"restore it with helm upgrade of the chart fleet (Kubernetes 1.30 or newer)", RegistrationToken)
	}
	if after.Problem == "" {
		c.absence = 0
		if before.Problem != "" {
			c.Log.Info("Admission policy has an effect again", "policy", RegistrationToken)
		}
	} else {
		c.absence = min(max(2*c.absence, absenceLife), maxAbsenceLife)
		after.Until = now.Add(c.absence)
		if before.Problem != after.Problem {
			c.warn(after.Problem)
		}
	}
	c.requests = after
	return after
}

// refusesForgedRequest reports whether the policy refuses a request in the name of another user.
func (c *Checker) refusesForgedRequest(ctx context.Context) (bool, error) {
	forgery := &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.Namespace, Name: "muster-admission-check", Annotations: map[string]string{fleet.AnnotationRequester: forged},
	}}
	err := c.Client.Create(ctx, forgery, client.DryRunAll, kube.FieldOwner)
	if err != nil && strings.Contains(err.Error(), fmt.Sprintf("ValidatingAdmissionPolicy '%s'", RegistrationToken)) {
		return true, nil
	}
	return false, err
}

// inForceSince returns the creation time of the newer one of a policy and its binding.
func (c *Checker) inForceSince(ctx context.Context, policy string) (since time.Time, err error) {
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
		object := kube.Metadata(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind})
		if err := c.Live.Get(ctx, client.ObjectKey{Name: policy}, object); err != nil {
			return time.Time{}, fmt.Errorf("reading %s %s: %w", kind, policy, err)
		}
		if made := object.GetCreationTimestamp().Time; made.After(since) {
			since = made
		}
	}
	return since, nil
}
