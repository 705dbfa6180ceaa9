package registration

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
)

// The states of a request:
//
//	                 ┌──────────► Denied ───── an hour ──► (deleted)
//	(new) ── Waiting ┤                         by default
//	   │             └──────────► Conflict ─── an hour ──► (deleted)
//	   ├── Pending ─────────────► Granted or Denied, as a user decides; seven days ──► (deleted)
//	   └───────────────────────► Granted ─── a newer one is granted, or the Cluster goes ──► (deleted)
//
// The hub computes a state from the observation. It reads only three facts from the previous
// status. These are a grant, a denial because the Cluster is revoked, and the reason of a request
// for approval with the approvals accepted. A request from before or during a revocation does not
// count any more after the restoration of access. Even a granted request becomes Denied in this
// way.

const (
	// maxClientID bounds the memory of an index; a UID has 36 characters.
	maxClientID = 4096
	// quietWait is the longest preparation of a Cluster that stays out of the status. When hundreds of
	// clusters join at once, a preparation takes seconds.
	quietWait = 15 * time.Second
	// answerLife is the life of an answer without a heartbeat of its agent.
	answerLife = time.Hour

	// quietTrouble is how long a missing token, or a failure, stays out of the status.
	quietTrouble = 5 * time.Second
	// maxFailure bounds the message of a failure.
	maxFailure = 512
)

// action is the next step besides the status.
type action string

const (
	nothing       action = ""
	createCluster action = "CreateCluster"
	grant         action = "Grant"
	remove        action = "Remove"
)

// tokenState is the state of the request's token.
type tokenState string

const (
	// tokenUnnamed: the request names none; upstream agents before 0.16 do not.
	tokenUnnamed tokenState = "Unnamed"
	tokenValid   tokenState = "Valid"
	tokenMissing tokenState = "Missing"
	tokenExpired tokenState = "Expired"
)

// clusterView holds the inputs of a decision about a Cluster.
type clusterView struct {
	name     string
	deleting bool
	// prepared: the hub has set status.namespace, or would after the grant. For a native agent the hub
	// has at least created the member namespace for this Cluster, and the status follows in a moment.
	prepared bool
	// revoked: no agent may have the Cluster.
	revoked bool
	// namespace is the state of the member namespace, memberNamespace its name.
	namespace       membernamespace.NamespaceState
	memberNamespace string
	// taken gives the cause why the hub cannot use a foreign namespace; "" if unknown.
	taken  string
	holder holder
	// reconnect: its agent may rejoin without a token, by its key.
	reconnect bool
	// ownKey: the request is signed with the key pinned to the Cluster. replayed: the key has signed a
	// request of the same time, or a later one, before.
	ownKey, replayed bool
}

// observed holds the inputs of a decision.
type observed struct {
	workspace, name string
	created         time.Time
	// life is the life of a request without a grant.
	life     time.Duration
	clientID string
	// native: the request has a key to seal the answer to.
	native bool
	// keyProblem is the fault in the answer key, labelProblem the fault in the labels; empty if there
	// is none.
	keyProblem, labelProblem string
	// signatureProblem is the fault in the agent's key or its signature; empty if there is no fault or
	// no key.
	signatureProblem string
	// hubCAProblem is a message about a request for another hub; empty if it is for this one.
	hubCAProblem string
	// quarantined is the name of another, quarantined Cluster with the key of the request; empty if
	// there is none.
	quarantined string
	tokenName   string
	token       tokenState
	// tokenProblem is the fault in the token's labels to stamp, or in its TTL; empty if there is none.
	tokenProblem string
	// expressionProblem is the fault in the token's expression; empty if there is none.
	// expressionTrue: the expression approves the request; else expressionSays gives the cause.
	expressionProblem, expressionSays string
	expressionTrue                    bool
	// displacement is the hub's setting.
	displacement settings.Displacement
	// reconnecting: the request is from the account for agents with an expired credential, or from the
	// standby: the account for agents of the lost hub.
	reconnecting, standby bool
	// limits are the limits of the token.
	limits tokenLimits
	// attribution reports whether the token named in the request is its real one.
	attribution attribution
	// limitedTokens: the workspace has tokens with limits. The value is known only for requests
	// without attribution.
	limitedTokens bool
	// reason is the reason in the previous status, approved the annotation on the request. approvedFor
	// is the reason of an already accepted approval.
	reason, approved, approvedFor string
	// approvalReason is the approver's reason, in brackets.
	approvalReason string
	// cluster and message are from the previous status.
	cluster, message string
	// newer names a newer request for the same clientID.
	newer string
	// matches are the Clusters of the workspace with this clientID.
	matches []clusterView
	// newName is the name for a new Cluster. newNameTaken: a Cluster of another clientID has this
	// name.
	newName      string
	newNameTaken bool
}

// decision is the next step and the status.
type decision struct {
	state           fleet.RegistrationState
	reason, message string
	cluster         string
	action          action
	// quiet keeps a short wait out of the status.
	quiet bool
	// wake is the time when the decision changes without an event; zero if only an event changes it.
	wake time.Time
}

// end returns the time to delete a request without a grant.
func (o observed) end() time.Time { return o.created.Add(o.life) }

