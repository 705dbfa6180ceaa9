package registration

import (
	"bytes"
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// The verification of a signature costs a hundred times a comparison of keys. A holder of a token
// may send any number of signed requests. Therefore the hub counts and compares first, and verifies
// each request once.

// verification is the result of verifying the signature of one generation of a request.
type verification struct {
	generation int64
	err        error
}

// claimedKey returns the fingerprint of the key in a request, before any verification; "" without
// one.
func claimedKey(r *fleet.ClusterRegistration) string {
	if len(r.Spec.AgentKey) == 0 {
		return ""
	}
	return credential.Fingerprint(r.Spec.AgentKey)
}

// agentOf names the agent in a request, before any verification: by its key and client ID.
func agentOf(r *fleet.ClusterRegistration) string { return claimedKey(r) + "/" + r.Spec.ClientID }

// verifyClaim verifies the signature of a request; nil without a key.
func verifyClaim(r *fleet.ClusterRegistration) error {
	if len(r.Spec.AgentKey) == 0 {
		return nil
	}
	return credential.VerifyClaim(r.Spec.AgentKey, r.Spec.Signature, credential.Claim{
		Workspace: r.Namespace, ClientID: r.Spec.ClientID, Nonce: r.Spec.ClientRandom, Token: r.Labels[fleet.LabelRegistrationToken],
		AnswerKey: r.Spec.AnswerKey,
		HubCAs:    r.Spec.HubCAs,
	})
}

// verified verifies the signature of a request unless an earlier call has done so.
func (t *tracker) verified(r *fleet.ClusterRegistration) error {
	if known, found := t.signatures.Get(r.UID); found && known.generation == r.Generation {
		return known.err
	}
	err := verifyClaim(r)
	t.signatures.Set(r.UID, verification{r.Generation, err})
	return err
}

// ended reports whether the hub has denied a request, or deletes it soon because there are too
// many.
func ended(r *fleet.ClusterRegistration) bool {
	return r.Status.State == fleet.RegistrationDenied || r.Status.Reason == reasons.TooManyRequests
}

// superseding returns the name of a newer request of the same agent; "" if there is none. A request
// of another agent does not end this one: an administrator may approve either.
func superseding(
	r *fleet.ClusterRegistration, others []fleet.ClusterRegistration, newer func(a, b *fleet.ClusterRegistration) bool,
	verified func(*fleet.ClusterRegistration) error,
) string {
	for i := range others {
		other := &others[i]
		if other.UID == r.UID || other.DeletionTimestamp != nil || !bytes.Equal(other.Spec.AgentKey, r.Spec.AgentKey) {
			continue
		}
		// Without a key only the tokens distinguish agents: a holder of another token ends no waiting
		// request.
		if len(r.Spec.AgentKey) == 0 && tokenOf(other) != tokenOf(r) {
			continue
		}
		// A refused or excess request does not count: otherwise a token without permission for the client
		// ID could end requests with it.
		if len(r.Spec.AgentKey) == 0 && ended(other) {
			continue
		}
		if newer(other, r) && verified(other) == nil {
			return other.Name
		}
	}
	return ""
}

// observeNewer finds a newer request of the same agent.
func (c *Controller) observeNewer(ctx context.Context, r *fleet.ClusterRegistration, o *observation) error {
	if o.clientID == "" {
		return nil
	}
	var list fleet.ClusterRegistrationList
	err := c.Client.List(ctx, &list, client.InNamespace(r.Namespace), client.MatchingFields{indexAgent: agentOf(r)},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	o.newer = superseding(r, list.Items, c.newer, c.tracker.verified)
	return nil
}
