// Package agent runs the agent on a member cluster, in stages. It finds a credential (mode.go and
// the two registration modes), then verifies it or registers (attempt.go), then runs a session
// (session.go).
//
// A session sends heartbeats, reports, delivers, moves to another address of the hub, and leaves.
//
// Its invariant: the actions of an agent follow from its observations (decide.go). One activity at
// a time handles the credential, and one the registration token. An agent drops a credential only
// if the hub itself refuses it or has accepted another one. It registers only with a registration
// token. The readiness message names everything the agent waits for.
//
// An agent writes its own Secrets in its namespace and the ConfigMap muster-hub-term. The agent of
// a MemberCluster also writes the ConfigMap member-agent-hub. On the hub the agent writes its
// Lease, its report, and the status of undeliverable objects.
package agent

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/join"
	"github.com/muster-fleet/muster/internal/agent/local"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/retry"
)

const cautionInsecure = " (the hub's certificate is NOT verified: --tls-insecure)"

// Options configure an agent.
type Options struct {
	// Member connects to the API server of the member.
	Member *rest.Config
	// Namespace is the namespace of the agent's Secrets.
	Namespace string
	// Hostname is the hostname of the agent's Pod.
	Hostname string
	// Delivery configures the delivery of a registering agent.
	Delivery Delivery
	// Membership is set for the agent of a MemberCluster; an agent without it registers.
	Membership *Membership
	// Deployment is the name of the agent's Deployment in Namespace; empty if the agent runs outside
	// its cluster, and cannot remove itself.
	Deployment string
	// Hosted is set if the Deployment is on another cluster. Deployment then names the mark for such
	// an agent. The agent removes only its objects on the member, and the hub does not upgrade it.
	Hosted bool
	// FactsConfigMap names the ConfigMap with custom facts; empty if there is none.
	FactsConfigMap string
	// HubKubeconfig names a kubeconfig of the hub, in place of a token.
	HubKubeconfig HubKubeconfig
	// Log gets one line per change of state.
	Log logr.Logger
	// Clock defaults to the real clock.
	Clock clock.Clock

	// clusterID is for tests with a single cluster; defaults to the UID of kube-system.
	clusterID string
}

// environment is the setup of an agent. All sessions share it.
type environment struct {
	member   *local.Cluster
	mode     *mode
	hostname string
	// clusterID is the UID of the member's namespace kube-system, once known.
	clusterID string
	delivery  Delivery
	// deployment is the name of the agent's Deployment; empty if the agent cannot remove itself.
	deployment string
	// hosted is set if this Deployment is on another cluster.
	hosted bool
	log    logr.Logger
	clock  clock.Clock
	status *status
	// terms remembers the highest term of the hub.
	terms *terms
	// spread is a number from 0 to 1 that differs by agent; see patience.
	spread float64
}

// Agent is one agent. Only the loop of Run uses the fields from current on.
type Agent struct {
	environment

	changed chan struct{}
	// current handles the credential, registering the registration token.
	current, registering *activity
	session              *hubclient.Session
	// report is the last observed report of the session.
	report *clusterv1beta1.InternalMemberCluster
	// boughtWith is the version of the registration token for the session; empty for a stored
	// credential.
	boughtWith string
	// joinedWith is the last observed digest of the join of the stored credential. formerJoinedWith is
	// the stored digest at the start of a new session; observing it again does not mean another
	// credential.
	joinedWith, formerJoinedWith string
	// account is the UID of the last account on the hub of this process; empty without one, or if the
	// token does not name it.
	account string
	// token is the first observation of the registration token.
	token       firstObserved
	trial, join attempt
	// unusedConfig is the version of the ConfigMap with an unused and logged clientID.
	unusedConfig string
	// formerLeft is closed after leaving the previous membership; nil if there was none. formerEnded
	// is closed once the agent needs its credential no more. leaving counts the leaving sessions.
	formerLeft, formerEnded <-chan struct{}
	leaving                 sync.WaitGroup
	// unreachableSince is the first of the last tries without an answer; zero after an answer.
	unreachableSince time.Time
	// The backoffs grow with each attempt, and reset once the hub accepts an attempt.
	unreachableBackoff, refusedBackoff, absentBackoff wait.Backoff
}

// New prepares an agent without sending a request.
func New(o Options) (*Agent, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	member, err := local.New(o.Member, o.Namespace)
	if err != nil {
		return nil, err
	}
	member.FactsConfigMap = o.FactsConfigMap
	changed := make(chan struct{}, 1)
	a := &Agent{changed: changed, environment: environment{
		member: member, hostname: o.Hostname, clusterID: o.clusterID, delivery: o.Delivery, log: o.Log, clock: o.Clock,
		deployment: o.Deployment, hosted: o.Hosted, terms: &terms{member: member, log: o.Log}, spread: rand.Float64(),
		status: &status{log: o.Log, changed: changed, reportChanged: make(chan struct{}, 1)},
	}}
	a.resetBackoff()
	if o.Membership == nil {
		a.mode = newRegistration(member, o.HubKubeconfig, changed)
		return a, nil
	}
	m, err := o.Membership.Validate()
	if err != nil {
		return nil, err
	}
	if m.Insecure {
		a.status.caution = cautionInsecure
	}
	a.mode = newMembership(m, member, o.HubKubeconfig, changed)
	return a, nil
}