func decide(o observed, now time.Time) decision {
	d, end := evaluate(o), o.end()
	if d.state == fleet.RegistrationPending {
		end = o.created.Add(max(o.life, approvalLife))
	}
	if !now.Before(end) {
		return decision{action: remove}
	}
	if d.state == fleet.RegistrationGranted {
		return d
	}
	d.wake = end
	if again := o.attribution.recheck; o.limitedTokens && !again.IsZero() && again.Before(end) {
		d.wake = again
	}
	if report := o.created.Add(quietWait); d.reason == reasons.Preparing && now.Before(report) {
		d.quiet, d.wake = true, report
	}
	return d
}

// evaluate decides without regard to the clock.
func evaluate(o observed) decision {
	if d, bad := refusal(o); bad {
		return d
	}
	switch {
	case o.tokenProblem != "":
		return decision{state: fleet.RegistrationWaiting, reason: reasons.TokenInvalid, message: fmt.Sprintf(
			"ClusterRegistrationToken %s/%s cannot be used: %s; registration continues when that is corrected",
			o.workspace, o.tokenName, o.tokenProblem)}
	case o.expressionProblem != "":
		return decision{state: fleet.RegistrationPending, reason: reasons.TokenInvalid, message: fmt.Sprintf(
			"spec.approvalExpression of ClusterRegistrationToken %s/%s cannot be used: %s; registration continues when that is corrected (kubectl "+
				"-n %s edit clusterregistrationtoken %s)",
			o.workspace, o.tokenName, o.expressionProblem, o.workspace, o.tokenName)}
	case len(o.matches) > 1:
		return decision{state: fleet.RegistrationConflict, reason: reasons.AmbiguousClientID, message: fmt.Sprintf(
			"Clusters %s have the same spec.clientID: change or delete all but one", strings.Join(names(o.matches), " and "))}
	case len(o.matches) == 1 && o.matches[0].revoked:
		return revoked(o.workspace, o.matches[0].name)
	case o.returns() && o.approvedFor != reasons.KeyProved:
		// stored first: after the deletion of the previous account, nothing else proves that the key was
		// the holder's
		return decision{
			state: fleet.RegistrationWaiting, reason: reasons.KeyProved, cluster: o.matches[0].name,
			message: "the request is signed with the key of the Cluster, and needs no token",
		}
	case o.returns():
		return evaluateMatch(o.matches[0])
	}
	cluster := o.newName
	if len(o.matches) == 1 {
		cluster = o.matches[0].name
	}
	if d, bad := o.exceeds(cluster); bad {
		return d
	}
	switch {
	case len(o.matches) == 0 && o.newNameTaken:
		return decision{state: fleet.RegistrationConflict, reason: reasons.NameTaken, cluster: o.newName, message: fmt.Sprintf(
			"Cluster %s/%s exists with another spec.clientID (names are made from the first 100 characters of a client ID): use another client ID, "+
				"or create a Cluster with this one under a name of your choice",
			o.workspace, o.newName)}
	case len(o.matches) == 0 && o.labelProblem != "":
		return denied(reasons.InvalidLabels, o.labelProblem+"; correct it in the values of the agent's chart")
	}
	if d, waits := o.unapproved(); waits {
		return d
	}
	if len(o.matches) == 1 {
		return evaluateMatch(o.matches[0])
	}
	return decision{state: fleet.RegistrationWaiting, reason: reasons.Preparing, cluster: o.newName, action: createCluster,
		message: "the Cluster is being created"}
}

// returns reports whether a request without a valid token is granted all the same, because it is
// signed with the key pinned to the Cluster. A restored Cluster has no identity before the first
// return of its agent.
func (o observed) returns() bool {
	return o.token != tokenValid && o.native && len(o.matches) == 1 && o.matches[0].reconnect &&
		(o.matches[0].holder == sameHolder || o.matches[0].ownKey && (o.standby || o.approvedFor == reasons.KeyProved))
}

