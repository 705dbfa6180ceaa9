package agent

import (
	"context"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/report"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/kubeclient"
)

// activity is a task under way.
type activity struct {
	do task
	// version is that of what the task was begun with.
	version string
	cancel  context.CancelFunc
	ended   chan outcome
}

// is says whether the activity is this task with this version.
func (y *activity) is(do task, version string) bool {
	return y != nil && y.do == do && y.version == version
}

// done yields the outcome; never if nothing is under way.
func (y *activity) done() <-chan outcome {
	if y == nil {
		return nil
	}
	return y.ended
}

// outcome is how an activity ended.
type outcome struct {
	activity *activity
	result   result
	message  string
	// left says that the hub had asked this cluster to leave, report is the report as last observed.
	left   bool
	report *clusterv1beta1.InternalMemberCluster
	// session is the one that was accepted, boughtWith the version of the registration token that bought it, if it is new.
	session    *hubclient.Session
	boughtWith string
}

// version is that of what a task is done with.
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

// act makes what was decided about the credential and about the registration token the only activities.
func (a *Agent) act(ctx context.Context, d decision, o observation) {
	if d.Do == work {
		kubeclient.Notify(a.mode.credentialChanged)
	}
	// An activity that goes on has set a reason that says more than the decision's.
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

// begin starts a task, if there is one, as an activity.
func (a *Agent) begin(ctx context.Context, to **activity, do task, in State, o observation) {
	if do == idle {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	begun := &activity{do: do, version: o.version(do), cancel: cancel, ended: make(chan outcome, 1)}
	*to = begun
	session, formerLeft, boughtWith := a.session, a.formerLeft, a.boughtWith
	go func() {
		var end outcome
		switch do {
		case try:
			end = a.try(ctx, o, in)
		case register:
			end = a.register(ctx, o)
		case deleteToken:
			end = a.deleteToken(ctx, session, o, boughtWith)
		case work, idle:
			end = newSession(a.environment, session, session.Report).run(ctx, formerLeft)
		}
		end.activity = begun
		begun.ended <- end
	}()
}

// stop ends an activity and waits for it. Its outcome no longer matters, but for the report that it saw.
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

// handle draws the consequences of an activity that ended by itself.
func (a *Agent) handle(ctx context.Context, o outcome) {
	o.activity.cancel()
	tried := attempt{version: o.activity.version, result: o.result, message: o.message, left: o.left}
	switch o.result {
	case accepted:
		a.resetBackoff()
	case unreachable:
		tried.retryAt = a.clock.Now().Add(a.unreachableBackoff.Step())
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
}

// dropSession gives up the session, which the hub refuses.
func (a *Agent) dropSession(tried attempt) {
	tried.version = a.mode.credentialVersion(a.trial.version)
	a.session.Close()
	a.trial, a.session = tried, nil
}

// changeSession puts a session, or none, in the place of the one so far. The membership so far is left if the new one is another.
func (a *Agent) changeSession(ctx context.Context, to *hubclient.Session) {
	a.stop(&a.current)
	from, last := a.session, a.report
	a.session, a.report = to, nil
	if to != nil {
		a.report, a.account = to.Report, to.Credential.Account()
	}
	switch {
	case from == nil:
	case to == nil, last == nil, last.UID == to.Report.UID, report.HasLeft(last), from.Credential.Workspace == "", revokedSince(from.Credential, to.Credential):
		from.Close()
	default:
		a.leaveFormer(ctx, from, last, to)
	}
}

// revokedSince says whether one membership is that of another after it was revoked: the same record has another member namespace then. Nobody listens in
// the one before, and what was delivered there goes on.
func revokedSince(before, now hubclient.Credential) bool {
	return before.Server == now.Server && before.Record() == now.Record() && before.MemberNamespace != now.MemberNamespace
}
