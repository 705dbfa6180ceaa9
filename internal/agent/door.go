package agent

import (
	"context"
	"time"

	"github.com/muster-fleet/muster/internal/agent/identity"
	"github.com/muster-fleet/muster/internal/agent/remote"
	"github.com/muster-fleet/muster/internal/agent/trust"
)

// door is a way into the fleet. A door finds a credential; what an agent does with it is the same behind every door.
type door interface {
	// follow keeps what decides equal to the objects on the member until ctx ends.
	follow(ctx context.Context)
	// observe adds what decides.
	observe(s *seen)
	// decide is pure, and has an answer for everything that may be observed.
	decide(o observed, now time.Time) decision
	// trust is whom the agent believes to be the hub that the credential is for.
	trust(s seen, c identity.Credential) trust.Policy
	// mode is the one to use with a CA at an address for which the hub asks for a mode; used is the one in use.
	mode(used, asked trust.Mode, ca []byte) trust.Mode
	// learn makes the credential one for the address that the hub told.
	learn(c *identity.Credential, to address)
	// keep stores what of a credential is the agent's to store.
	keep(ctx context.Context, c identity.Credential) error
	// refused says what it means for the agent that the hub refuses the session, and why in a sentence.
	refused(session *remote.Session, v remote.Verdict, err error) (verdict, string)
	// spent is the version of the credential that a running session had, begun with the version given, when the hub refuses it.
	spent(begun string) string
	// parts is what an agent at work does besides beating and reporting.
	parts(r *runner) []func(context.Context)
	// deliver deploys what the hub placed on the cluster, until ctx ends.
	deliver(ctx context.Context, r *runner)
	// deliveryOff is the setting of the chart that switches that off.
	deliveryOff() string
	// features are what of that only agents of this kind can do.
	features() []string
	// tidy tells that what follow follows may have changed.
	tidy()
	// source names the object that holds the credential.
	source() string
}

var (
	_ door = (*registration)(nil)
	_ door = (*membership)(nil)
)
