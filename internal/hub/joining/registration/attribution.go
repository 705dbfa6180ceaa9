package registration

import (
	"context"
	"fmt"
	"time"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/joining/admission"
	"github.com/muster-fleet/muster/internal/kube"
)

// reasonNotAttributed: somebody has to approve the request, because nobody knows with which token it was made.
const reasonNotAttributed = "NotAttributed"

// attribution is whether the hub knows who made a request.
type attribution struct {
	// reason and problem say why not; empty if it does.
	reason, problem string
	// recheck is when the hub looks again whether the admission policy has an effect; zero if that would change nothing.
	recheck time.Time
}

// observeAttribution finds out whether the token and the user that a request names are those that made it. That both are named proves nothing: where the
// admission policy has no effect, the agent may name any.
func (c *Controller) observeAttribution(ctx context.Context, r *fleet.ClusterRegistration, o *observation) (err error) {
	policy := c.Policies.Requests(ctx)
	switch {
	case policy.Problem != "":
		o.attribution = attribution{policy.Reason, policy.Problem, policy.Until}
	case r.CreationTimestamp.Time.Before(policy.Since):
		o.attribution = attribution{reason: "OlderThanPolicy", problem: fmt.Sprintf(
			"the request is older than the admission policy %s, so that nobody knows who made it: delete it, and its agent asks again", admission.RegistrationToken)}
	case r.Annotations[fleet.AnnotationRequester] != "":
		o.requester = r.Annotations[fleet.AnnotationRequester]
	case o.tokenName == "":
		o.attribution = attribution{reason: "RequesterUnknown", problem: "the request does not say who made it, and the hub cluster serves no MutatingAdmissionPolicies, " +
			"which would: set tokenName in the values of the agent's chart, if the agent is Muster's"}
	}
	if o.attribution.problem != "" && !o.limitedTokens {
		o.limitedTokens, err = c.limitedTokens(ctx, r.Namespace)
	}
	return err
}

// condition is the one that a request has only if nobody knows who made it; else nil.
func (a attribution) condition() *fleet.Condition {
	if a.problem == "" {
		return nil
	}
	return new(kube.Condition(fleet.ConditionAttributed, false, a.reason, a.problem))
}
