package bundle

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/bundles/policy"
	"github.com/muster-fleet/muster/internal/kube"
)

// ofPolicy returns requests for the Bundles under a Policy.
func (c *Controller) ofPolicy(ctx context.Context, o client.Object) []reconcile.Request {
	c.restricted.Set(o.GetNamespace(), true)
	var list fleet.BundleList
	c.list(ctx, &list, client.InNamespace(o.GetNamespace()), client.MatchingFields{indexCluster: anyCluster})
	return requestsFor(list.Items)
}

// checkPolicies returns the violated rule of the Policies of a Bundle; nil if it violates none. It
// notes the options added by the Policies. The Bundle of an agent is the hub's own.
func (c *Controller) checkPolicies(ctx context.Context, bundle *fleet.Bundle, state *computed) (problem, err error) {
	if bundle.Labels[fleet.LabelAgent] != "" {
		return nil, nil
	}
	var list fleet.PolicyList
	if err := c.Client.List(ctx, &list, client.InNamespace(bundle.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the Policies of %s: %w", bundle.Namespace, err)
	}
	if len(list.Items) > 0 {
		c.restricted.Set(bundle.Namespace, true)
	} else if problem, err := c.policiesGone(ctx, bundle); problem != nil || err != nil {
		return problem, err
	}
	rules := policy.Unite(list.Items)
	state.restrict(rules.Completion())
	return rules.CheckBundle(&bundle.Spec), nil
}

// policiesGone returns a problem if the Policies of a Bundle may have been deleted with the
// definition of their kind. This may have happened before the start of the hub. Such Policies are
// unknown, and the Bundle stays as it is.
func (c *Controller) policiesGone(ctx context.Context, bundle *fleet.Bundle) (problem, err error) {
	had, _ := c.restricted.Get(bundle.Namespace)
	had = had || kube.ReasonOf(bundle.Status.Conditions, fleet.ConditionProcessed) == reasons.PolicyViolation
	if !had && c.policiesServed.Load() {
		return nil, nil
	}
	definition, err := c.Kinds.Deleted(ctx, &fleet.Policy{})
	if err != nil {
		return nil, err
	}
	if definition == "" {
		if had {
			return nil, c.confirmNoPolicies(ctx, bundle.Namespace)
		}
		c.policiesServed.Store(true)
		return nil, nil
	}
	return &policy.Violation{
		Field: "the CustomResourceDefinition " + definition, Rule: "is gone or being deleted, so the Policies of the namespace are unknown",
		Remedy: "install the fleet-crd chart",
	}, nil
}

// confirmNoPolicies queries the API server whether a namespace has no Policies any more. The cache
// may lag behind a newly served kind.
func (c *Controller) confirmNoPolicies(ctx context.Context, namespace string) error {
	var live fleet.PolicyList
	if err := c.Live.List(ctx, &live, client.InNamespace(namespace), client.Limit(1)); err != nil {
		return fmt.Errorf("listing the Policies of %s: %w", namespace, err)
	}
	if len(live.Items) > 0 {
		return errStale
	}
	c.restricted.Forget(namespace)
	return nil
}

// restrict notes the options added by the Policies. A change makes the outcomes outdated.
func (m *computed) restrict(completion policy.Completion) {
	if !m.completion.Equal(completion) {
		m.completion = completion
		clear(m.outcomes)
	}
}

// problemReason returns the reason of a condition for an invalid Bundle.
func (o observed) problemReason(otherwise string) string {
	var violation *policy.Violation
	if errors.As(o.problem, &violation) {
		return reasons.PolicyViolation
	}
	return otherwise
}