// refusal returns the decision on a faulty request.
func refusal(o observed) (decision, bool) {
	switch {
	case o.reason == reasons.Revoked: // an earlier request must not be granted after the restoration of access
		return decision{state: fleet.RegistrationDenied, reason: o.reason, cluster: o.cluster, message: o.message}, true
	case o.newer != "":
		return denied(reasons.Superseded, fmt.Sprintf("ClusterRegistration %s/%s of the same client ID is newer", o.workspace, o.newer)), true
	case o.isDenied(): // regardless of the Cluster's agent
		return denied(fleet.ReasonNotApproved, "an approver has denied this request"+o.approvalReason), true
	case o.clientID == "":
		return denied(reasons.ClientIDMissing, "spec.clientID is empty: set clientID in the values of the agent's chart, or leave it to the "+
			"agent, which then uses the UID of its kube-system namespace"), true
	case len(o.clientID) > maxClientID:
		return denied(reasons.ClientIDTooLong,
			fmt.Sprintf("spec.clientID has %d characters, at most %d are allowed", len(o.clientID), maxClientID)), true
	case o.keyProblem != "":
		return denied(reasons.InvalidAnswerKey, o.keyProblem), true
	case o.signatureProblem != "":
		return denied(reasons.InvalidSignature, o.signatureProblem+": only the agent with the private key can send it"), true
	case o.quarantined != "":
		return denied(reasons.Quarantined, fmt.Sprintf("the request has the key of Cluster %s/%s, which is quarantined: its agent cannot "+
			"register as another Cluster before an administrator ends the quarantine", o.workspace, o.quarantined)), true
	case len(o.matches) == 1 && o.matches[0].replayed:
		return replayed(o.workspace, o.matches[0].name), true
	case o.hubCAProblem != "":
		return denied(reasons.OtherHub, o.hubCAProblem), true
	case o.returns():
		return decision{}, false
	case o.standby:
		return denied(reasons.ReconnectRefused, "a token of the standby brings back only a Cluster of the restored hub, with its own key: "+
			"give the cluster a registration token"), true
	case o.reconnecting:
		return denied(reasons.ReconnectRefused, "the credential of this cluster has expired, and its key is not the key of a Cluster with this "+
				"client ID, an identity and spec.reconnect: give the cluster a registration token"),
			true
	case o.token == tokenMissing:
		return denied(reasons.TokenNotFound, fmt.Sprintf("ClusterRegistrationToken %s/%s does not exist any more: create another one and give "+
			"its values to the agent's chart", o.workspace, o.tokenName)), true
	case o.token == tokenExpired:
		return denied(reasons.TokenExpired, fmt.Sprintf("ClusterRegistrationToken %s/%s has expired: create another one and give its values to "+
			"the agent's chart", o.workspace, o.tokenName)), true
	case o.token == tokenUnnamed && (o.native || o.unattributed()):
		return denied(reasons.TokenUnknown, fmt.Sprintf("the request names no ClusterRegistrationToken: set tokenName in the values of the "+
			"agent's chart; kubectl -n %s get clusterregistrationtokens lists them", o.workspace)), true
	}
	return decision{}, false
}

func evaluateMatch(c clusterView) decision {
	waiting := func(reason, message string) decision {
		return decision{state: fleet.RegistrationWaiting, reason: reason, message: message, cluster: c.name}
	}
	switch {
	case c.deleting:
		return waiting(reasons.ClusterLeaving, "the Cluster with this client ID is being deleted; registration continues when it is gone")
	case c.namespace == membernamespace.NamespaceAbsent && membernamespace.NameProblem(c.name, c.memberNamespace) != "":
		return decision{state: fleet.RegistrationConflict, reason: reasons.InvalidName, cluster: c.name,
			message: membernamespace.NameProblem(c.name, c.memberNamespace) + ", with the same spec.clientID"}
	case c.namespace == membernamespace.NamespaceTaken && c.taken != "":
		return waiting(reasons.NamespaceTaken, c.taken)
	case c.namespace == membernamespace.NamespaceTaken:
		return waiting(reasons.NamespaceTaken, fmt.Sprintf("namespace %s exists and was not created for Cluster %s: delete it, or delete the "+
			"Cluster and create it under another name", c.memberNamespace, c.name))
	case c.namespace == membernamespace.NamespaceTerminating:
		return waiting(reasons.NamespaceTerminating,
			fmt.Sprintf("namespace %s is being deleted; registration continues when it is gone", c.memberNamespace))
	case !c.prepared || c.namespace != membernamespace.NamespaceOurs:
		return waiting(reasons.Preparing, fmt.Sprintf("member namespace %s is being created", c.memberNamespace))
	}
	return decision{state: fleet.RegistrationGranted, reason: reasons.Granted, cluster: c.name, action: grant}
}

// awaitToken waits until Kubernetes has issued the token of a legacy agent's account.
func awaitToken(o observed, secret types.NamespacedName, since, now time.Time) decision {
	d := decision{state: fleet.RegistrationWaiting, reason: reasons.TokenNotIssued, cluster: o.matches[0].name,
		wake: o.end(), message: fmt.Sprintf(
			"waiting for Kubernetes to issue the token in Secret %s. The token controller of the hub cluster's kube-controller-manager issues it: "+
				"check that it runs (serviceaccount-token in --controllers, --service-account-private-key-file), and read its log", secret)}
	if report := since.Add(quietTrouble); now.Before(report) {
		d.quiet, d.wake = true, report
	}
	return d
}

// awaitRemoval waits until no BundleDeployment deploys the previous agent.
func awaitRemoval(o observed, deployment string) decision {
	return decision{state: fleet.RegistrationWaiting, reason: reasons.Preparing, cluster: o.matches[0].name,
		wake: o.end(), message: fmt.Sprintf(
			"waiting for BundleDeployment %s of the previous agent to be removed: this agent would deploy it, and replace itself", deployment)}
}

// failed returns the decision after an error. The request is reconciled again, with back-off.
func failed(d decision, created time.Time, err error, now time.Time) decision {
	message := kube.Clip(err.Error(), maxFailure)
	return decision{state: fleet.RegistrationWaiting, reason: reasons.Failed, cluster: d.cluster, message: message + "; the hub tries again",
		quiet: now.Before(created.Add(quietTrouble))}
}
