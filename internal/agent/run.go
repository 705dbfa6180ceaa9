package agent

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/client"
	"github.com/muster-fleet/muster/internal/agent/deployer"
	"github.com/muster-fleet/muster/internal/agent/identity"
	"github.com/muster-fleet/muster/internal/agent/remote"
	"github.com/muster-fleet/muster/internal/agent/report"
	"github.com/muster-fleet/muster/internal/agent/retry"
	"github.com/muster-fleet/muster/internal/version"
)

// runner is a joined agent at work.
type runner struct {
	*Agent
	session *remote.Session
	// departed is closed once the membership before this one is left; nil if there was none. Nothing is delivered before.
	departed <-chan struct{}
	// farewell is what a member that leaves by itself says last, gone what its acceptance brings about.
	farewell string
	gone     func()
	// held is the credential in use; it changes with each renewal.
	held atomic.Pointer[identity.Credential]
	// doubts asks for a judgement of the credential.
	doubts chan struct{}
	checks chan struct{}
	// moved tells that the hub is reached elsewhere.
	moved chan struct{}
	// periods, asks, moves and hubs hold the newest value only.
	periods chan time.Duration
	asks    chan *clusterv1beta1.InternalMemberCluster
	// renewed tells of a new credential, or another address of the hub.
	renewed chan struct{}
	// placed tells that there may be something else to deliver, departing that a departure has come further, or a removal is blocked or no
	// longer is.
	placed, departing chan struct{}
	moves             chan *clusterv1beta1.InternalMemberCluster
	hubs              chan clusterv1beta1.HubInUse

	// changing is held while another credential is stored and taken into use.
	changing sync.Mutex

	mu sync.Mutex
	// asked is the report as last seen, left that the agent reported that it left, pace the period as last told.
	asked *clusterv1beta1.InternalMemberCluster
	left  bool
	pace  time.Duration
	// departure is that of a member that leaves.
	departure departure
	// blocked is what keeps something from being removed.
	blocked deployer.Blocked
	// hub is how the agent reaches the hub.
	hub clusterv1beta1.HubInUse
}

func (a *Agent) newRunner(session *remote.Session, asked *clusterv1beta1.InternalMemberCluster) *runner {
	r := &runner{
		Agent: a, session: session, asked: asked, left: report.HasLeft(asked),
		doubts: make(chan struct{}, 1), checks: make(chan struct{}, 1), moved: make(chan struct{}, 1), hub: inUse(session.Target()),
		moves: make(chan *clusterv1beta1.InternalMemberCluster, 1), hubs: make(chan clusterv1beta1.HubInUse, 1),
		periods: make(chan time.Duration, 1), asks: make(chan *clusterv1beta1.InternalMemberCluster, 1),
		renewed: make(chan struct{}, 1), placed: make(chan struct{}, 1), departing: make(chan struct{}, 1),
	}
	r.held.Store(&session.Credential)
	return r
}

// work goes on until the hub refuses the credential or ctx ends.
func (a *Agent) work(ctx context.Context, session *remote.Session, departed <-chan struct{}) outcome {
	r := a.newRunner(session, session.Report)
	r.departed = departed
	r.use(session.Credential)
	if err := r.identify(ctx); err != nil {
		return outcome{verdict: unreachable, message: err.Error()}
	}
	if r.left {
		r.standing.enter(Left, r.goodbye())
	}
	r.pace = r.period()
	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	for _, part := range append([]func(context.Context){r.beat, r.listen, (&mover{runner: r}).run}, a.door.parts(r)...) {
		working.Go(func() { part(ctx) })
	}
	v, message := r.untilRefused(ctx)
	cancel()
	working.Wait()
	return outcome{verdict: v, message: message, left: r.left, asked: r.asked}
}

// identify learns what tells this cluster from others.
func (r *runner) identify(ctx context.Context) error {
	for pace := retry.Unreachable(); r.clusterID == ""; {
		var err error
		if r.clusterID, err = r.member.ID(ctx); err == nil {
			return nil
		}
		r.standing.enter(Joined, "not beating yet: "+err.Error())
		if err := retry.Wait(ctx, r.clock, pace.Step()); err != nil {
			return err
		}
	}
	return nil
}

