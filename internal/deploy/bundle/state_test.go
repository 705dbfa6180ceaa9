package bundle

import (
	"testing"
	"time"

	"github.com/muster-fleet/muster/internal/deploy/release"
)

func TestDecision(t *testing.T) {
	now := time.Unix(1000, 0)
	later := now.Add(time.Minute)
	wanted := observed{wanted: true, generation: 1, deploymentID: "s-1:a", name: "web", namespace: "apps", member: "me"}
	there := release.Summary{Name: "web", Namespace: "apps", Deployed: true, DeploymentID: "s-1:a", Member: "me"}
	with := func(change func(*observed)) observed {
		o := wanted
		change(&o)
		return o
	}
	found := func(change func(*observed)) observed {
		return with(func(o *observed) {
			o.found, o.release = true, there
			change(o)
		})
	}
	for name, row := range map[string]struct {
		o    observed
		want State
		wake time.Time
	}{
		"nothing is wanted or there":                            {observed{member: "me"}, Gone, time.Time{}},
		"the hub is asked about a release without a deployment": {found(func(o *observed) { o.wanted = false }), Confirming, time.Time{}},
		"it stays until the hub is asked again": {found(func(o *observed) {
			o.wanted, o.confirmation = false, confirmation{askAt: later}
		}), Confirming, later},
		"it goes if the deletion was confirmed long enough ago": {found(func(o *observed) {
			o.wanted, o.confirmation = false, confirmation{askAt: now, removeAt: now}
		}), Removing, time.Time{}},
		"the hub is asked again if the pause became longer": {found(func(o *observed) {
			o.wanted, o.confirmation = false, confirmation{askAt: now, removeAt: later}
		}), Confirming, time.Time{}},
		"what a restored hub does not know stays": {found(func(o *observed) {
			o.wanted, o.confirmation = false, confirmation{askAt: now, removeAt: now, restored: true}
		}), Kept, time.Time{}},
		"one of a lost hub stays until the restored one has written its backup": {found(func(o *observed) {
			o.wanted, o.release.Member, o.lost, o.keepAt = false, "before", true, later
		}), Confirming, later},
		"and is reported as unknown after that": {found(func(o *observed) {
			o.wanted, o.release.Member, o.lost, o.keepAt = false, "before", true, now
		}), Kept, time.Time{}},
		"one of a lost hub goes with a deployment that was seen": {found(func(o *observed) {
			o.wanted, o.release.Member, o.lost, o.known, o.confirmation = false, "before", true, true, confirmation{askAt: now, removeAt: now}
		}), Removing, time.Time{}},
		"one of a lost hub is watched again":     {found(func(o *observed) { o.release.Member, o.lost = "before", true }), Watching, time.Time{}},
		"one of a lost hub that is gone is none": {observed{member: "me", lost: true}, Gone, time.Time{}},
		"one of another member stays":            {found(func(o *observed) { o.wanted, o.release.Member = false, "other" }), Gone, time.Time{}},
		"one of an upstream agent stays":         {found(func(o *observed) { o.wanted, o.release.Member = false, "" }), Gone, time.Time{}},
		"unless it may be this member's, which the hub is asked about": {found(func(o *observed) {
			o.wanted, o.release.Member, o.inherited = false, "", true
		}), Confirming, time.Time{}},
		"or its deployment was seen": {found(func(o *observed) {
			o.wanted, o.release.Member, o.known, o.confirmation = false, "", true, confirmation{askAt: now, removeAt: now}
		}), Removing, time.Time{}},
		"a removal that failed is repeated later": {found(func(o *observed) {
			o.wanted, o.generation, o.failure = false, 0, failure{removing: true, message: "no", retryAt: later}
		}), Failed, later},
		"a removal does not wait for a deployment that failed": {found(func(o *observed) {
			o.wanted, o.generation, o.failure = false, 0, failure{of: 1, message: "no", retryAt: later}
		}), Confirming, time.Time{}},
		"a deployment does not wait for a removal that failed": {with(func(o *observed) {
			o.failure = failure{of: 1, removing: true, message: "no", retryAt: later}
		}), Deploying, time.Time{}},
		"paused":                  {found(func(o *observed) { o.held, o.deploymentID = "it is paused", "s-2:b" }), Held, time.Time{}},
		"an unknown field":        {with(func(o *observed) { o.unsupported = "x" }), Unsupported, time.Time{}},
		"new":                     {wanted, Deploying, time.Time{}},
		"a dependency is missing": {with(func(o *observed) { o.waiting = "waiting" }), Waiting, time.Time{}},
		"a dependency matters only before it is deployed": {found(func(o *observed) { o.waiting = "waiting" }), Watching, time.Time{}},
		"as wanted":                                 {found(func(*observed) {}), Watching, time.Time{}},
		"another deployment ID":                     {found(func(o *observed) { o.deploymentID = "s-2:b" }), Deploying, time.Time{}},
		"a new force sync generation":               {found(func(o *observed) { o.syncGeneration = 2 }), Deploying, time.Time{}},
		"an operation that was cut off is taken up": {found(func(o *observed) { o.release.Deployed = false }), Deploying, time.Time{}},
		"an upstream agent's release is believed of status": {found(func(o *observed) { o.release.DeploymentID, o.applied = "", "s-1:a" }),
			Watching, time.Time{}},
		"and upgraded if status says something else": {found(func(o *observed) { o.release.DeploymentID, o.applied = "", "s-0:z" }),
			Deploying, time.Time{}},
		"status does not outweigh what a release says": {found(func(o *observed) { o.release.DeploymentID, o.applied = "s-0:z", "s-1:a" }),
			Deploying, time.Time{}},
		"another namespace": {found(func(o *observed) { o.namespace = "other" }), Moving, time.Time{}},
		"gone, but the release is another workspace's": {found(func(o *observed) {
			o.wanted, o.otherWorkspace, o.release.Member = false,
				true, ""
		}), Gone, time.Time{}},
		"another name that goes on": {found(func(o *observed) { o.name, o.adopts = "other", true }),
			Deploying, time.Time{}},
		"another namespace, whatever goes on": {found(func(o *observed) { o.namespace, o.adopts = "other", true }), Moving,
			time.Time{}},
		"one that got its name and not yet its objects": {found(func(o *observed) { o.release.Renamed = true }), Deploying, time.Time{}},
		"another name": {found(func(o *observed) { o.name = "other" }), Moving, time.Time{}},
		"deployed where it has to be, and still elsewhere": {found(func(o *observed) { o.others = 1 }), Moving, time.Time{}},
		"what goes elsewhere matters more than drift": {found(func(o *observed) { o.others, o.modified, o.correct = 1, 1, true }), Moving,
			time.Time{}},
		"it cannot be removed elsewhere": {found(func(o *observed) {
			o.others, o.failure = 1,
				failure{of: 1, message: "no", retryAt: later}
		}), Failed, later},
		"it cannot be deployed where it has to be": {found(func(o *observed) {
			o.namespace, o.failure = "other", failure{of: 1, message: "no", retryAt: later}
		}), Failed, later},
		"back where it was, after an attempt elsewhere": {found(func(o *observed) { o.others, o.superseded = 1, true }), Deploying, time.Time{}},
		"failed": {with(func(o *observed) { o.failure = failure{of: 1, message: "no", retryAt: later} }), Failed,
			later},
		"failed, and the time has come": {with(func(o *observed) { o.failure = failure{of: 1, message: "no", retryAt: now} }),
			Deploying, time.Time{}},
		"failed, and changed since": {with(func(o *observed) {
			o.generation, o.failure = 2,
				failure{of: 1, message: "no", retryAt: later}
		}), Deploying, time.Time{}},
		"changed downstream":                     {found(func(o *observed) { o.modified = 1 }), Watching, time.Time{}},
		"changed downstream and to be corrected": {found(func(o *observed) { o.modified, o.correct = 1, true }), Correcting, time.Time{}},
		"changed again right after a correction": {found(func(o *observed) { o.modified, o.correct, o.correctAt = 1, true, later }), Watching,
			later},
		"a correction that failed is repeated later, not soon": {found(func(o *observed) {
			o.modified, o.correct, o.failure = 1, true, failure{of: 1, message: "no", retryAt: later}
		}), Watching, later},
	} {
		got := decide(row.o, now)
		if got.State != row.want || !got.Wake.Equal(row.wake) {
			t.Errorf("%s: got %s until %s, want %s until %s", name, got.State, got.Wake, row.want, row.wake)
		}
		if got.Reason == "" && got.State != Gone && got.State != Watching {
			t.Errorf("%s: %s has no reason", name, got.State)
		}
	}
}
