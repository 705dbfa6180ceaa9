package registration

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
)

// The life of a request:
//
//	                 ┌──────────► Denied ───── an hour ──► (deleted)
//	(new) ── Waiting ┤                         by default
//	   │             └──────────► Conflict ─── an hour ──► (deleted)
//	   ├── Pending ─────────────► Granted or Denied, as somebody decides; seven days ──► (deleted)
//	   └───────────────────────► Granted ─── a newer one is granted, or the Cluster goes ──► (deleted)
//
// A state is computed from what is observed, never from the status written before; only Granted is remembered, and that a request was denied because the
// Cluster is revoked: what was asked before or during a revocation counts no more when that is taken back. A granted request becomes Denied so.

const (
	// maxClientID bounds the memory of an index; a UID has 36 characters.
	maxClientID = 4096
	// quietWait is how long preparing may take before that is worth a status write. When hundreds join at once it takes seconds.
	quietWait = 15 * time.Second
	// answerLife is how long an answer is kept for an agent that never beats.
	answerLife = time.Hour

	// quietTrouble is how long a token may be missing, or a failure last, before that is worth a status write.
	quietTrouble = 5 * time.Second
	// maxFailure bounds the message of a failure.
	maxFailure = 512
)

// Reasons of waits. Preparing is the hub's own doing.
const (
	reasonPreparing      = "Preparing"
	reasonTokenNotIssued = "TokenNotIssued"
	reasonFailed         = "Failed"
	// reasonKeyProved: the request needs no token, which the status records before anything is done.
	reasonKeyProved = "KeyProved"
)

// action is what to do besides the report.
type action string

const (
	nothing       action = ""
	createCluster action = "CreateCluster"
	grant         action = "Grant"
	remove        action = "Remove"
)

// tokenState is the state of the token that a request was made with.
type tokenState string

const (
	// tokenUnnamed: the request does not say; upstream agents before 0.16 do not.
	tokenUnnamed tokenState = "Unnamed"
	tokenValid   tokenState = "Valid"
	tokenMissing tokenState = "Missing"
	tokenExpired tokenState = "Expired"
)

// clusterView is what a decision needs of a Cluster.
type clusterView struct {
	name     string
	deleting bool
	// prepared: the hub has set status.namespace, or would after the grant.
	prepared bool
	// revoked: no agent may have the Cluster.
	revoked bool
	// namespace is the state of the member namespace, memberNamespace its name.
	namespace       membernamespace.NamespaceState
	memberNamespace string
	// taken says why a namespace of somebody else cannot be used; "" if that is not known.
	taken  string
	holder holder
	// reconnect: its agent may come back without a token, by its key.
	reconnect bool
	// ownKey: the request is signed with the key that is pinned to the Cluster. replayed: that key
	// has signed a request of this time, or a later one, before.
	ownKey, replayed bool
}

// observed is all that a decision depends on.
type observed struct {
	workspace, name string
	created         time.Time
	// life is how long a request that is not granted is kept.
	life     time.Duration
	clientID string
	// native: the request has a key to seal the answer to.
	native bool
	// keyProblem and labelProblem are what is wrong with them; empty if nothing.
	keyProblem, labelProblem string
	// signatureProblem is what is wrong with the agent's key and the signature by it; empty if nothing, or if there is none.
	signatureProblem string
	// hubCAProblem is why the request is one for another hub; empty if it is not.
	hubCAProblem string
	tokenName    string
	token        tokenState
	// tokenProblem is what is wrong with the labels that the token is to stamp, or with its TTL; empty if nothing.
	tokenProblem string
	// expressionProblem is what is wrong with the token's expression; empty if nothing. expressionTrue: it approves the request, else expressionSays why
	// not.
	expressionProblem, expressionSays string
	expressionTrue                    bool
	// displacement is the hub's setting.
	displacement settings.Displacement
	// reconnecting: the request is made with the account by which agents come back whose credential has run out.
	reconnecting bool
	// limits are those of the token.
	limits tokenLimits
	// attribution says whether the token that the request names is the one that it was made with.
	attribution attribution
	// limitedTokens: the workspace has tokens with limits. It is known only of requests that are not attributed.
	limitedTokens bool
	// reason is that of the status before, approved what somebody says of the request, approvedFor the reason for which the hub has believed an
	// approval already.
	reason, approved, approvedFor string
	// cluster and message are those of the status before.
	cluster, message string
	// newer names a newer request for the same clientID.
	newer string
	// matches are the Clusters of the workspace with this clientID.
	matches []clusterView
	// newName is the name that a new Cluster would get; newNameTaken that a Cluster of another clientID has it.
	newName      string
	newNameTaken bool
}