// untilRefused judges every doubt and returns when the hub persists in refusing.
func (r *runner) untilRefused(ctx context.Context) (verdict, string) {
	for {
		select {
		case <-ctx.Done():
			return unreachable, ""
		case <-r.doubts:
		}
		held, v, err := r.prove(ctx)
		switch v {
		case remote.Unauthorized, remote.Forbidden, remote.NotFound:
			return r.door.refused(held, v, err)
		case remote.Accepted, remote.Unreachable, remote.Invalid:
		}
	}
}

// prove tries the credential in use on a copy of the session, which others read meanwhile.
func (r *runner) prove(ctx context.Context) (*remote.Session, remote.Verdict, error) {
	held := *r.session
	held.Credential = *r.held.Load()
	verdict, err := held.Prove(ctx, func(error) {})
	return &held, verdict, err
}

func (r *runner) joined() string {
	return fmt.Sprintf("joined as %s at %s", r.session.Credential.Record(), r.session.Server())
}

func (r *runner) reporter() *report.Reporter {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &report.Reporter{
		Member: r.member, Write: r.session.Member.Report, Start: r.asked, Asks: r.asks, Check: r.checks, Left: r.leave,
		Departure: r.ready, Unpruned: r.unpruned, Departing: r.departing, Farewell: r.farewell, Note: r.standing.noteOf, Noted: r.standing.noted,
		Hub: r.hub, Hubs: r.hubs, Explain: r.session.Explain, AgentVersion: version.Version, AgentNamespace: r.member.Namespace,
		Features: r.features(), Clock: r.clock,
	}
}

// change makes another credential the one in use once it is stored, so that a restart finds it.
func (r *runner) change(ctx context.Context, edit func(*identity.Credential)) error {
	r.changing.Lock()
	defer r.changing.Unlock()
	next := *r.held.Load()
	edit(&next)
	if err := r.door.keep(ctx, next); err != nil {
		return err
	}
	r.use(next)
	return nil
}

func (r *runner) use(credential identity.Credential) {
	r.held.Store(&credential)
	r.session.SetToken(credential.Token)
	poke(r.renewed)
	expires := 0.0
	if at := identity.ReadClaims(credential.Token).Expires; !at.IsZero() {
		expires = float64(at.Unix())
	}
	credentialExpiry.Set(expires)
}

// listen watches the report for what the hub asks.
func (r *runner) listen(ctx context.Context) {
	changed := make(chan struct{}, 1)
	mirror := client.NewMirror[*clusterv1beta1.InternalMemberCluster](changed)
	following := &part{run: func(ctx context.Context) { client.FollowOne(ctx, mirror, r.session.Reports, r.session.Name) }}
	following.start(ctx)
	defer following.wait()
	defer following.stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.moved:
			// The old address may fall silent without a word.
			following.stop()
			following.start(ctx)
			continue
		case <-changed:
		}
		if v := remote.Classify(mirror.Failure()); v == remote.Forbidden || v == remote.Unauthorized {
			poke(r.doubts)
		}
		asked, synced := mirror.Get()
		switch {
		case !synced:
		case asked == nil:
			poke(r.doubts)
		default:
			r.hear(asked)
		}
	}
}

// hear takes over what the hub asks.
func (r *runner) hear(asked *clusterv1beta1.InternalMemberCluster) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.depart(r.asked.Spec, asked.Spec)
	r.asked = asked
	if r.left && asked.Spec.State != clusterv1beta1.ClusterStateLeave {
		r.left = false
		r.standing.enter(Joined, "the hub asks this cluster to join again; sending the first beat")
	}
	replace(r.asks, asked)
	replace(r.moves, asked)
	r.tell()
}

// leave is what the hub's acceptance of a report that says so brings about.
func (r *runner) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked.Spec.State != clusterv1beta1.ClusterStateLeave {
		return
	}
	r.left = true
	r.standing.enter(Left, r.goodbye())
	r.tell()
	if r.gone != nil {
		r.gone()
	}
}

func (r *runner) goodbye() string {
	return fmt.Sprintf("this cluster has left the fleet, as the hub at %s asked %s to; waiting for the hub to remove its traces, or to ask it to join again",
		r.session.Server(), r.session.Credential.Record())
}

// tell passes the period on if it changed. The lock is held.
func (r *runner) tell() {
	if p := r.period(); p != r.pace {
		r.pace = p
		replace(r.periods, p)
	}
}

// period is how often the hub wants a beat; 0 if it wants none any more.
func (r *runner) period() time.Duration {
	if r.left {
		return 0
	}
	return r.asked.HeartbeatPeriod()
}
