package agent

import (
	"fmt"
	"time"

	"github.com/muster-fleet/muster/internal/hublogin"
)

// The life cycle of an agent of a MemberCluster. It begins with a user's token, in a user's Secret.
// The agent first tries the credential from the hub; while it works, the user's token does not
// matter.
//	 Starting ──► Waiting for the Secret ◄──── deleted
//	                │ appears, changes ◄────── in every state, at once
//	                ▼
//	 Unreachable ◄► Trying ── refused, or no such member yet ──► Waiting, and tried again
//	                │ accepted                                      ▲
//	                ▼                                               │ refused while running
//	             Joined ◄──► Standby   ──► Left, if the hub asked ──┘
//
// BadInput means an unusable Secret, until it changes.

// decideMembership is total: every observation has an answer.
func decideMembership(o observed, now time.Time) decision {
	usable := o.credential.version != "" && o.credential.problem == ""
	switch same := o.trial.version == o.credential.version; {
	case o.trial.result == accepted && (same || !usable || o.exchanged):
		// The agent does not drop a working token for an unusable one.
		return decision{State: Joined, Do: work, Reason: "the hub accepts the token of " + o.record + "; sending the first heartbeat"}
	case !o.synced && o.failure != "":
		return decision{State: Starting, Reason: fmt.Sprintf("reading secret %s of this cluster: %s", o.source, o.failure)}
	case !o.synced:
		return decision{State: Starting, Reason: fmt.Sprintf("reading secret %s of this cluster", o.source)}
	case o.credential.version == "" && o.kubeconfig:
		return decision{State: Waiting, Reason: fmt.Sprintf("there is no secret %s on this cluster: create it with a kubeconfig of the hub "+
			"for %s in its key %s; it is used at once%s", o.source, o.record, hublogin.Key, o.unused)}
	case o.credential.version == "":
		return decision{State: Waiting, Reason: fmt.Sprintf("there is no secret %s on this cluster: create it with the hub's token for %s "+
			"in its key token; it is used at once%s", o.source, o.record, o.unused)}
	case !usable:
		return decision{State: BadInput, Reason: fmt.Sprintf("secret %s: %s", o.source, o.credential.problem)}
	case o.kubeconfig && (!same || o.trial.result == ""):
		return decision{State: Trying, Do: try, Reason: fmt.Sprintf("trying the credential in secret %s for %s", o.source, o.record)}
	case !same || o.trial.result == "":
		return decision{State: Trying, Do: try, Reason: fmt.Sprintf("trying the token in secret %s for %s", o.source, o.record)}
	}
	d := decision{State: Waiting, Reason: o.trial.message}
	switch {
	case o.trial.result == unreachable:
		d.State = Unreachable
	case o.trial.left:
		d.State = Left
		d.Reason = "this cluster has left the fleet; to join again, apply a MemberCluster of the same name on the hub, " +
			"else remove the agent with helm uninstall member-agent"
		if o.trial.result != absent {
			d.Reason += " (" + o.trial.message + ")"
		}
	}
	return d.tryFrom(o.trial.retryAt, now)
}