// decision is what to do and to report.
type decision struct {
	state           fleet.RegistrationState
	reason, message string
	cluster         string
	action          action
	// quiet keeps a short wait out of the status.
	quiet bool
	// wake is when time alone changes the decision; zero if only an event can.
	wake time.Time
}

// end is when a request that is not granted is deleted.
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
	if report := o.created.Add(quietWait); d.reason == reasonPreparing && now.Before(report) {
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
		return decision{state: fleet.RegistrationWaiting, reason: "TokenInvalid", message: fmt.Sprintf(
			"ClusterRegistrationToken %s/%s cannot be used: %s; registration goes on when that is corrected", o.workspace, o.tokenName, o.tokenProblem)}
	case o.expressionProblem != "":
		return decision{state: fleet.RegistrationPending, reason: "TokenInvalid", message: fmt.Sprintf(
			"spec.approvalExpression of ClusterRegistrationToken %s/%s cannot be used: %s; registration goes on when that is corrected (kubectl -n %s edit clusterregistrationtoken %s)",
			o.workspace, o.tokenName, o.expressionProblem, o.workspace, o.tokenName)}
	case len(o.matches) > 1:
		return decision{state: fleet.RegistrationConflict, reason: "AmbiguousClientID", message: fmt.Sprintf(
			"Clusters %s have the same spec.clientID: change or delete all but one", strings.Join(names(o.matches), " and "))}
	case len(o.matches) == 1 && o.matches[0].revoked:
		return revoked(o.workspace, o.matches[0].name)
	case o.returns() && o.approvedFor != reasonKeyProved: // recorded first: once the account before is deleted, nothing tells that the key was the holder's
		return decision{state: fleet.RegistrationWaiting, reason: reasonKeyProved, cluster: o.matches[0].name, message: "the request is signed with the key of the Cluster, which it needs no token for"}
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
		return decision{state: fleet.RegistrationConflict, reason: "NameTaken", cluster: o.newName, message: fmt.Sprintf(
			"Cluster %s/%s exists with another spec.clientID (names are made from the first 100 characters of a client ID): use another client ID, or create a Cluster with this one under a name of your choice",
			o.workspace, o.newName)}
	case len(o.matches) == 0 && o.labelProblem != "":
		return denied("InvalidLabels", o.labelProblem+"; correct it in the values of the agent's chart")
	}
	if d, waits := o.unapproved(); waits {
		return d
	}
	if len(o.matches) == 1 {
		return evaluateMatch(o.matches[0])
	}
	return decision{state: fleet.RegistrationWaiting, reason: reasonPreparing, cluster: o.newName, action: createCluster,
		message: "the Cluster is being created"}
}

// returns says whether a request without a token that is good is granted all the same: it is signed with the key that is pinned to the Cluster.
func (o observed) returns() bool {
	return o.token != tokenValid && o.native && len(o.matches) == 1 && o.matches[0].reconnect &&
		(o.matches[0].holder == sameHolder || o.matches[0].ownKey && o.approvedFor == reasonKeyProved)
}

// refusal is the decision on a request that is wrong in itself.
func refusal(o observed) (decision, bool) {
	switch {
	case o.reason == membership.ReasonRevoked: // a request of before must not be granted when the revocation is taken back
		return decision{state: fleet.RegistrationDenied, reason: o.reason, cluster: o.cluster, message: o.message}, true
	case o.newer != "":
		return denied("Superseded", fmt.Sprintf("ClusterRegistration %s/%s of the same client ID is newer", o.workspace, o.newer)), true
	case o.approved == "false": // whatever becomes of the agent that had the Cluster
		return denied(fleet.ReasonNotApproved, "somebody who may approve requests has denied this one"), true
	case o.clientID == "":
		return denied("ClientIDMissing", "spec.clientID is empty: set clientID in the values of the agent's chart, or leave it to the agent, which then uses the UID of its kube-system namespace"), true
	case len(o.clientID) > maxClientID:
		return denied("ClientIDTooLong", fmt.Sprintf("spec.clientID has %d characters, at most %d are allowed", len(o.clientID), maxClientID)), true
	case o.keyProblem != "":
		return denied("InvalidAnswerKey", o.keyProblem), true
	case o.signatureProblem != "":
		return denied("InvalidSignature", o.signatureProblem+": only the agent that has the key can ask with it"), true
	case len(o.matches) == 1 && o.matches[0].replayed:
		return replayed(o.workspace, o.matches[0].name), true
	case o.hubCAProblem != "":
		return denied("OtherHub", o.hubCAProblem), true
	case o.returns():
		return decision{}, false
	case o.reconnecting:
		return denied("ReconnectRefused", "the credential of this cluster has run out, and it is not signed with the key of a Cluster with its client ID that lets its agent come back (spec.reconnect) and still has an identity: give the cluster a registration token"), true
	case o.token == tokenMissing:
		return denied("TokenNotFound", fmt.Sprintf("ClusterRegistrationToken %s/%s does not exist any more: create another one and give its values to the agent's chart", o.workspace, o.tokenName)), true
	case o.token == tokenExpired:
		return denied("TokenExpired", fmt.Sprintf("ClusterRegistrationToken %s/%s has expired: create another one and give its values to the agent's chart", o.workspace, o.tokenName)), true
	case o.token == tokenUnnamed && (o.native || o.unattributed()):
		return denied("TokenUnknown", fmt.Sprintf("the request names no ClusterRegistrationToken: set tokenName in the values of the agent's chart; kubectl -n %s get clusterregistrationtokens lists them", o.workspace)), true
	}
	return decision{}, false
}

