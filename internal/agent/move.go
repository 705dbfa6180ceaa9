package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/wait"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/retry"
)

// movedSettings names the settings behind an address from the hub, for messages.
var movedSettings = hubclient.Settings{
	URL: "apiServerURL of the hub's chart", SetCA: "set apiServerCA of the hub's chart to the CA of the hub",
}

// maxFailure is the maximum length of a reported reason.
const maxFailure = 2048

// address is the address of the hub, and the trust in it.
type address struct {
	server string
	ca     []byte
	mode   hubclient.TLSMode
}

// decideMove returns the address of the hub: the current one unless the hub requests another. Empty
// fields in the request stay. The registration mode decides the TLS mode.
func decideMove(used address, requested *clusterv1beta1.HubAddress,
	tlsMode func(asked hubclient.TLSMode, ca []byte) hubclient.TLSMode) (address, error) {
	to := used
	if requested == nil {
		return to, nil
	}
	if requested.APIServerURL != "" {
		server, err := credential.ParseServer(requested.APIServerURL)
		if err != nil {
			return used, fmt.Errorf("the hub sets apiServerURL %q: %w", requested.APIServerURL, err)
		}
		to.server = server
	}
	ca, err := credential.ParseCA(requested.APIServerCA)
	if err != nil {
		return used, fmt.Errorf("the hub sets an unusable apiServerCA: %w", err)
	}
	if len(ca) > 0 {
		to.ca = ca
	}
	wanted := used.mode
	if requested.AgentTLSMode != "" {
		if wanted, err = hubclient.ParseTLSMode(requested.AgentTLSMode); err != nil {
			return used, fmt.Errorf("the hub sets another mode: %w", err)
		}
	}
	to.mode = tlsMode(wanted, to.ca)
	return to, nil
}

// mover moves a session to another address of the hub, while heartbeats, watches and the deployer
// continue. It verifies the new address before it drops anything. The CA must verify the
// connection, and the agent's own credential must read the agent's own report.
type mover struct {
	*session
	// desired is the newest report, with the requested address of the hub.
	desired *clusterv1beta1.InternalMemberCluster
	// failure is the reason why the agent has not moved; retryAt is the time of the next attempt, or
	// zero for none.
	failure string
	retryAt time.Time
	backoff wait.Backoff
	// refused is set if the member refuses the orders of the report.
	refused bool
	loss    loss
}

func (m *mover) run(ctx context.Context) {
	for {
		if m.readDesired() {
			m.failure, m.backoff = "", retry.Moving()
			m.attempt(ctx)
		}
		m.reportAddress()
		if !m.wait(ctx) {
			return
		}
	}
}

// wait returns true after a possible request for another address, or when an attempt is due. It
// returns false once ctx ends.
func (m *mover) wait(ctx context.Context) bool {
	again, stop := retry.Timer(m.clock, kube.Earlier(m.retryAt, m.loss.next))
	defer stop()
	select {
	case <-ctx.Done():
		return false
	case <-m.addressAsked:
	case <-m.unanswered:
		if m.loss.since.IsZero() {
			m.check(ctx)
		}
	case <-again:
		if isDue(m.loss.next, m.clock.Now()) {
			m.check(ctx)
		}
		if isDue(m.retryAt, m.clock.Now()) {
			m.attempt(ctx)
		}
	}
	return true
}

func isDue(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// readDesired takes the newest report, and reports whether the requested address or the object has
// changed.
func (m *mover) readDesired() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.desired
	m.desired, m.refused = m.report, m.fenced != ""
	return before == nil || before.UID != m.desired.UID || !equality.Semantic.DeepEqual(before.Spec.Hub, m.desired.Spec.Hub)
}

