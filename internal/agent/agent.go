// Package agent is the life of an agent on a member cluster: it joins the hub by one of two doors, beats, reports, and leaves when the
// hub asks for that.
//
// Its invariant: what it does follows from what it observes (see decide), one activity at a time about its credential and one about its
// registration token. A credential is given up only if the hub itself refuses it or another one has proved itself, a registration is asked
// for only with a registration token, and whatever it waits for is in its readiness message.
package agent

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/identity"
	"github.com/muster-fleet/muster/internal/agent/join"
	"github.com/muster-fleet/muster/internal/agent/local"
	"github.com/muster-fleet/muster/internal/agent/remote"
	"github.com/muster-fleet/muster/internal/agent/retry"
	"github.com/muster-fleet/muster/internal/naming"
)

const cautionInsecure = " (the hub's certificate is NOT verified: --tls-insecure)"

// Options are what an agent has to be told.
type Options struct {
	// Member reaches the API server of the cluster that joins.
	Member *rest.Config
	// Namespace is where the agent's Secrets are.
	Namespace string
	// Hostname is that of the agent's Pod.
	Hostname string
	// Delivery is how an agent that registers deploys.
	Delivery Delivery
	// Membership is set for an agent of a MemberCluster; without it the agent registers.
	Membership *Membership
	// Log gets one line per change of state.
	Log logr.Logger
	// Clock is the real one if nil.
	Clock clock.Clock

	// clusterID is for tests, which have one cluster; empty for the UID of kube-system.
	clusterID string
}

// Agent is one agent. The fields from current on belong to the loop of Run.
type Agent struct {
	hostname string
	delivery Delivery
	log      logr.Logger
	clock    clock.Clock
	member   *local.Cluster
	standing *standing
	// clusterID is the UID of the member's namespace kube-system, once it is known.
	clusterID string

	changed chan struct{}
	door    door

	// current is about the credential, registering about the registration token.
	current, registering *activity
	session              *remote.Session
	// asked is the report of the session as last seen.
	asked *clusterv1beta1.InternalMemberCluster
	// bought is the version of the registration token that bought the session; empty if the credential was stored.
	bought string
	// with is what the stored credential was last seen to be joined with; former is what that was when the session was bought, so that it is
	// no news to see it still.
	with, former string
	// token is the registration token as it was first seen.
	token       sighting
	trial, join attempt
	// unused is the version of the ConfigMap whose clientID was said not to count.
	unused string
	// departed is closed once the membership before this one is left; nil if there was none. departing are those who leave one.
	departed  chan struct{}
	departing *sync.WaitGroup
	// Waits grow from attempt to attempt and begin anew when the hub accepts something.
	unreachablePace, refusedPace, absentPace wait.Backoff
}

// New prepares an agent; nothing is sent yet.
func New(o Options) (*Agent, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	member, err := local.New(o.Member, o.Namespace)
	if err != nil {
		return nil, err
	}
	a := &Agent{
		hostname: o.Hostname, delivery: o.Delivery, log: o.Log, clock: o.Clock, member: member,
		changed:   make(chan struct{}, 1),
		clusterID: o.clusterID, departing: &sync.WaitGroup{},
	}
	a.standing = &standing{log: o.Log, changed: a.changed, noted: make(chan struct{}, 1)}
	a.calm()
	if o.Membership == nil {
		a.door = newRegistration(member, a.changed)
		return a, nil
	}
	m, err := o.Membership.Validate()
	if err != nil {
		return nil, err
	}
	if m.Insecure {
		a.standing.caution = cautionInsecure
	}
	a.door, err = newMembership(m, member, a.changed)
	return a, err
}

// calm begins all waits anew.
func (a *Agent) calm() {
	a.unreachablePace, a.refusedPace, a.absentPace = retry.Unreachable(), retry.Refused(), retry.Absent()
}

// Standing says where the agent stands, and whether it has joined.
func (a *Agent) Standing() (state State, reason string, joined bool) { return a.standing.get() }

// Run lives until ctx ends.
func (a *Agent) Run(ctx context.Context) {
	ctx = logr.NewContext(ctx, a.log)
	var following sync.WaitGroup
	if a.standing.caution != "" {
		a.log.Info("WARNING: the hub's certificate is not verified, so whoever sits between this cluster and the hub can read the token: " +
			"set config.hubCA and leave tlsClientInsecure and --tls-insecure out")
	}
	following.Go(func() { a.door.follow(ctx) })
	for ctx.Err() == nil {
		seen := a.observe()
		d := a.door.decide(seen.observed, a.clock.Now())
		a.act(ctx, d, seen)
		a.sayUnusedClientID(seen)
		a.wait(ctx, d)
	}
	a.stop(&a.current)
	a.stop(&a.registering)
	a.departing.Wait()
	following.Wait()
}

// wait returns when something may have changed.
func (a *Agent) wait(ctx context.Context, d decision) {
	var wake <-chan time.Time
	if !d.Wake.IsZero() {
		timer := a.clock.NewTimer(d.Wake.Sub(a.clock.Now()))
		defer timer.Stop()
		wake = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-a.changed:
	case <-wake:
	case o := <-a.current.end():
		a.current = nil
		a.learn(ctx, o)
	case o := <-a.registering.end():
		a.registering = nil
		a.learn(ctx, o)
	}
}

// seen is what was observed, and the contents of what decides.
type seen struct {
	observed
	stored identity.Credential
	// inUse is the credential that the session began with; nil without one.
	inUse *identity.Credential
	// fallback is tried if the hub does not answer at the address of stored; nil if there is no other.
	fallback  *identity.Credential
	bootstrap join.Bootstrap
	config    join.Config
	// bought is the version of the registration token that bought the session.
	bought string
}

// sighting is a version of an object, when it was first seen, and whether it was there when the agent began.
type sighting struct {
	version string
	at      time.Time
	initial bool
}

func (a *Agent) observe() seen {
	s := seen{observed: observed{trial: a.trial, join: a.join}, bought: a.bought}
	if a.session != nil {
		s.inUse = &a.session.Credential
	}
	a.door.observe(&s)
	if a.session != nil {
		s.record = a.session.Credential.Record()
		with := s.stored.JoinedWith
		if with == a.session.Credential.JoinedWith {
			a.former = "" // from now on it is news
		}
		s.replaced = s.credential.problem == "" && with != "" && with != a.session.Credential.JoinedWith && with != a.former
	}
	a.with = s.stored.JoinedWith
	if a.registering != nil && a.registering.do == register {
		s.joining = a.registering.of
	}
	if version := s.observed.bootstrap.version; s.synced && (a.token.at.IsZero() || version != a.token.version) {
		a.token = sighting{version: version, at: a.clock.Now(), initial: a.token.at.IsZero()}
	}
	if s.appeared = a.token.at; a.token.initial && a.bought == a.token.version {
		s.appeared = time.Time{}
	}
	state, _, _ := a.standing.get()
	s.standby = state == Standby && a.trial.verdict == accepted
	return s
}

// sayUnusedClientID tells once that a clientID which was changed alone does not count: only a registration token registers.
func (a *Agent) sayUnusedClientID(s seen) {
	same := s.stored.JoinedAs == "" || s.stored.JoinedAs == join.DigestOfClientID(s.config.ClientID)
	if same || !s.synced || s.observed.config.problem != "" || s.observed.bootstrap.version != "" || a.unused == s.observed.config.version {
		return
	}
	a.unused = s.observed.config.version
	a.log.Info("the clientID was changed, which counts only when this cluster registers: give it a registration token as well",
		"configmap", s.namespace+"/"+naming.AgentConfigMap, "registered", s.record)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
