package bundle

import (
	"fmt"
	"time"

	"github.com/muster-fleet/muster/internal/deploy/release"
)

// The life cycle of one deployment. The BundleDeployment on the hub is desired, the release on the
// member is observed:
//
//	         BundleDeployment? ──no──► release of this member? ──no──► Gone (what is another's is left alone)
//	              │ yes                     │ yes
//	              │                    hub restored from an earlier state, or by muster restore? ──yes──► Kept
//	              │                    deleted, says the hub, and still after a pause? ──no──► Confirming
//	              │                         └─yes──► Removing ──► Gone
//	    paused, off schedule ──► Held
//	a field that is not known ──► Unsupported
//	 release elsewhere, other name ──► Moving (deploy, then remove elsewhere; one that goes on under another name is deployed)
//	  release as wanted? ──yes──► changed downstream and to be corrected? ──yes──► Correcting
//	              │ no                 └─no──► Watching
//	   dependencies missing ──► Waiting
//	  failed, time not come ──► Failed
//	              └──► Deploying

// State is the state of a deployment.
type State string

// The states.
const (
	// Gone: nothing is wanted and nothing of this member exists.
	Gone State = "Gone"
	// Confirming: the BundleDeployment is missing, and the hub must confirm its deletion twice.
	Confirming State = "Confirming"
	// Kept: the release is unknown to the hub, restored from an earlier state.
	Kept State = "Kept"
	// Removing: the release is being uninstalled.
	Removing State = "Removing"
	// Held: the hub pauses the deployment.
	Held State = "Held"
	// Unsupported: a field needs a feature missing in this agent.
	Unsupported State = "Unsupported"
	// Waiting: another deployment must be ready first.
	Waiting State = "Waiting"
	// Failed: the last attempt failed; the next one comes later.
	Failed State = "Failed"
	// Moving: the release has another namespace or name. The deployer deploys the new one, then
	// removes the old one.
	Moving State = "Moving"
	// Deploying: the release is being installed or upgraded.
	Deploying State = "Deploying"
	// Correcting: changes on the member are being reverted.
	Correcting State = "Correcting"
	// Watching: the release is as it should be; its objects are watched.
	Watching State = "Watching"
)

// failure is the failure of the last attempt; empty after a success.
type failure struct {
	// of is the attempted generation of the BundleDeployment. removing: the attempt was a removal.
	of       int64
	removing bool
	// reason is the reason of the condition.
	reason, message string
	retryAt         time.Time
}

// observed is the input of decide.
type observed struct {
	// wanted is false if there is no BundleDeployment or it is being deleted; known is true if there
	// was one since the deployer started.
	wanted, known bool
	generation    int64
	// held is the reason of a pause by the hub, unsupported names a field, waiting a deployment.
	held, unsupported, waiting string

	deploymentID   string
	syncGeneration int64
	// name and namespace identify the wanted release. adopts is set if a release of another name may
	// continue under this one: the name is a default, or the options take ownership.
	name, namespace string
	adopts          bool
	// applied and appliedSync come from the status. They count for releases without a deployment ID of
	// their own.
	applied     string
	appliedSync int64

	// found is false if there is no release.
	found   bool
	release release.Summary
	// others is the number of releases left over from moves; superseded is set if one of them was
	// moved from this one since.
	others     int
	superseded bool
	// inherited is set if an agent of this namespace deployed the release without a note of its
	// member. The hub decides then.
	inherited bool
	// lost is set if the hub deployed the release before its restore on another cluster; keepAt is the
	// time to report it as unknown.
	lost   bool
	keepAt time.Time
	// otherWorkspace is set if the release belongs to a Bundle of the same name in another workspace.
	otherWorkspace bool
	// member is the UID of this member's report.
	member string

	// modified is the number of changed and revertible objects, correct enables their correction, and
	// correctAt is the earliest time. Another client may set the objects to other values each time.
	modified  int
	correct   bool
	correctAt time.Time

	failure failure
	// crashed is set if the failure is a crash of the process. The deployment is not even observed
	// then.
	crashed bool
	// confirmation holds the hub's answers about a missing BundleDeployment.
	confirmation confirmation
}

