package agent

import (
	"context"
	"time"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/report"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/kubeclient"
)

// activity is a task under way.
type activity struct {
	do task
	// version is the version of the input at the start.
	version string
	cancel  context.CancelFunc
	ended   chan outcome
}

// is reports whether the activity is this task with this version.
func (y *activity) is(do task, version string) bool {
	return y != nil && y.do == do && y.version == version
}

// done returns the channel of the outcome; nil, and so never ready, without an activity.
func (y *activity) done() <-chan outcome {
	if y == nil {
		return nil
	}
	return y.ended
}

// outcome is the result of an activity.
type outcome struct {
	activity *activity
	result   result
	message  string
	// left is set if the hub had requested this cluster to leave; report is the last observed report.
	left   bool
	report *clusterv1beta1.InternalMemberCluster
	// fallbackAt is the time to try the other addresses of the hub; zero if there is none.
	fallbackAt time.Time
	// standby is the further address of a restored hub, with a token for it; nil if there is none.
	// since is the start of the loss of a running session; zero if the hub answered.
	standby *hubclient.Address
	since   time.Time
	// session is the accepted session; boughtWith is the version of the registration token for a new
	// one.
	session    *hubclient.Session
	boughtWith string
}

// version returns the version of the input of a task.
func (o observation) version(do task) string {
	switch do {
	case try:
		return o.credential.version
	case register, deleteToken:
		return o.joinVersion()
	case work, idle:
	}
	return ""
}

// act starts the decided tasks for the credential and the registration token, and stops all others.
func (a *Agent) act(ctx context.Context, d decision, o observation) {
	if d.Do == work {
		kubeclient.Notify(a.mode.credentialChanged)
	}
	// A continuing activity has set a more precise reason than the decision.
	goesOn, registers := a.current.is(d.Do, o.version(d.Do)), a.registering.is(d.Token, o.version(d.Token))
	if !goesOn {
		a.stop(&a.current)
	}
	if !registers {
		a.stop(&a.registering)
	}
	explains := registers
	if d.Do == work || d.Token == idle {
		explains = goesOn
	}
	if !explains {
		a.status.set(d.State, d.Reason)
	}
	switch {
	case d.Do == work && !registers:
		a.status.setNote(d.Registering)
	case d.Do != work:
		a.status.setNote("")
	}
	if !goesOn {
		a.begin(ctx, &a.current, d.Do, d.State, o)
	}
	if !registers {
		a.begin(ctx, &a.registering, d.Token, d.State, o)
	}
}

// begin starts a task as an activity, unless it is idle.
func (a *Agent) begin(ctx context.Context, to **activity, do task, state State, o observation) {
	if do == idle {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	begun := &activity{do: do, version: o.version(do), cancel: cancel, ended: make(chan outcome, 1)}
	*to = begun
	session, formerLeft, formerEnded, boughtWith := a.session, a.formerLeft, a.formerEnded, a.boughtWith
	go func() {
		var end outcome
		switch do {
		case try:
			end = a.try(ctx, o, state)
		case register:
			end = a.register(ctx, o)
		case deleteToken:
			end = a.deleteToken(ctx, session, o, boughtWith)
		case work, idle:
			end = newSession(a.environment, session, session.Report).run(ctx, formerLeft, formerEnded)
		}
		end.activity = begun
		begun.ended <- end
	}()
}

// stop ends an activity and waits for it. Only the report from its outcome still matters.
func (a *Agent) stop(y **activity) {
	if *y == nil {
		return
	}
	(*y).cancel()
	end := <-(*y).ended
	if end.session != nil && end.session != a.session {
		end.session.Close()
	}
	if end.report != nil {
		a.report = end.report
	}
	*y = nil
}

// handle processes the outcome of an activity after it ended by itself.
func (a *Agent) handle(ctx context.Context, o outcome) {
	o.activity.cancel()
	tried := attempt{version: o.activity.version, result: o.result, message: o.message, left: o.left, standby: o.standby}
	switch {
	case !o.since.IsZero():
		a.unreachableSince = o.since
	case o.result != unreachable:
		a.unreachableSince = time.Time{}
	case a.unreachableSince.IsZero() && o.activity.do == try:
		a.unreachableSince = a.clock.Now()
	}
	switch o.result {
	case accepted:
		a.resetBackoff()
	case unreachable:
		tried.retryAt = kube.Earlier(a.clock.Now().Add(a.unreachableBackoff.Step()), o.fallbackAt)
	case refused, expired:
		tried.retryAt = a.clock.Now().Add(a.refusedBackoff.Step())
	case absent:
		tried.retryAt = a.clock.Now().Add(a.absentBackoff.Step())
	case final:
	}
	switch o.activity.do {
	case register:
		a.join = tried
		if o.result == accepted {
			a.join, a.trial, a.boughtWith, a.formerJoinedWith = attempt{}, tried, o.boughtWith, a.joinedWith
			a.changeSession(ctx, o.session)
		}
	case try:
		tried.left = a.trial.left && o.result != accepted
		a.trial, a.boughtWith = tried, ""
		a.changeSession(ctx, o.session)
	case deleteToken:
		a.join = tried
		if o.result == refused || o.result == expired {
			a.join = attempt{}
			a.stop(&a.current)
			a.dropSession(tried)
		}
	case work, idle:
		a.dropSession(tried)
	}
	if o.result == refused || o.result == absent {
		a.leaving.Go(func() { a.resumeUninstall(ctx) })
	}
}

// dropSession closes the session after the hub has refused it.
func (a *Agent) dropSession(tried attempt) {
	tried.version = a.mode.credentialVersion(a.trial.version)
	a.session.Close()
	a.trial, a.session = tried, nil
}

// changeSession replaces the current session, or removes it. The agent leaves the previous
// membership if the new one differs.
func (a *Agent) changeSession(ctx context.Context, to *hubclient.Session) {
	a.stop(&a.current)
	from, last := a.session, a.report
	a.session, a.report = to, nil
	if to != nil {
		a.report, a.account = to.Report, to.Credential.Account()
	}
	departs := a.formerEnded != nil && !isClosed(a.formerEnded)
	switch {
	case from == nil:
	case to == nil, last == nil, last.UID == to.Report.UID, report.HasLeft(last),
		from.Credential.Workspace == "", revokedSince(from.Credential, to.Credential):
		from.Close()
	default:
		a.leaveFormer(ctx, from, last, to)
		departs = true
	}
	if to != nil && to.Credential.Former != nil && !departs {
		a.resumeLeaving(ctx, to)
	}
}

// revokedSince reports whether one membership continues another after a revocation. The same
// Cluster or MemberCluster has another member namespace then. Nothing watches the previous
// namespace any more, and delivered workloads stay.
func revokedSince(before, now hubclient.Credential) bool {
	return before.Server == now.Server && before.Record() == now.Record() && before.MemberNamespace != now.MemberNamespace
}
