package agent

import (
	"context"
	"fmt"

	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hubclient"
)

// An agent of a MemberCluster can be disconnected for longer than the life of its credential. It
// then rejoins by its key. The hub keeps a working credential in the report, sealed to this key.
// The agent reads the report with a token from the hub for this purpose only:
//	refused ──► report read with that token ──► opened by the key ──► tried ──► stored ──► Joined
//	                   │ refused                     │ nothing there, or not for this agent
//	                   ▼                             ▼
//	               the token of the user, or Waiting with what the hub said

// comeBack reads the credential issued meanwhile by the hub to the key of this agent. An outcome
// other than accepted has the reason why the agent cannot rejoin.
func (a *Agent) comeBack(ctx context.Context, o observation, state State) outcome {
	not := func(why string) outcome {
		return outcome{result: refused, message: "this cluster cannot rejoin with its key: " + why}
	}
	key, err := a.member.AgentKey(ctx)
	if err != nil {
		return not(err.Error())
	}
	reader, why := a.readWith(ctx, o, o.stored)
	if reader == nil {
		return not(why)
	}
	defer reader.Close()
	issued, before := reader.Report.Spec.Credential, o.stored
	before.Server, before.CA, before.Mode = reader.Credential.Server, reader.Credential.CA, reader.Credential.Mode
	switch {
	case issued == nil || len(issued.Sealed) == 0 || issued.AccountUID != before.Account():
		return not("the hub has issued no credential to it yet; the agent retries")
	case before.Sequence < issued.After:
		return not(fmt.Sprintf("it has credential %d, and credential %d was in use after that: the cluster was copied, or restored from a backup",
			before.Sequence, issued.After))
	case issued.Sequence <= before.Sequence:
		return not(fmt.Sprintf("the hub has issued no credential after %d yet; the agent retries", before.Sequence))
	}
	next, err := a.mode.open(key, issued, before)
	if err != nil {
		return not(err.Error())
	}
	back := a.tryAt(ctx, o, next, state)
	if back.result != accepted {
		return back
	}
	// The agent observes the stored credential at once and tries it, and so cancels this try.
	if err := a.mode.storeCredential(context.WithoutCancel(ctx), next); err != nil {
		back.session.Close()
		return not(err.Error())
	}
	a.log.Info("Returned with the key of this cluster", "sequence", next.Sequence, "expires", credential.ClaimsOf(next.Token).Expires)
	return back
}

// readWith reads the report with the reconnect token at the address of the credential. If the hub
// does not answer there, it tries the user's address. Without a session it returns a reason.
func (a *Agent) readWith(ctx context.Context, o observation, c hubclient.Credential) (*hubclient.Session, string) {
	c.Token = c.Reconnect
	session, err := hubclient.NewSession(c, a.mode.trust(o, c), a.clock)
	if err != nil {
		return nil, err.Error()
	}
	err = session.Ask(ctx)
	if err == nil {
		return session, ""
	}
	defer session.Close()
	switch {
	case hubclient.Classify(err).Refuses():
		return nil, fmt.Sprintf("the hub refuses, because the member was revoked or deleted, has another key or identity, or was away for too "+
			"long (%s)", session.Explain(err))
	case o.fallback == nil || c.Server == o.fallback.Server || ctx.Err() != nil:
		return nil, session.Explain(err)
	}
	c.Server, c.CA, c.Mode = o.fallback.Server, o.fallback.CA, o.fallback.Mode
	return a.readWith(ctx, o, c)
}