// decision is a state, its reason in a sentence, and the time of the next decision without an
// event.
type decision struct {
	State  State
	Reason string
	Wake   time.Time
}

// decide is total: it has an answer for every observation.
func decide(o observed, now time.Time) decision {
	failed := o.failure.message != "" && o.failure.removing == !o.wanted && (o.failure.of == o.generation || !o.wanted)
	resting := failed && now.Before(o.failure.retryAt)
	switch {
	case !o.wanted && (!o.found || !o.ours() && !o.lost):
		return decision{State: Gone}
	case !o.wanted && resting:
		return decision{State: Failed, Reason: o.failure.message, Wake: o.failure.retryAt}
	case !o.wanted && o.confirmation.restored:
		return decision{State: Kept, Reason: "the hub was restored from an earlier state, which does not know its BundleDeployment"}
	case !o.wanted && !o.ours() && now.Before(o.keepAt):
		return decision{State: Confirming, Reason: "the hub was restored, and may still write its BundleDeployment", Wake: o.keepAt}
	case !o.wanted && !o.ours():
		return decision{State: Kept, Reason: "a lost hub deployed it, and the restored hub does not know its BundleDeployment"}
	case !o.wanted && now.Before(o.confirmation.askAt):
		return decision{State: Confirming, Reason: reasonConfirming, Wake: o.confirmation.askAt}
	case !o.wanted && (o.confirmation.removeAt.IsZero() || now.Before(o.confirmation.removeAt)):
		return decision{State: Confirming, Reason: reasonConfirming}
	case !o.wanted:
		return decision{State: Removing, Reason: "its BundleDeployment was deleted"}
	case o.crashed && resting:
		return decision{State: Failed, Reason: o.failure.message, Wake: o.failure.retryAt}
	case o.held != "":
		return decision{State: Held, Reason: o.held}
	case o.unsupported != "":
		return decision{State: Unsupported, Reason: o.unsupported}
	case o.current() && o.others > 0 && resting:
		return decision{State: Failed, Reason: o.failure.message, Wake: o.failure.retryAt}
	case o.current() && o.others > 0:
		return decision{State: Moving, Reason: fmt.Sprintf("the release is %s/%s, and is removed where it was", o.namespace, o.name)}
	case o.current() && o.modified > 0 && o.correct && !resting && now.Before(o.correctAt):
		return decision{State: Watching, Wake: o.correctAt}
	case o.current() && o.modified > 0 && o.correct && !resting:
		return decision{State: Correcting, Reason: fmt.Sprintf("%d objects were changed downstream", o.modified)}
	case o.current():
		d := decision{State: Watching}
		if resting {
			d.Wake = o.failure.retryAt
		}
		return d
	case o.waiting != "":
		return decision{State: Waiting, Reason: o.waiting}
	case resting:
		return decision{State: Failed, Reason: o.failure.message, Wake: o.failure.retryAt}
	case o.found && o.misplaced() && !(o.adopts && o.release.Namespace == o.namespace):
		return decision{State: Moving, Reason: fmt.Sprintf("the release must be %s/%s", o.namespace, o.name)}
	default:
		return decision{State: Deploying, Reason: "installing or upgrading release " + o.namespace + "/" + o.name}
	}
}

// ours reports whether the release is removed without a BundleDeployment. Either a BundleDeployment
// existed since the deployer started, or the release was, or may have been, deployed for this
// member.
func (o observed) ours() bool {
	return o.known && !o.otherWorkspace || o.release.Member == o.member || o.inherited
}

func (o observed) misplaced() bool {
	return o.release.Name != o.name || o.release.Namespace != o.namespace
}

// moving reports whether a release from before a move is left.
func (o observed) moving() bool { return o.misplaced() || o.others > 0 }

// current reports whether the release matches the BundleDeployment.
func (o observed) current() bool {
	if !o.found || !o.release.Deployed || o.release.Renamed || o.misplaced() || o.superseded {
		return false
	}
	if o.release.DeploymentID == "" {
		return o.applied == o.deploymentID && o.appliedSync == o.syncGeneration
	}
	return o.release.DeploymentID == o.deploymentID && o.release.SyncGeneration == o.syncGeneration
}
