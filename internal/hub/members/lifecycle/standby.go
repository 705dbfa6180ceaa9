package lifecycle

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/naming"
)

// Address returns the agent's current address of the hub and the desired one.
func (o Observed) Address() Address {
	return Address{Desired: o.Hub, Report: o.Report, Standby: o.Standby}
}

// AddTokens adds the tokens of the further addresses to the desired address, sealed to the pinned
// key of the agent. It seals a token once: each sealing has another text, and would be a change.
func (c *Controller) AddTokens(ctx context.Context, o *Observed, pinned string) {
	tokens := c.Config.Current().Fallbacks.Tokens
	if o.Hub == nil || len(tokens) == 0 || len(o.Hub.Fallbacks) != len(tokens) {
		return // there are none, or the settings are unknown, or have changed meanwhile
	}
	var key []byte
	if o.Report != nil && pinned != "" && credential.Fingerprint(o.Report.Status.AgentKey) == pinned {
		key = o.Report.Status.AgentKey
	}
	o.Hub = o.Hub.DeepCopy() // the settings belong to all members
	for i := range tokens {
		fallback := &o.Hub.Fallbacks[i]
		var err error
		if fallback.StandbyToken, err = sealed(tokens[i], key, fallback.APIServerURL, o.Report); err != nil {
			ctrl.LoggerFrom(ctx).Info("Failed to seal the token of a standby", "reason", err.Error())
		}
		o.Standby += standbyProblem(tokens[i], key, fallback)
	}
}

// sealed returns a token for an address, sealed to a key; nil without one of these. It returns the
// text in the report if this is the same token.
func sealed(token settings.StandbyToken, key []byte, server string,
	report *clusterv1beta1.InternalMemberCluster) (*clusterv1beta1.StandbyToken, error) {
	if token.Token() == "" || len(key) == 0 {
		return nil, nil //nolint:nilnil // there is none
	}
	id := naming.DigestOfParts(token.Token(), string(key), server)
	if report.Spec.Hub != nil {
		for _, known := range report.Spec.Hub.Fallbacks {
			if known.APIServerURL == server && known.StandbyToken != nil && known.StandbyToken.ID == id {
				return known.StandbyToken, nil
			}
		}
	}
	text, err := credential.SealStandby(key, server, token.Token())
	if err != nil {
		return nil, fmt.Errorf("sealing the token for %s: %w", server, err)
	}
	return &clusterv1beta1.StandbyToken{ID: id, Sealed: text}, nil
}

// standbyProblem returns a part of a message about a token; "" if there is nothing to say.
func standbyProblem(token settings.StandbyToken, key []byte, fallback *clusterv1beta1.HubFallback) string {
	switch {
	case token.Problem != "":
		return "; for " + fallback.APIServerURL + ", " + token.Problem
	case token.Secret != "" && len(key) == 0:
		return "; the agent gets no token for " + fallback.APIServerURL + ", because its key is not known"
	}
	return ""
}
