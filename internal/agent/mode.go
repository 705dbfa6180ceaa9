package agent

import (
	"context"
	"time"

	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/hubclient"
)

// mode is a registration mode: how an agent gets its credential, and its other tasks besides
// heartbeats and reports. There are two modes: registration for a Cluster and membership for a
// MemberCluster. A joined agent works the same in both.
type mode struct {
	credentialSource
	credentialStore
	hubPolicy

	// kinds are the kinds delivered by the hub to such a member; features are the further features of
	// its agent.
	kinds    []protocol.Kind
	features []string
	// always are the features of an agent without delivery too.
	always []string
	// upgradable reports whether the hub can upgrade the agent by a BundleDeployment of its own; nil
	// if the features include this ability.
	upgradable func(context.Context) (bool, error)
	// exchanges is set if the agent starts with a user's token and the hub exchanges it for a
	// credential of another account.
	exchanges bool
	// deliverySetting is the setting of the chart to disable delivery.
	deliverySetting string
	// runnables returns the further tasks of a joined agent; may be nil. credentialChanged wakes them.
	runnables         func(*session) []func(context.Context)
	credentialChanged chan struct{}
}

// credentialSource finds a credential in the objects on the member.
type credentialSource interface {
	// follow watches the objects until ctx ends.
	follow(ctx context.Context)
	// observe adds the state of the objects to the observation.
	observe(o *observation)
	// decide is pure, and has an answer for every observation.
	decide(o observed, now time.Time) decision
}

// credentialStore stores the credential on the member.
type credentialStore interface {
	// credentialRef names the object with the credential.
	credentialRef() string
	// credentialVersion returns the version of the stored credential, for a session begun with the
	// given version.
	credentialVersion(begun string) string
	// adoptAddress changes a credential to the requested address of the hub.
	adoptAddress(c *hubclient.Credential, to address)
	// storeCredential stores the agent's own part of a credential.
	storeCredential(ctx context.Context, c hubclient.Credential) error
}

// hubPolicy decides the trust in a hub, and the meaning of its refusal.
type hubPolicy interface {
	// trust returns the trust settings for the hub of the credential.
	trust(o observation, c hubclient.Credential) hubclient.Trust
	// tlsMode returns the mode for a CA at an address, given the mode from the hub.
	tlsMode(asked hubclient.TLSMode, ca []byte) hubclient.TLSMode
	// explainRefusal returns the result of a refused session, and its reason in a sentence.
	explainRefusal(session *hubclient.Session, r hubclient.Result, err error) (result, string)
}
