package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/local"
	"github.com/muster-fleet/muster/internal/agent/report"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/retry"
	"github.com/muster-fleet/muster/internal/version"
)

// session covers the tasks of an agent with an accepted credential: send heartbeats, report,
// deliver, follow the hub to another address, leave.
type session struct {
	environment
	hub *hubclient.Session
	// formerLeft is closed after leaving the previous membership; nil if there was none. The session
	// delivers nothing before.
	formerLeft <-chan struct{}
	// formerEnded is closed once the credential of the previous membership is unneeded; nil if there
	// was none. forgotten is closed once it is no longer stored; nil if it was not.
	formerEnded <-chan struct{}
	forgotten   chan struct{}
	// farewell is the reason of a member for leaving by itself; onLeft is called after the hub has
	// accepted its report. Both may be empty.
	farewell string
	onLeft   func()
	// credential is the credential in use; each renewal and each move changes it, one at a time.
	credential atomic.Pointer[hubclient.Credential]
	changing   sync.Mutex

	// Each channel wakes one reader. doubts: the credential must be verified. healthDue: the reporter
	// reads the member's health. deliveryDue: the supervisor must pass on another credential, address
	// or leave policy. placed: the objects to deliver have changed.
	// termRaised: the hub has a higher term than remembered.
	doubts, healthDue, deliveryDue, placed, termRaised chan struct{}
	// reportChanged, periodChanged, addressAsked, quarantineChanged: a field below has changed. moved:
	// the hub is reached at another address.
	reportChanged, periodChanged, addressAsked, quarantineChanged, moved chan struct{}
	// relist: the hub may be a restored one, so the next session lists everything anew.
	relist chan struct{}
	// standby: the hub is lost, and a further address has a restored hub with other accounts.
	standby chan struct{}
	// unanswered: the hub has not answered, or the member refuses its orders.
	unanswered chan struct{}
	// uninstallDue: a condition for the removal of the agent has changed.
	uninstallDue chan struct{}

	mu sync.Mutex
	// report is the last observed report; left is set once the agent has reported its departure.
	report *clusterv1beta1.InternalMemberCluster
	left   bool
	// fenced is the message about a hub whose orders the member refuses; empty if it obeys.
	fenced string
	// hasApplied is set if the last look-up found objects of Works on the member, or failed.
	hasApplied atomic.Bool
	// removal is the progress of a leaving member. blocked describes the obstacles to removing objects
	// deleted on the hub.
	removal removal
	// uninstall is the progress of the agent's own removal.
	uninstall uninstallProgress
	blocked   protocol.Blocked
	// address is the agent's address of the hub.
	address clusterv1beta1.HubInUse
	// issued adopts the credentials from the hub; nil for an agent without a key.
	issued *issuedCredentials
	// upgradable: the hub can upgrade the agent of this MemberCluster.
	upgradable bool
}

func newSession(agent environment, hub *hubclient.Session, last *clusterv1beta1.InternalMemberCluster) *session {
	s := &session{
		environment: agent, hub: hub, address: inUse(hub.Target()), reportChanged: agent.status.reportChanged,
		doubts: notification(), healthDue: notification(), deliveryDue: notification(), placed: notification(),
		periodChanged: notification(), addressAsked: notification(), quarantineChanged: notification(), moved: notification(),
		uninstallDue: notification(), termRaised: notification(), unanswered: notification(), relist: notification(),
		standby: notification(),
	}
	s.report, s.fenced = s.obey(last)
	s.left = report.HasLeft(s.report)
	s.credential.Store(&hub.Credential)
	return s
}

// run runs until the hub refuses the credential or ctx ends.
func (s *session) run(ctx context.Context, formerLeft, formerEnded <-chan struct{}) outcome {
	s.formerLeft, s.formerEnded = formerLeft, formerEnded
	if s.hub.Credential.Former != nil {
		s.forgotten = make(chan struct{})
	}
	s.use(s.hub.Credential)
	if err := s.identify(ctx); err != nil {
		return outcome{result: unreachable, message: err.Error()}
	}
	key, err := s.readKey(ctx)
	if err != nil {
		return outcome{result: unreachable, message: err.Error()}
	}
	if key == nil && s.hub.Credential.Login != nil {
		return outcome{result: refused, message: errWithoutKey.Error()}
	}
	if key != nil { // else the hub learns the key with the next registration, or after an upgrade of the chart
		s.issued = &issuedCredentials{session: s, key: key, changed: notification()}
		s.issued.observe(s.report)
	}
	s.observeUpgradable(ctx)
	switch {
	case s.fenced != "":
		s.status.set(Fenced, s.fenced)
	case s.left:
		s.status.set(Left, s.leftMessage())
	}
	moves := &mover{session: s}
	runnables := []func(context.Context){s.beat, s.watchReport, moves.run, s.rememberTerm}
	if s.left {
		runnables = append(runnables, s.resumeUninstall)
	}
	if s.issued != nil {
		runnables = append(runnables, s.issued.run)
	}
	if s.mode.runnables != nil {
		runnables = append(runnables, s.mode.runnables(s)...)
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, run := range runnables {
		running.Go(func() { run(ctx) })
	}
	r, message := s.untilRefused(ctx)
	cancel()
	running.Wait()
	end := outcome{result: r, message: message, left: s.left, report: s.report}
	if r == unreachable {
		end.since = moves.loss.since
	}
	return end
}

// identify reads the UID of this cluster.
func (s *session) identify(ctx context.Context) error {
	for backoff := retry.Unreachable(); s.clusterID == ""; {
		var err error
		if s.clusterID, err = s.member.ID(ctx); err == nil {
			return nil
		}
		s.status.set(Joined, "no heartbeat yet: "+err.Error())
		if err := retry.Wait(ctx, s.clock, backoff.Step()); err != nil {
			return err
		}
	}
	return nil
}

// observeUpgradable checks whether the hub can upgrade the agent of a MemberCluster. Without
// delivery the agent has no right to check it, and needs none.
func (s *session) observeUpgradable(ctx context.Context) {
	if s.mode.upgradable == nil || s.delivery.Off {
		return
	}
	var err error
	if s.upgradable, err = s.mode.upgradable(ctx); err != nil {
		s.log.Info("The hub cannot upgrade this agent: its Helm release is unreadable", "reason", err.Error())
	}
}

// readKey reads the key of the agent; nil if the agent has none, and waiting does not help.
func (s *session) readKey(ctx context.Context) (*credential.AgentKey, error) {
	for backoff := retry.Unreachable(); ; {
		key, err := s.member.AgentKey(ctx)
		if err == nil || withoutKey(err) {
			return key, nil
		}
		s.status.set(Joined, "no heartbeat yet: "+err.Error())
		if err := retry.Wait(ctx, s.clock, backoff.Step()); err != nil {
			return nil, err
		}
	}
}

// withoutKey reports whether an error is permanent, such as a missing right to the Secret with the
// chart of an earlier version.
func withoutKey(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return errors.Is(err, local.ErrUnusableKey)
	}
	code := answer.Status().Code
	return code >= 400 && code < 500 && code != http.StatusTooManyRequests && code != http.StatusConflict && code != http.StatusUnauthorized
}

