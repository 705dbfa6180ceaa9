package agent

import (
	"context"
	"time"

	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/hubclient"
)

// mode is a registration mode: how an agent comes by its credential, and what agents of this mode do beside beating and reporting. There are
// two, registration for a Cluster and membership for a MemberCluster; what a joined agent does is the same in both.
type mode struct {
	credentialSource
	credentialStore
	hubPolicy

	// kinds are what the hub places on such a member, features what the hub may ask of its agent beyond that.
	kinds    []protocol.Kind
	features []string
	// always are features that the agent reports also when it does not deliver.
	always []string
	// exchanges: the agent begins with a token of the user's, and takes credentials of another account from the hub in exchange.
	exchanges bool
	// deliverySetting is the setting of the chart that switches delivery off.
	deliverySetting string
	// runnables run as long as the agent has joined; nil if there are none. credentialChanged wakes them.
	runnables         func(*session) []func(context.Context)
	credentialChanged chan struct{}
}

// credentialSource finds a credential in the objects on the member.
type credentialSource interface {
	// follow watches the objects until ctx ends.
	follow(ctx context.Context)
	// observe adds what the objects say.
	observe(o *observation)
	// decide is pure, and has an answer for everything that may be observed.
	decide(o observed, now time.Time) decision
}

// credentialStore is where the member keeps the credential.
type credentialStore interface {
	// credentialRef names the object that holds the credential.
	credentialRef() string
	// credentialVersion is the version of the stored credential of a session that began with the version given.
	credentialVersion(begun string) string
	// adoptAddress makes the credential one for the address that the hub asked for.
	adoptAddress(c *hubclient.Credential, to address)
	// storeCredential stores what of a credential is the agent's to store.
	storeCredential(ctx context.Context, c hubclient.Credential) error
}

// hubPolicy is whom the agent believes to be its hub, and what a refusal of that hub means.
type hubPolicy interface {
	// trust is for the hub of the credential.
	trust(o observation, c hubclient.Credential) hubclient.Trust
	// tlsMode is the mode for a CA at an address for which the hub asks for a mode.
	tlsMode(asked hubclient.TLSMode, ca []byte) hubclient.TLSMode
	// explainRefusal says what it means for the agent that the hub refuses the session, and why in a sentence.
	explainRefusal(session *hubclient.Session, r hubclient.Result, err error) (result, string)
}
