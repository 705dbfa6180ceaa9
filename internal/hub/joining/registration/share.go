package registration

import (
	"cmp"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hub/credentials/rejoin"
)

// sharePart is which part of the places of a shared account the requests of one cluster may take.
const sharePart = 4

// origin is where a request counts: the token or the ServiceAccount that the request names, which
// the chart's admission policy has checked; or, once its signature has proved that the request is a
// member's, the key of that member.
type origin struct {
	workspace, token string
	// member: the token is the fingerprint of a member's key.
	member bool
}

// shared reports whether many clusters make requests by this origin: the members of a workspace
// whose credentials have run out, or agents of which nobody knows the token.
func (o origin) shared() bool {
	return !o.member && (o.token == "" || rejoin.IsName(o.token))
}

// tokenOf is the token that a request names, or else the ServiceAccount.
func tokenOf(r *fleet.ClusterRegistration) origin {
	return origin{workspace: r.Namespace, token: cmp.Or(r.Labels[fleet.LabelRegistrationToken], accountOf(r))}
}

func originOf(r *fleet.ClusterRegistration) origin {
	o := tokenOf(r)
	if r.Status.ApprovedReason == reasonKeyProved && r.Status.ApprovedGeneration == r.Generation && len(r.Spec.AgentKey) > 0 {
		o.token, o.member = credential.Fingerprint(r.Spec.AgentKey), true
	}
	return o
}

// place is where a request counts, and as what.
type place struct {
	origin
	cost
}

// share is what one cluster uses of an origin that many share.
type share struct {
	origin
	client string
}

// clientOf names the cluster that a request claims to be of: by its key, or else by its client ID.
func clientOf(r *fleet.ClusterRegistration) string {
	if key := claimedKey(r); key != "" {
		return "key " + key
	}
	return "client " + r.Spec.ClientID
}