// untilRefused verifies the credential at every doubt, and returns once the hub persistently
// refuses it.
func (s *session) untilRefused(ctx context.Context) (result, string) {
	for {
		select {
		case <-ctx.Done():
			return unreachable, ""
		case <-s.relist:
			return unreachable, "the hub is reached at " + s.hub.Server() + ", and everything is listed anew"
		case <-s.standby:
			return unreachable, "the hub at " + s.hub.Server() + " does not answer, and a restored hub does"
		case <-s.doubts:
		}
		hub := *s.hub // other goroutines use the session meanwhile
		hub.Credential = *s.credential.Load()
		if r, err := hub.Verify(ctx, func(error) {}); r.Refuses() {
			return s.mode.explainRefusal(&hub, r, err)
		}
	}
}

func (s *session) joinedMessage() string {
	return fmt.Sprintf("joined as %s at %s", s.hub.Credential.Record(), s.hub.Server())
}

func (s *session) leftMessage() string {
	return fmt.Sprintf("this cluster has left the fleet: the hub at %s requested the leave of %s; "+
		"waiting for the hub to delete its namespace, or to request another join", s.hub.Server(), s.hub.Credential.Record())
}

func (s *session) reporter() *report.Reporter {
	var key []byte
	if s.issued != nil {
		key = s.issued.key.Public()
	}
	return &report.Reporter{
		Member: s.member, Write: s.hub.Member.Report, Remove: s.hub.Member.RemoveReported, Observe: s.observe, Changed: s.reportChanged,
		HealthDue: s.healthDue, Left: s.setLeft,
		Farewell: s.farewell, Explain: s.hub.Explain, AgentVersion: version.Version, AgentNamespace: s.member.Namespace,
		AgentKey: key, Features: s.features(), Clock: s.clock,
	}
}

// observe returns the agent's part of the report.
func (s *session) observe() report.Session {
	keepsAll, note := s.keepsAll(), s.status.getNote()
	s.mu.Lock()
	defer s.mu.Unlock()
	return report.Session{
		Report: s.report, Hub: s.address, ReadyToLeave: (keepsAll || s.removal.done) && (!s.uninstallAsked() || s.uninstall.prepared),
		LeaveProgress: cmp.Or(s.uninstall.message, s.removal.progress),
		Unpruned:      report.Unpruned(s.blocked), Note: note, Credential: credentialInUse(s.credential.Load()),
		Refused: s.refusedTerm(),
	}
}

// changeCredential stores another credential, then makes it the one in use. A restart therefore
// finds it.
func (s *session) changeCredential(ctx context.Context, edit func(*hubclient.Credential)) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	next := *s.credential.Load()
	edit(&next)
	if err := s.mode.storeCredential(ctx, next); err != nil {
		return err
	}
	s.use(next)
	return nil
}

// adoptStored makes a newer credential of the same account the one in use.
func (s *session) adoptStored(stored hubclient.Credential) {
	s.changing.Lock()
	defer s.changing.Unlock()
	if next := *s.credential.Load(); stored.Account() == next.Account() && stored.Sequence > next.Sequence {
		next.Token, next.Sequence, next.Reconnect = stored.Token, stored.Sequence, stored.Reconnect
		s.use(next)
	}
}

func (s *session) use(c hubclient.Credential) {
	s.credential.Store(&c)
	s.hub.SetToken(c.Token)
	kubeclient.Notify(s.deliveryDue)
	kubeclient.Notify(s.reportChanged)
	expires := 0.0
	if at := credential.ClaimsOf(c.Token).Expires; !at.IsZero() {
		expires = float64(at.Unix())
	}
	credentialExpiry.Set(expires)
}

// period returns the requested period of heartbeats; 0 if the hub wants none.
func (s *session) period() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left {
		return 0
	}
	return s.report.HeartbeatPeriod()
}

// setLeft handles the hub's acceptance of the departure report.
func (s *session) setLeft() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report.Spec.State != clusterv1beta1.ClusterStateLeave {
		return
	}
	s.left = true
	s.status.set(Left, s.leftMessage())
	kubeclient.Notify(s.periodChanged)
	kubeclient.Notify(s.uninstallDue)
	if s.onLeft != nil {
		s.onLeft()
	}
}