// reportAddress reports the address in use.
func (m *mover) reportAddress() {
	used := inUse(m.hub.Target())
	fallbackGauge.Set(float64(m.credential.Load().Addresses.Fallback(used.APIServerURL)))
	if m.failure != "" {
		used.Failure, used.ObservedGeneration = m.failure, m.desired.Generation
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.address != used {
		m.address = used
		kubeclient.Notify(m.reportChanged)
	}
}

func inUse(target hubclient.Target) clusterv1beta1.HubInUse {
	return clusterv1beta1.HubInUse{
		APIServerURL: target.Server, APIServerCAHash: credential.CAHash(target.CA), AgentTLSMode: string(target.Trust.Mode),
	}
}

// attempt moves if requested, and sets the time of the next attempt after a failure.
func (m *mover) attempt(ctx context.Context) {
	target := m.hub.Target()
	used := address{server: target.Server, ca: target.CA, mode: target.Trust.Mode}
	m.retryAt = time.Time{}
	if m.refused {
		return // such a report has no request
	}
	refusal, fallback := m.terms.refusal, m.credential.Load().Addresses.Fallback(used.server) > 0
	if fallback {
		refusal = m.terms.fallbackRefusal
	}
	to, err := decideMove(m.base(used), m.desired.Spec.Hub, m.mode.tlsMode)
	before := m.failure
	if err == nil {
		if problem := m.keepAddresses(ctx, to); problem != nil && ctx.Err() == nil {
			m.log.Info("Failed to store the addresses of the hub", "reason", problem.Error())
			m.retryAt = m.clock.Now().Add(m.backoff.Step())
		}
	}
	switch {
	case err != nil:
		m.failure = "cannot move: " + err.Error() + "; the agent stays with " + used.server
	case to.server == used.server && bytes.Equal(to.ca, used.ca) && to.mode == used.mode:
		m.failure = ""
	default:
		err := m.move(ctx, to, refusal)
		if ctx.Err() != nil {
			return
		}
		m.failure = ""
		if err != nil {
			m.failure = fmt.Sprintf("cannot move from %s to %s: %v; the agent stays with %s", used.server, to.server, err, used.server)
			m.retryAt = m.clock.Now().Add(m.retryIn())
		} else if fallback {
			kubeclient.Notify(m.relist)
		}
	}
	// The hub limits the length, and a server may show any certificate.
	m.failure = clipFailure(m.failure)
	if m.failure != "" && m.failure != before {
		m.log.Info("Failed to move to another address of the hub", "reason", m.failure)
	}
}

func errAnotherHub(session *hubclient.Session) error {
	return fmt.Errorf("another hub answers at %s: its report of %s is not the one that the agent has", session.Server(),
		session.Credential.Record())
}

func clipFailure(message string) string {
	return strings.ToValidUTF8(message[:min(len(message), maxFailure)], "")
}

// move verifies the address, stores it, and then uses it without interrupting other tasks. refused
// returns the reason to refuse the hub there.
func (m *mover) move(ctx context.Context, to address, refused func(*clusterv1beta1.InternalMemberCluster) string) error {
	candidate := *m.credential.Load()
	candidate.Server, candidate.CA = to.server, to.ca
	session, err := hubclient.NewSession(candidate, hubclient.Trust{Mode: to.mode, Settings: movedSettings}, m.clock)
	if err != nil {
		return err
	}
	if err = session.Ask(ctx); err != nil {
		err = explained(session, err)
	} else if session.Report.UID != m.desired.UID {
		err = errAnotherHub(session)
	} else if refusal := refused(session.Report); refusal != "" {
		m.showTerm(ctx, session)
		err = errors.New(refusal)
	} else {
		err = m.changeCredential(ctx, func(c *hubclient.Credential) { m.mode.adoptAddress(c, to) })
	}
	if err != nil {
		session.Close()
		return err
	}
	from := m.hub.Server()
	m.hub.Move(session.Hub)
	kubeclient.Notify(m.moved)
	kubeclient.Notify(m.deliveryDue)
	m.log.Info("Moved to another address of the hub", "from", from, "to", to.server, "agentTLSMode", to.mode)
	m.status.setReason(m.joinedMessage())
	return nil
}
