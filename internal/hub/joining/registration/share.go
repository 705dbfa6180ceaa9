package registration

import (
	"cmp"
	"strings"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/fleet/standby"
	"github.com/muster-fleet/muster/internal/hub/credentials/rejoin"
)

// sharePart divides the places of a shared account: one cluster may take a quarter.
const sharePart = 4

// origin is the account charged for a request: the token or the ServiceAccount in the request,
// checked by the chart's admission policy. A request signed by a member counts against the key of
// the member.
type origin struct {
	workspace, token string
	// member: the token is the fingerprint of a member's key.
	member bool
}

// shared reports whether many clusters create requests by this origin: members of a workspace with
// expired credentials, or agents of an unknown token.
func (o origin) shared() bool {
	return !o.member && (o.token == "" || rejoin.IsName(o.token) || strings.HasSuffix(o.token, ":"+standby.Account))
}

// tokenOf returns the token in a request, or else the ServiceAccount.
func tokenOf(r *fleet.ClusterRegistration) origin {
	return origin{workspace: r.Namespace, token: cmp.Or(r.Labels[fleet.LabelRegistrationToken], accountOf(r))}
}

func originOf(r *fleet.ClusterRegistration) origin {
	o := tokenOf(r)
	if r.Status.ApprovedReason == reasons.KeyProved && r.Status.ApprovedGeneration == r.Generation && len(r.Spec.AgentKey) > 0 {
		o.token, o.member = credential.Fingerprint(r.Spec.AgentKey), true
	}
	return o
}

// place is the origin of a request and its cost.
type place struct {
	origin
	cost
}

// share is the part of one cluster in a shared origin.
type share struct {
	origin
	client string
}

// clientOf names the cluster in a request, before any verification: by its key, or else by its
// client ID.
func clientOf(r *fleet.ClusterRegistration) string {
	if key := claimedKey(r); key != "" {
		return "key " + key
	}
	return "client " + r.Spec.ClientID
}