func (a *Agent) resetBackoff() {
	a.unreachableBackoff, a.refusedBackoff, a.absentBackoff = retry.Unreachable(), retry.Refused(), retry.Absent()
}

// Status returns the state of the agent, its reason, and whether it has joined.
func (a *Agent) Status() (state State, reason string, joined bool) { return a.status.get() }

// Run runs the agent until ctx ends.
func (a *Agent) Run(ctx context.Context) {
	ctx = logr.NewContext(ctx, a.log)
	if a.status.caution != "" {
		a.log.Info("WARNING: the certificate of the hub is not verified, and an attacker on the network can read the token: " +
			"set config.hubCA and leave tlsClientInsecure and --tls-insecure out")
	}
	var following sync.WaitGroup
	following.Go(func() { a.mode.follow(ctx) })
	for ctx.Err() == nil {
		o := a.observe()
		d := a.mode.decide(o.observed, a.clock.Now())
		a.act(ctx, d, o)
		a.logUnusedClientID(o)
		a.wait(ctx, d)
	}
	a.stop(&a.current)
	a.stop(&a.registering)
	a.leaving.Wait()
	following.Wait()
}

// wait returns after a possible change.
func (a *Agent) wait(ctx context.Context, d decision) {
	wake, stop := retry.Timer(a.clock, d.Wake)
	defer stop()
	select {
	case <-ctx.Done():
	case <-a.changed:
	case <-wake:
	case o := <-a.current.done():
		a.current = nil
		a.handle(ctx, o)
	case o := <-a.registering.done():
		a.registering = nil
		a.handle(ctx, o)
	}
}

// observation holds the observed state, and the contents behind it.
type observation struct {
	observed
	stored hubclient.Credential
	// inUse is the credential from the start of the session; nil without a session.
	inUse *hubclient.Credential
	// given is the user's token, tried if the hub refuses its own credential in stored; nil if stored
	// is the user's, or there is none.
	given *hubclient.Credential
	// fallback has the address to try if the hub does not answer at the address of stored; nil if
	// there is no other.
	fallback  *hubclient.Credential
	bootstrap join.Bootstrap
	config    join.Config
	// unreachableSince is the time of the first try without an answer; zero after an answer.
	unreachableSince time.Time
}

// firstObserved is a version of an object, the time of its first observation, and whether it
// existed at the start of the agent.
type firstObserved struct {
	version string
	at      time.Time
	initial bool
}

func (a *Agent) observe() observation {
	o := observation{observed: observed{trial: a.trial, join: a.join}, unreachableSince: a.unreachableSince}
	if a.session != nil {
		o.inUse = &a.session.Credential
	}
	if a.registering != nil && a.registering.do == register {
		o.joining = a.registering.version
	}
	a.mode.observe(&o)
	if a.session != nil {
		o.record = a.session.Credential.Record()
		with := o.stored.JoinedWith
		if with == a.session.Credential.JoinedWith {
			a.formerJoinedWith = "" // another credential if it comes again
		}
		o.replaced = o.credential.problem == "" && with != "" && with != a.session.Credential.JoinedWith && with != a.formerJoinedWith
	}
	a.joinedWith = o.stored.JoinedWith
	o.displaced = o.stored.Upstream && a.account != "" && a.account != o.stored.Account()
	if version := o.observed.bootstrap.version; o.synced && (a.token.at.IsZero() || version != a.token.version) {
		a.token = firstObserved{version: version, at: a.clock.Now(), initial: a.token.at.IsZero()}
	}
	if o.appeared = a.token.at; a.token.initial && a.boughtWith == a.token.version {
		o.appeared = time.Time{}
	}
	state, _, _ := a.status.get()
	o.standby = state == Standby && a.trial.result == accepted
	return o
}

// logUnusedClientID logs a clientID without a registration token once, because it has no effect.
func (a *Agent) logUnusedClientID(o observation) {
	same := o.stored.JoinedAs == "" || o.stored.JoinedAs == join.DigestOfClientID(o.config.ClientID)
	if same || !o.synced || o.observed.config.problem != "" || o.observed.bootstrap.version != "" ||
		a.unusedConfig == o.observed.config.version {
		return
	}
	a.unusedConfig = o.observed.config.version
	a.log.Info("The clientID has changed and counts at the next registration only: set a registration token as well",
		"configMap", o.namespace+"/"+naming.AgentConfigMap, "cluster", o.record)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
