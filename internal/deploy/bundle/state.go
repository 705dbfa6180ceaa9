package bundle

import (
	"fmt"
	"time"

	"github.com/muster-fleet/muster/internal/deploy/release"
)

// The life of one deployment, given the BundleDeployment on the hub, which is desired, and the release downstream, which is observed:
//
//	         BundleDeployment? ──no──► release of this member? ──no──► Gone (what is another's is left alone)
//	              │ yes                     │ yes
//	              │                    hub restored from an earlier state? ──yes──► Kept
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
	// Gone: nothing is wanted and nothing of this member's is there.
	Gone State = "Gone"
	// Confirming: the BundleDeployment is missing, and the hub has to confirm, twice, that it was deleted.
	Confirming State = "Confirming"
	// Kept: the hub was restored from an earlier state, which does not know the release.
	Kept State = "Kept"
	// Removing: the release is uninstalled.
	Removing State = "Removing"
	// Held: the hub pauses the deployment.
	Held State = "Held"
	// Unsupported: a field asks for what this agent cannot do.
	Unsupported State = "Unsupported"
	// Waiting: another deployment has to be there first.
	Waiting State = "Waiting"
	// Failed: the last attempt failed and is repeated later.
	Failed State = "Failed"
	// Moving: the release is somewhere else, or has another name. It is deployed where it has to be, and then removed there.
	Moving State = "Moving"
	// Deploying: the release is installed or upgraded.
	Deploying State = "Deploying"
	// Correcting: what was changed downstream is set back.
	Correcting State = "Correcting"
	// Watching: the release is as it should be; its objects are watched.
	Watching State = "Watching"
)

// failure is the last attempt, if it failed.
type failure struct {
	// of is the generation of the BundleDeployment that was tried.
	of int64
	// reason is for the condition.
	reason, message string
	retryAt         time.Time
}

// observed is the input of decide.
type observed struct {
	// wanted is false if there is no BundleDeployment or it is being deleted; known is true if there was one since the deployer started.
	wanted, known bool
	generation    int64
	// held says why the hub pauses the deployment, unsupported names a field, waiting a deployment.
	held, unsupported, waiting string

	deploymentID   string
	syncGeneration int64
	// name and namespace are where the release should be; adopts says that one of another name goes on as that, because nobody chose the name
	// or the options take ownership.
	name, namespace string
	adopts          bool
	// applied and appliedSync are what the status says was deployed; the status counts for releases that have no deployment ID themselves.
	applied     string
	appliedSync int64

	// found is false if there is no release.
	found   bool
	release release.Summary
	// others is how many releases there are elsewhere from which this one was moved, superseded whether one of them was moved from this one since.
	others     int
	superseded bool
	// inherited says that an agent of this namespace deployed the release without noting its member; the hub is asked.
	inherited bool
	// otherWorkspace says that the release is that of a Bundle of the same name in another workspace.
	otherWorkspace bool
	// member is the UID of this member's report.
	member string

	// modified is how many objects were changed downstream and can be set back, correct whether that is set back, and correctAt when at the earliest:
	// somebody else may set the objects to other values each time.
	modified  int
	correct   bool
	correctAt time.Time

	failure failure
	// crashed says that the failure is a crash of the process, so that the deployment is not even observed.
	crashed bool
	// confirmation is what the hub confirmed about a missing BundleDeployment.
	confirmation confirmation
}

// decision is the state, why in a sentence, and when time alone may change it.
type decision struct {
	State  State
	Reason string
	Wake   time.Time
}

// decide is total: it has an answer for everything that may be observed.
func decide(o observed, now time.Time) decision {
	failed := o.failure.message != "" && (o.failure.of == o.generation || !o.wanted)
	resting := failed && now.Before(o.failure.retryAt)
	switch {
	case !o.wanted && (!o.found || !o.ours()):
		return decision{State: Gone}
	case !o.wanted && resting:
		return decision{State: Failed, Reason: o.failure.message, Wake: o.failure.retryAt}
	case !o.wanted && o.confirmation.restored:
		return decision{State: Kept, Reason: "the hub was restored from an earlier state, which does not know its BundleDeployment"}
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
		return decision{State: Moving, Reason: fmt.Sprintf("the release has to be %s/%s", o.namespace, o.name)}
	default:
		return decision{State: Deploying, Reason: "installing or upgrading release " + o.namespace + "/" + o.name}
	}
}

// ours says whether the release is removed without a BundleDeployment: there was one since the deployer started, or the release was, or may have
// been, deployed for just this member.
func (o observed) ours() bool {
	return o.known && !o.otherWorkspace || o.release.Member == o.member || o.inherited
}

func (o observed) misplaced() bool {
	return o.release.Name != o.name || o.release.Namespace != o.namespace
}

// moving says whether there is a release elsewhere that goes.
func (o observed) moving() bool { return o.misplaced() || o.others > 0 }

// current says whether the release is what the BundleDeployment wants.
func (o observed) current() bool {
	if !o.found || !o.release.Deployed || o.release.Renamed || o.misplaced() || o.superseded {
		return false
	}
	if o.release.DeploymentID == "" {
		return o.applied == o.deploymentID && o.appliedSync == o.syncGeneration
	}
	return o.release.DeploymentID == o.deploymentID && o.release.SyncGeneration == o.syncGeneration
}
