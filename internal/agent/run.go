package agent

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/client"
	"github.com/muster-fleet/muster/internal/agent/heartbeat"
	"github.com/muster-fleet/muster/internal/agent/identity"
	"github.com/muster-fleet/muster/internal/agent/remote"
	"github.com/muster-fleet/muster/internal/agent/report"
	"github.com/muster-fleet/muster/internal/version"
)

// runner is a joined agent at work.
type runner struct {
	*Agent
	session *remote.Session
	// token is the version of the registration token that bought the session, if it is new.
	token string
	// held is the credential in use; it changes with each renewal.
	held atomic.Pointer[identity.Credential]
	// doubts asks for a judgement of the credential.
	doubts  chan struct{}
	checks  chan struct{}
	periods chan time.Duration
	asks    chan *clusterv1beta1.InternalMemberCluster
}

// work goes on until the hub refuses the credential or ctx ends.
func (a *Agent) work(ctx context.Context, session *remote.Session, token string) outcome {
	r := &runner{
		Agent: a, session: session, token: token,
		doubts: make(chan struct{}, 1), checks: make(chan struct{}, 1),
		periods: make(chan time.Duration), asks: make(chan *clusterv1beta1.InternalMemberCluster),
	}
	r.use(session.Credential)
	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	for _, part := range []func(context.Context){
		r.heartbeat().Run, r.reporter().Run, r.renewer().Run, r.listen, r.tidy,
	} {
		working.Go(func() { part(ctx) })
	}
	message := r.untilRefused(ctx)
	cancel()
	working.Wait()
	return outcome{verdict: refused, message: message}
}

// untilRefused judges every doubt and returns when the hub persists in refusing.
func (r *runner) untilRefused(ctx context.Context) string {
	for {
		select {
		case <-ctx.Done():
			return ""
		case <-r.doubts:
		}
		held, verdict, err := r.prove(ctx)
		switch verdict {
		case remote.Unauthorized, remote.Forbidden, remote.NotFound:
			return refusal(held, err)
		case remote.Accepted, remote.Unreachable, remote.Invalid:
		}
	}
}

// prove tries the credential in use on a copy of the session, which others read meanwhile.
func (r *runner) prove(ctx context.Context) (*remote.Session, remote.Verdict, error) {
	held := *r.session
	held.Credential = *r.held.Load()
	verdict, err := held.Prove(ctx, func(string) {})
	return &held, verdict, err
}

func (r *runner) heartbeat() *heartbeat.Heartbeat {
	joined := fmt.Sprintf("joined as %s at %s", r.session.Credential.Record(), r.session.Server())
	return &heartbeat.Heartbeat{
		Beat:   func(ctx context.Context, now time.Time) error { return r.session.Beat(ctx, r.hostname, now) },
		Period: period(r.session.Report), Periods: r.periods,
		Outcome: func(err error) {
			poke(r.checks)
			if err == nil {
				heartbeats.WithLabelValues("accepted").Inc()
				r.standing.beat(joined)
				return
			}
			heartbeats.WithLabelValues("failed").Inc()
			if v := remote.Classify(err); v == remote.Unauthorized || v == remote.Forbidden {
				poke(r.doubts)
			}
		},
		Explain: r.session.Explain, Clock: r.clock,
	}
}

func (r *runner) reporter() *report.Reporter {
	return &report.Reporter{
		Member: r.member, Write: r.session.Member.Report, Start: r.session.Report, Asks: r.asks, Check: r.checks,
		Explain: r.session.Explain, AgentVersion: version.Version, AgentNamespace: r.member.Namespace, Clock: r.clock,
	}
}

func (r *runner) renewer() *identity.Renewer {
	return &identity.Renewer{
		Credential: r.session.Credential,
		Request:    r.session.RequestToken,
		Store: func(ctx context.Context, credential identity.Credential) error {
			secret, err := credential.Secret(r.member.Namespace)
			if err != nil {
				return err
			}
			return r.member.Store(ctx, secret)
		},
		Use:     r.use,
		Explain: r.session.Explain, Now: r.session.Now, Clock: r.clock,
	}
}

func (r *runner) use(credential identity.Credential) {
	r.held.Store(&credential)
	r.session.SetToken(credential.Token)
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
	var following sync.WaitGroup
	following.Go(func() { client.FollowOne(ctx, mirror, r.session.Reports, r.session.Name) })
	defer following.Wait()
	current := period(r.session.Report)
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		asked, synced := mirror.Get()
		if !synced {
			continue
		}
		if asked == nil {
			poke(r.doubts)
			continue
		}
		select {
		case <-ctx.Done():
			return
		case r.asks <- asked:
		}
		if p := period(asked); p != current {
			current = p
			select {
			case <-ctx.Done():
				return
			case r.periods <- p:
			}
		}
	}
}

// period is how often the hub wants a beat.
func period(report *clusterv1beta1.InternalMemberCluster) time.Duration {
	const unset = 60
	seconds := report.Spec.HeartbeatPeriodSeconds
	if seconds <= 0 {
		seconds = unset
	}
	return time.Duration(seconds) * time.Second
}

// poke leaves a note that is read later; one is enough.
func poke(notes chan struct{}) {
	select {
	case notes <- struct{}{}:
	default:
	}
}
