// Package agent is the life of an agent on a member cluster: it joins the hub, beats, reports and keeps its credential.
//
// Its invariant: what it does follows from what it observes (see decide), one activity at a time. A credential is given up
// only if the hub itself refuses it, a registration is asked for only with a registration token, and whatever it waits for is
// in its readiness message.
package agent

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/agent/client"
	"github.com/muster-fleet/muster/internal/agent/identity"
	"github.com/muster-fleet/muster/internal/agent/join"
	"github.com/muster-fleet/muster/internal/agent/local"
	"github.com/muster-fleet/muster/internal/agent/remote"
	"github.com/muster-fleet/muster/internal/agent/retry"
	"github.com/muster-fleet/muster/internal/naming"
)

// Options are what an agent has to be told.
type Options struct {
	// Member reaches the API server of the cluster that joins.
	Member *rest.Config
	// Namespace is where the agent's Secrets are.
	Namespace string
	// Hostname is that of the agent's Pod.
	Hostname string
	// Log gets one line per change of state.
	Log logr.Logger
	// Clock is the real one if nil.
	Clock clock.Clock
}

// Agent is one agent. The fields from current on belong to the loop of Run.
type Agent struct {
	hostname string
	log      logr.Logger
	clock    clock.Clock
	member   *local.Cluster
	standing *standing

	changed    chan struct{}
	credential *client.Mirror[*corev1.Secret]
	bootstrap  *client.Mirror[*corev1.Secret]
	config     *client.Mirror[*corev1.ConfigMap]
	// tidyUp tells a joined agent that one of them may have changed.
	tidyUp chan struct{}

	current *activity
	session *remote.Session
	// token is the version of the registration token that bought the session; empty if the credential was stored.
	token       string
	trial, join attempt
	// Waits grow from attempt to attempt and begin anew when the hub accepts something.
	unreachablePace, refusedPace wait.Backoff
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
	return &Agent{
		hostname: o.Hostname, log: o.Log, clock: o.Clock, member: member,
		standing:        &standing{log: o.Log},
		changed:         changed,
		tidyUp:          make(chan struct{}, 1),
		credential:      client.NewMirror[*corev1.Secret](changed),
		bootstrap:       client.NewMirror[*corev1.Secret](changed),
		config:          client.NewMirror[*corev1.ConfigMap](changed),
		unreachablePace: retry.Unreachable(), refusedPace: retry.Refused(),
	}, nil
}

// Standing says where the agent stands, and whether it has joined.
func (a *Agent) Standing() (state State, reason string, joined bool) { return a.standing.get() }

// Run lives until ctx ends.
func (a *Agent) Run(ctx context.Context) {
	ctx = logr.NewContext(ctx, a.log)
	var following sync.WaitGroup
	following.Go(func() { client.FollowOne(ctx, a.credential, a.member.Secrets, naming.AgentSecret) })
	following.Go(func() { client.FollowOne(ctx, a.bootstrap, a.member.Secrets, naming.AgentBootstrapSecret) })
	following.Go(func() { client.FollowOne(ctx, a.config, a.member.ConfigMaps, naming.AgentConfigMap) })
	for ctx.Err() == nil {
		seen := a.observe()
		d := decide(seen.observed, a.clock.Now())
		a.act(ctx, d, seen)
		a.wait(ctx, d)
	}
	a.stop()
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
	var ended <-chan outcome
	if a.current != nil {
		ended = a.current.ended
	}
	select {
	case <-ctx.Done():
	case <-a.changed:
	case <-wake:
	case o := <-ended:
		a.current = nil
		a.learn(o)
	}
}

// seen is what was observed, and the contents of what decides.
type seen struct {
	observed
	stored    identity.Credential
	bootstrap join.Bootstrap
	config    join.Config
}

func (a *Agent) observe() seen {
	s := seen{observed: observed{namespace: a.member.Namespace, trial: a.trial, join: a.join}}
	credential, sawCredential := a.credential.Get()
	bootstrap, sawBootstrap := a.bootstrap.Get()
	config, sawConfig := a.config.Get()
	s.synced = sawCredential && sawBootstrap && sawConfig
	for _, failure := range []error{a.credential.Failure(), a.bootstrap.Failure(), a.config.Failure()} {
		if failure != nil {
			s.failure = failure.Error()
		}
	}
	var err error
	if credential != nil {
		s.stored, err = identity.FromSecret(credential)
		s.credential = object{version: credential.ResourceVersion, problem: text(err)}
		s.record = s.stored.Record()
	}
	if a.session != nil {
		s.record = a.session.Credential.Record()
	}
	if bootstrap != nil {
		s.bootstrap, err = join.ParseBootstrap(bootstrap)
		s.observed.bootstrap = object{version: bootstrap.ResourceVersion, problem: text(err)}
	}
	s.config, err = join.ParseConfig(config)
	s.observed.config.problem = text(err)
	if config != nil {
		s.observed.config.version = config.ResourceVersion
	}
	if a.current != nil && a.current.do == register {
		s.joining = a.current.of
	}
	return s
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
