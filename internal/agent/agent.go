// Package agent is the life of an agent on a member cluster, in stages: find a credential (mode.go and the two registration modes), verify it
// or register (attempt.go), run a session (session.go), and within a session beat, report, deliver, move to another address of the hub, leave.
//
// Its invariant: what an agent does follows from what it observes (decide.go), with one activity at a time about the credential and one about
// the registration token. A credential is given up only if the hub itself refuses it or another one has been accepted, a registration is asked
// for only with a registration token, and whatever the agent waits for is in its readiness message. An agent writes Secrets of its own in its
// namespace, that of a MemberCluster the ConfigMap member-agent-hub as well, and on the hub its Lease, its report and the status of what it cannot deliver.
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
	"github.com/muster-fleet/muster/internal/agent/join"
	"github.com/muster-fleet/muster/internal/agent/local"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/retry"
)

const cautionInsecure = " (the hub's certificate is NOT verified: --tls-insecure)"

// Options set an agent up.
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

// environment is where an agent runs and how it is set up. Sessions share it.
type environment struct {
	member   *local.Cluster
	mode     *mode
	hostname string
	// clusterID is the UID of the member's namespace kube-system, once it is known.
	clusterID string
	delivery  Delivery
	log       logr.Logger
	clock     clock.Clock
	status    *status
}

// Agent is one agent. The fields from current on belong to the loop of Run.
type Agent struct {
	environment

	changed chan struct{}
	// current is about the credential, registering about the registration token.
	current, registering *activity
	session              *hubclient.Session
	// report is that of the session as last observed.
	report *clusterv1beta1.InternalMemberCluster
	// boughtWith is the version of the registration token that bought the session; empty if the credential was stored.
	boughtWith string
	// joinedWith is the digest of what the stored credential was bought with, as last observed; formerJoinedWith is the digest that was stored when
	// the session was bought: to observe that digest still does not mean another credential.
	joinedWith, formerJoinedWith string
	// account is the UID of the account on the hub that this process last acted as; empty if none, or if the token does not name it.
	account string
	// token is the registration token as it was first observed.
	token       firstObserved
	trial, join attempt
	// unusedConfig is the version of the ConfigMap whose unused clientID was logged.
	unusedConfig string
	// formerLeft is closed once the membership before this one is left; nil if there was none. leaving are the sessions that leave one.
	formerLeft chan struct{}
	leaving    sync.WaitGroup
	// Waits grow from attempt to attempt and begin anew when the hub accepts something.
	unreachableBackoff, refusedBackoff, absentBackoff wait.Backoff
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
	changed := make(chan struct{}, 1)
	a := &Agent{changed: changed, environment: environment{
		member: member, hostname: o.Hostname, clusterID: o.clusterID, delivery: o.Delivery, log: o.Log, clock: o.Clock,
		status: &status{log: o.Log, changed: changed, reportChanged: make(chan struct{}, 1)},
	}}
	a.resetBackoff()
	if o.Membership == nil {
		a.mode = newRegistration(member, changed)
		return a, nil
	}
	m, err := o.Membership.Validate()
	if err != nil {
		return nil, err
	}
	if m.Insecure {
		a.status.caution = cautionInsecure
	}
	a.mode = newMembership(m, member, changed)
	return a, nil
}

func (a *Agent) resetBackoff() {
	a.unreachableBackoff, a.refusedBackoff, a.absentBackoff = retry.Unreachable(), retry.Refused(), retry.Absent()
}

// Status says in which state the agent is and why, and whether it has joined.
func (a *Agent) Status() (state State, reason string, joined bool) { return a.status.get() }

// Run lives until ctx ends.
func (a *Agent) Run(ctx context.Context) {
	ctx = logr.NewContext(ctx, a.log)
	if a.status.caution != "" {
		a.log.Info("WARNING: the hub's certificate is not verified, so whoever sits between this cluster and the hub can read the token: " +
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

// wait returns when something may have changed.
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

// observation is what was observed, and the contents of what decides.
type observation struct {
	observed
	stored hubclient.Credential
	// inUse is the credential that the session began with; nil without a session.
	inUse *hubclient.Credential
	// given is the token of the user's, tried if the hub refuses stored, which the hub has issued; nil if stored is the user's, or there is none.
	given *hubclient.Credential
	// fallback has the address that is tried if the hub does not answer at that of stored; nil if there is no other.
	fallback  *hubclient.Credential
	bootstrap join.Bootstrap
	config    join.Config
}

// firstObserved is a version of an object, when that was first observed, and whether the object was there when the agent started.
type firstObserved struct {
	version string
	at      time.Time
	initial bool
}

func (a *Agent) observe() observation {
	o := observation{observed: observed{trial: a.trial, join: a.join}}
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
			a.formerJoinedWith = "" // from now on that digest means another credential
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

// logUnusedClientID logs once that a clientID which was changed alone does not count: only a registration token registers.
func (a *Agent) logUnusedClientID(o observation) {
	same := o.stored.JoinedAs == "" || o.stored.JoinedAs == join.DigestOfClientID(o.config.ClientID)
	if same || !o.synced || o.observed.config.problem != "" || o.observed.bootstrap.version != "" || a.unusedConfig == o.observed.config.version {
		return
	}
	a.unusedConfig = o.observed.config.version
	a.log.Info("the clientID was changed, which counts only when this cluster registers: give it a registration token as well",
		"configmap", o.namespace+"/"+naming.AgentConfigMap, "registered", o.record)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