func evaluateMatch(c clusterView) decision {
	waiting := func(reason, message string) decision {
		return decision{state: fleet.RegistrationWaiting, reason: reason, message: message, cluster: c.name}
	}
	switch {
	case c.deleting:
		return waiting("ClusterLeaving", "the Cluster with this client ID is being deleted; registration goes on when it is gone")
	case c.namespace == membernamespace.NamespaceTaken && c.taken != "":
		return waiting("NamespaceTaken", c.taken)
	case c.namespace == membernamespace.NamespaceTaken:
		return waiting("NamespaceTaken", fmt.Sprintf("namespace %s exists and was not made for Cluster %s: delete it, or delete the Cluster and create it under another name", c.memberNamespace, c.name))
	case c.namespace == membernamespace.NamespaceTerminating:
		return waiting("NamespaceTerminating", fmt.Sprintf("namespace %s is being deleted; registration goes on when it is gone", c.memberNamespace))
	case !c.prepared || c.namespace != membernamespace.NamespaceOurs:
		return waiting(reasonPreparing, fmt.Sprintf("member namespace %s is being created", c.memberNamespace))
	}
	return decision{state: fleet.RegistrationGranted, reason: "Granted", cluster: c.name, action: grant}
}

// awaitToken waits until Kubernetes has issued the token of a legacy agent's account.
func awaitToken(o observed, secret types.NamespacedName, since, now time.Time) decision {
	d := decision{state: fleet.RegistrationWaiting, reason: reasonTokenNotIssued, cluster: o.matches[0].name, wake: o.end(), message: fmt.Sprintf(
		"waiting for Kubernetes to fill in the token in Secret %s: that does the token controller of the hub cluster's kube-controller-manager; see that it runs (serviceaccount-token in --controllers, --service-account-private-key-file) and what it logs", secret)}
	if report := since.Add(quietTrouble); now.Before(report) {
		d.quiet, d.wake = true, report
	}
	return d
}

// awaitRemoval waits until no BundleDeployment deploys the agent before.
func awaitRemoval(o observed, deployment string) decision {
	return decision{state: fleet.RegistrationWaiting, reason: reasonPreparing, cluster: o.matches[0].name, wake: o.end(), message: fmt.Sprintf(
		"waiting for BundleDeployment %s of the agent before to be removed: this agent would deploy it and so replace itself", deployment)}
}

// failed reports an error. The request is reconciled again, with back-off.
func failed(d decision, created time.Time, err error, now time.Time) decision {
	message := kube.Clip(err.Error(), maxFailure)
	return decision{state: fleet.RegistrationWaiting, reason: reasonFailed, cluster: d.cluster, message: message + "; the hub tries again",
		quiet: now.Before(created.Add(quietTrouble))}
}

// revoked denies a request for a Cluster that is revoked.
func revoked(workspace, cluster string) decision {
	return decision{state: fleet.RegistrationDenied, reason: membership.ReasonRevoked, cluster: cluster, message: fmt.Sprintf(
		"Cluster %s/%s is revoked by its annotation %s: if that is to end, kubectl -n %s annotate cluster.fleet.cattle.io %s %s- and then let the cluster ask again, which takes a new request",
		workspace, cluster, clusterv1beta1.AnnotationRevoked, workspace, cluster, clusterv1beta1.AnnotationRevoked)}
}

func denied(reason, message string) decision {
	return decision{state: fleet.RegistrationDenied, reason: reason, message: message}
}

func names(clusters []clusterView) []string {
	out := make([]string, 0, len(clusters))
	for _, c := range clusters {
		out = append(out, c.name)
	}
	slices.Sort(out)
	return out
}
