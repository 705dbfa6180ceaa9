package registration

import (
	"context"
	"fmt"
	"time"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/joining/admission"
	"github.com/muster-fleet/muster/internal/kube"
)

// attribution reports whether the hub knows the requester of a request.
type attribution struct {
	// reason and problem give the cause if it does not; else empty.
	reason, problem string
	// recheck is the time of the next check of the admission policy's effect; zero if a check would
	// change nothing.
	recheck time.Time
}

// observeAttribution checks whether the token and the user named in a request are its real ones.
// The names alone prove nothing: without an effective admission policy the agent may write any
// name.
func (c *Controller) observeAttribution(ctx context.Context, r *fleet.ClusterRegistration, o *observation) (err error) {
	policy := c.Policies.Requests(ctx)
	switch {
	case policy.Problem != "":
		o.attribution = attribution{policy.Reason, policy.Problem, policy.Until}
	case r.CreationTimestamp.Time.Before(policy.Since):
		o.attribution = attribution{reason: reasons.OlderThanPolicy, problem: fmt.Sprintf(
			"the request is older than the admission policy %s, and its creator is unknown: delete it, and its agent sends another",
			admission.RegistrationToken)}
	case r.Annotations[fleet.AnnotationRequester] != "":
		o.requester = r.Annotations[fleet.AnnotationRequester]
	case o.tokenName == "":
		o.attribution = attribution{reason: reasons.RequesterUnknown,
			problem: "the creator of the request is unknown, because the hub cluster serves no MutatingAdmissionPolicies: set tokenName in " +
				"the values of the agent's chart, if the agent is Muster's"}
	}
	if o.attribution.problem != "" && !o.limitedTokens {
		o.limitedTokens, err = c.limitedTokens(ctx, r.Namespace)
	}
	return err
}

// condition returns the condition of a request with an unknown requester; else nil.
func (a attribution) condition() *fleet.Condition {
	if a.problem == "" {
		return nil
	}
	return new(kube.Condition(fleet.ConditionAttributed, false, a.reason, a.problem))
}
