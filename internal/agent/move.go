package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/identity"
	"github.com/muster-fleet/muster/internal/agent/remote"
	"github.com/muster-fleet/muster/internal/agent/retry"
	"github.com/muster-fleet/muster/internal/agent/trust"
	"github.com/muster-fleet/muster/internal/credential"
)

// movedSettings names, for messages, the settings that an address from the hub came from.
var movedSettings = trust.Settings{URL: "apiServerURL of the hub's chart", SetCA: "set apiServerCA of the hub's chart to the CA of the hub"}

// maxFailure is the longest reason that is reported.
const maxFailure = 2048

// address is where the hub is, and whom to trust there.
type address struct {
	server string
	ca     []byte
	mode   trust.Mode
}

func addressOf(target remote.Target) address {
	return address{server: target.Server, ca: target.CA, mode: target.Trust.Mode}
}

func (a address) equal(b address) bool {
	return a.server == b.server && string(a.ca) == string(b.ca) && a.mode == b.mode
}

// decideMove says where to reach the hub, which is where it is reached now unless the hub asks for something else. Fields that the hub
// leaves empty stay. The door has the last word on the mode.
func decideMove(used address, asked *clusterv1beta1.HubAddress, mode func(used, asked trust.Mode, ca []byte) trust.Mode) (address, error) {
	to := used
	if asked == nil {
		return to, nil
	}
	if asked.APIServerURL != "" {
		server, err := credential.ParseServer(asked.APIServerURL)
		if err != nil {
			return used, fmt.Errorf("the hub asks for apiServerURL %q: %w", asked.APIServerURL, err)
		}
		to.server = server
	}
	ca, err := credential.ParseCA(asked.APIServerCA)
	if err != nil {
		return used, fmt.Errorf("the hub asks for an apiServerCA that is unusable: %w", err)
	}
	if len(ca) > 0 {
		to.ca = ca
	}
	wanted := used.mode
	if asked.AgentTLSMode != "" {
		if wanted, err = trust.ParseMode(asked.AgentTLSMode); err != nil {
			return used, fmt.Errorf("the hub asks for another mode: %w", err)
		}
	}
	to.mode = mode(used.mode, wanted, to.ca)
	return to, nil
}

// mover goes where the hub asks the agent to reach it. Nothing is given up before the new address was proved: a connection that its CA
// verifies, behind which the agent's own credential opens the agent's own report.
type mover struct {
	*runner
	// wanted is the report with the newest wish of the hub.
	wanted *clusterv1beta1.InternalMemberCluster
	// failure says why the agent is not where it was asked to be; it is tried again at retryAt, unless that is zero.
	failure string
	retryAt time.Time
	pace    wait.Backoff
}

func (m *mover) run(ctx context.Context) {
	m.heed(m.session.Report)
	m.attempt(ctx)
	for {
		m.show()
		var again <-chan time.Time
		stop := func() bool { return true }
		if !m.retryAt.IsZero() {
			timer := m.clock.NewTimer(m.retryAt.Sub(m.clock.Now()))
			again, stop = timer.C(), timer.Stop
		}
		select {
		case <-ctx.Done():
			stop()
			return
		case asked := <-m.moves:
			if m.heed(asked) {
				m.attempt(ctx)
			}
		case <-again:
			m.attempt(ctx)
		}
		stop()
	}
}

// heed takes over what the hub asks, and says whether that is another address, which is tried at once.
func (m *mover) heed(asked *clusterv1beta1.InternalMemberCluster) bool {
	before := m.wanted
	m.wanted = asked
	if before != nil && sameAddress(before.Spec.Hub, asked.Spec.Hub) {
		return false
	}
	m.failure, m.pace = "", retry.Moving()
	return true
}

func sameAddress(a, b *clusterv1beta1.HubAddress) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// show passes on how the agent reaches the hub.
func (m *mover) show() {
	used := inUse(m.session.Target())
	if m.failure != "" {
		used.Failure, used.ObservedGeneration = m.failure, m.wanted.Generation
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hub != used {
		m.hub = used
		replace(m.hubs, used)
	}
}

func inUse(target remote.Target) clusterv1beta1.HubInUse {
	return clusterv1beta1.HubInUse{
		APIServerURL: target.Server, APIServerCAHash: credential.CAHash(target.CA), AgentTLSMode: string(target.Trust.Mode),
	}
}

// attempt moves if that is asked for, and says when to try again if it fails.
func (m *mover) attempt(ctx context.Context) {
	used := addressOf(m.session.Target())
	m.retryAt = time.Time{}
	to, err := decideMove(used, m.wanted.Spec.Hub, m.door.mode)
	said := m.failure
	switch {
	case err != nil:
		m.failure = "cannot move: " + err.Error() + "; the agent stays with " + used.server
	case to.equal(used):
		m.failure = ""
	default:
		err := m.move(ctx, to)
		if ctx.Err() != nil {
			return
		}
		m.failure = ""
		if err != nil {
			m.failure = fmt.Sprintf("cannot move from %s to %s: %v; the agent stays with %s", used.server, to.server, err, used.server)
			m.retryAt = m.clock.Now().Add(m.pace.Step())
		}
	}
	// The hub limits what it takes, and a server may show any certificate.
	m.failure = strings.ToValidUTF8(m.failure[:min(len(m.failure), maxFailure)], "")
	if m.failure != "" && m.failure != said {
		m.log.Info("moving to another address of the hub failing", "reason", m.failure)
	}
}

// move proves the address, keeps it, and then uses it, without a pause for whatever else the agent does.
func (m *mover) move(ctx context.Context, to address) error {
	candidate := *m.held.Load()
	candidate.Server, candidate.CA = to.server, to.ca
	session, err := remote.NewSession(candidate, trust.Policy{Mode: to.mode, Settings: movedSettings}, m.clock)
	if err != nil {
		return err
	}
	if err := session.Ask(ctx); err != nil {
		session.Close()
		return errors.New(session.Explain(err))
	}
	if session.Report.UID != m.wanted.UID {
		session.Close()
		return fmt.Errorf("another hub answers at %s: its report of %s is not the one that the agent has", to.server, candidate.Record())
	}
	if err := m.change(ctx, func(c *identity.Credential) { m.door.learn(c, to) }); err != nil {
		session.Close()
		return err
	}
	from := m.session.Server()
	m.session.Move(session.Hub)
	poke(m.moved)
	poke(m.renewed)
	m.log.Info("moved to another address of the hub", "from", from, "to", to.server, "agentTLSMode", to.mode)
	m.standing.say(m.joined())
	return nil
}
