package token

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/credentials/longlived"
	"github.com/muster-fleet/muster/internal/kube"
)

// A rotation issues another credential of the same account. Each credential is bound to a Secret of
// its own, and ends with it. So the credential of the previous generation stays valid until the hub
// deletes its Secret. A registration request names the account, so it belongs to the token with
// either credential.

// maxRequested bounds the value of the annotation.
const maxRequested = 256

// rotation holds the requested and the last rotation.
type rotation struct {
	requested string
	overlap   time.Duration
	// problem is the fault in the annotations; empty if there is none.
	problem string
	last    fleet.TokenRotation
	// done: this reconcile has issued the credential, and previousEnds is the end of the previous one.
	// ended: the previous one has ended.
	done, ended  bool
	previousEnds time.Time
}

func rotationOf(token *fleet.ClusterRegistrationToken) rotation {
	r := rotation{requested: token.Annotations[fleet.AnnotationRotate], overlap: fleet.DefaultRotateOverlap}
	if token.Status.Rotation != nil {
		r.last = *token.Status.Rotation
	}
	if len(r.requested) > maxRequested {
		r.problem = fmt.Sprintf("annotation %s has %d characters, at most %d are possible: set the current time", fleet.AnnotationRotate,
			len(r.requested), maxRequested)
		return r
	}
	text, given := token.Annotations[fleet.AnnotationRotateOverlap]
	if !given {
		return r
	}
	overlap, err := time.ParseDuration(text)
	if r.overlap = overlap; err != nil || overlap < 0 || overlap > fleet.MaxRotateOverlap {
		r.problem = fmt.Sprintf("annotation %s is %q: set a duration from 0s to 720h, such as 2h", fleet.AnnotationRotateOverlap,
			kube.Clip(text, 40))
	}
	return r
}

// due reports whether the credential is to be replaced.
func (r rotation) due() bool {
	return r.problem == "" && r.requested != "" && r.requested != r.last.Requested
}

// generation returns the generation of the credential to hand out.
func (r rotation) generation() int64 {
	if r.due() {
		return r.last.Generation + 1
	}
	return r.last.Generation
}

// isOver reports whether the time of the previous credential is over.
func (r rotation) isOver(now time.Time) bool {
	return r.last.PreviousEnds != nil && !now.Before(r.last.PreviousEnds.Time)
}

// covers reports whether a credential is of the generation to hand out. Hubs of earlier versions
// bound no credential with an end to a Secret.
func (r rotation) covers(claims credential.Claims, account string) bool {
	bound, filled := longlived.Secrets(account, metav1.ObjectMeta{Name: credentialName(account, r.generation())})
	return claims.Secret == bound.Name || claims.Secret == filled.Name || claims.Secret == "" && r.generation() == 0
}

// credentialName returns the base of the names of the Secrets bound to a credential.
func credentialName(account string, generation int64) string {
	if generation == 0 {
		return account
	}
	return fmt.Sprintf("%s-%d", account, generation)
}

// credentialSecrets returns the Secrets bound to the credential of a generation: it ends with them.
func credentialSecrets(token *fleet.ClusterRegistrationToken, generation int64) (bound, filled *corev1.Secret) {
	account := accountName(token)
	return longlived.Secrets(account, meta(token, credentialName(account, generation)))
}

// secretsInUse returns the Secrets of the current credential and of the previous one.
func (r rotation) secretsInUse(token *fleet.ClusterRegistrationToken) []client.Object {
	var all []client.Object
	for generation := max(0, r.last.Generation-1); generation <= r.generation(); generation++ {
		bound, filled := credentialSecrets(token, generation)
		all = append(all, bound, filled)
	}
	return all
}

// endPrevious ends the previous credential after its time, or before another rotation: at most two
// are valid.
func (c *Controller) endPrevious(ctx context.Context, token *fleet.ClusterRegistrationToken, r *rotation, now time.Time) error {
	if r.last.PreviousEnds == nil || !r.isOver(now) && !r.due() {
		return nil
	}
	bound, filled := credentialSecrets(token, r.last.Generation-1)
	if err := kube.Delete(ctx, c.Client, bound, filled); err != nil {
		return err
	}
	r.ended = true
	return nil
}

// finish marks the rotation as done. A previous credential of an earlier version of the hub is
// bound to no Secret, and stays valid until it expires.
func (r *rotation) finish(previous credential.Claims, expires, now time.Time) {
	if !r.due() {
		return
	}
	r.done, r.previousEnds = true, now.Add(r.overlap)
	if unbound := previous.Subject != "" && previous.Secret == ""; unbound || beforeEnd(previous.Expires, r.previousEnds) {
		r.previousEnds = previous.Expires
	}
	if beforeEnd(expires, r.previousEnds) {
		r.previousEnds = expires
	}
}

// beforeEnd reports whether a time, zero for never, is before another one.
func beforeEnd(at, other time.Time) bool { return !at.IsZero() && at.Before(other) }

// status returns the last rotation for the status; nil if there was none.
func (r rotation) status(now time.Time) *fleet.TokenRotation {
	after := r.last
	if r.ended {
		after.PreviousEnds = nil
	}
	if r.done {
		after = fleet.TokenRotation{
			Requested: r.requested, Generation: r.last.Generation + 1, Time: metav1.Time{Time: now.Truncate(time.Second)},
			PreviousEnds: &metav1.Time{Time: r.previousEnds.Truncate(time.Second)},
		}
	}
	if after.Generation == 0 {
		return nil
	}
	return &after
}

// condition returns the condition Rotated, without a reason if there is nothing to report.
func (r rotation) condition(after *fleet.TokenRotation, d decision) fleet.Condition {
	switch {
	case r.problem != "":
		return kube.Condition(fleet.ConditionRotated, false, reasons.InvalidRotation, r.problem+"; the credential is not replaced")
	case r.due() && !r.done:
		return kube.Condition(fleet.ConditionRotated, false, d.reason, "the credential is replaced once the token is Ready: "+d.message)
	case after == nil:
		return fleet.Condition{}
	}
	message := fmt.Sprintf("credential %d was issued at %s", after.Generation+1, after.Time.UTC().Format(time.RFC3339))
	if after.PreviousEnds == nil {
		message += "; the previous one has ended"
	} else {
		message += fmt.Sprintf("; the previous one ends at %s: until then, give the new values of the Secret to the users who register clusters",
			after.PreviousEnds.UTC().Format(time.RFC3339))
	}
	return kube.Condition(fleet.ConditionRotated, true, reasons.RotationDone, message)
}
