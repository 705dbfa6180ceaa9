package token

import (
	"fmt"
	"time"

	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/credentials/longlived"
)

// state is the state of a token:
//
//	          ttl over          a day later
//	Active ───────────► Expired ──────────► (deleted)
//	   ▲
//	   ▼ something stands in the way
//	Refused, or Held while the hub's address is unknown, or the labels or the expression are invalid: objects that exist stay
type state string

const (
	active  state = "Active"
	expired state = "Expired"
	refused state = "Refused"
	held    state = "Held"
	removed state = "Removed"
)

// over reports whether a token in a state no longer hands out a credential. (A foreign Secret only
// defers the end.)
func over(s state) bool { return s == expired || s == refused || s == removed }

// expiredRetention is the time between the expiry of a token and its deletion; upstream deletes it
// at once.
const expiredRetention = 24 * time.Hour

// foreignSecretRetry is the pause until the next check for a foreign Secret.
const foreignSecretRetry = 30 * time.Second

// observed holds the inputs of a decision.
type observed struct {
	created time.Time
	// ttl is zero or negative if the token never expires.
	ttl time.Duration
	// ttlRequired is the hub's setting.
	ttlRequired bool
	// served: the token has an account, and has handed out credentials.
	served bool
	// settingsMissing is the cause of an unknown hub address; empty if the address is known.
	settingsMissing string
	// labelProblem is the fault in spec.labels or spec.allowedLabelKeys; empty if there is none.
	labelProblem string
	// approvalProblem is the fault in spec.approvalExpression; empty if there is none.
	approvalProblem string
	// foreignSecret: a Secret of the token's name exists, and the hub did not create it.
	foreignSecret bool
	// credentialValid: the values Secret holds a token of the current account.
	credentialValid bool
	// credentialIssued and credentialExpires bound the life of this token; zero if Kubernetes stores
	// it in a Secret.
	credentialIssued, credentialExpires time.Time
	rotation                            rotation
}

// decision is the next step and the status.
type decision struct {
	state           state
	reason, message string
	// issue requires a new credential.
	issue bool
	// wake is the time when the decision changes without an event; zero if only an event changes it.
	wake time.Time
}

// Expiry returns the expiry of a token of this life, zero if it never expires. The problem tells
// why a hub with a required expiry refuses the token; empty if it accepts the token.
func Expiry(created time.Time, ttl time.Duration, required bool) (expires time.Time, problem string) {
	switch {
	case ttl > 0:
		return created.Add(ttl), ""
	case required:
		return time.Time{}, "this hub does not accept tokens without an expiry: set spec.ttl, for example 240h"
	}
	return time.Time{}, ""
}

func (o observed) expires() time.Time {
	expires, _ := Expiry(o.created, o.ttl, o.ttlRequired)
	return expires
}

func decide(o observed, now time.Time) decision {
	expires, problem := Expiry(o.created, o.ttl, o.ttlRequired)
	switch {
	case problem != "":
		return decision{state: refused, reason: reasons.TTLRequired, message: problem}
	case o.ttl > 0 && !now.Before(expires.Add(expiredRetention)):
		return decision{state: removed}
	case o.ttl > 0 && !now.Before(expires):
		return decision{state: expired, reason: reasons.Expired, wake: expires.Add(expiredRetention),
			message: fmt.Sprintf("expired at %s; create another ClusterRegistrationToken for new clusters, registered ones are not affected",
				expires.UTC().Format(time.RFC3339))}
	case o.labelProblem != "":
		return decision{
			state: held, reason: reasons.InvalidLabels, wake: expires,
			message: o.labelProblem + "; until that is corrected, no cluster registers with this token",
		}
	case o.approvalProblem != "":
		return decision{
			state: held, reason: reasons.InvalidApprovalExpression, wake: expires,
			message: o.approvalProblem + "; until that is corrected, no cluster registers with this token",
		}
	case o.settingsMissing != "":
		return decision{
			state: held, reason: reasons.SettingsMissing, wake: expires, message: "the hub creates and changes no values.yaml: " + o.settingsMissing,
		}
	case o.foreignSecret:
		// The hub does not watch foreign Secrets, so this wait is a timer. An existing account stays, and
		// so do the credentials handed out before.
		state := refused
		if o.served {
			state = held
		}
		return decision{
			state: state, reason: reasons.SecretNameTaken, wake: now.Add(foreignSecretRetry),
			message: "a Secret with this name exists and was not created for this token: delete it, or choose another name for the token",
		}
	}
	d := decision{state: active, reason: reasons.Ready, wake: expires}
	if ends := o.rotation.last.PreviousEnds; ends != nil && ends.After(now) {
		d.wake = sooner(d.wake, ends.Time)
	}
	renew := renewAt(o)
	if !o.credentialValid || (!renew.IsZero() && !now.Before(renew)) {
		d.issue = true
		return d
	}
	if !renew.IsZero() {
		d.wake = sooner(d.wake, renew)
	}
	return d
}

// fits reports whether a credential ends with its token, at the given time. Without an expiry it
// must be permanent. Kubernetes issues no credential of less than ten minutes.
func fits(claims credential.Claims, expires time.Time) bool {
	const shortest, slack = 10 * time.Minute, time.Minute
	if expires.IsZero() {
		return longlived.Lasts(claims)
	}
	return !claims.Expires.IsZero() && !claims.Expires.After(expires.Add(shortest+slack))
}

// sooner returns the earlier of two times; zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// renewAt returns the time to replace a credential shorter than the token's life: two thirds of its
// own life.
func renewAt(o observed) time.Time {
	const slack = time.Minute
	if o.credentialExpires.IsZero() || !o.credentialExpires.Before(o.expires().Add(-slack)) {
		return time.Time{}
	}
	return o.credentialIssued.Add(o.credentialExpires.Sub(o.credentialIssued) * 2 / 3)
}

// life is the validity of the credential in the values.
type life struct {
	// expires is the time when values.yaml of the Secret stops working; zero if never.
	expires time.Time
	// shortened is a message about an expiry before the token's end, with the remedy; empty if there
	// is none.
	shortened string
}

func lifeOf(o observed, d decision, secret string) life {
	renew := renewAt(o)
	if renew.IsZero() || d.state != active && d.state != held {
		return life{expires: o.expires()}
	}
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	return life{expires: o.credentialExpires, shortened: fmt.Sprintf(
		"the hub's API server grants credentials of at most %s (--service-account-max-token-expiration), and spec.ttl is %s: values.yaml in "+
			"Secret %s works until %s and is renewed there at %s, until the token expires at %s; for clusters that join later, read the Secret "+
			"again",
		o.credentialExpires.Sub(o.credentialIssued).Round(time.Minute), o.ttl, secret, at(o.credentialExpires), at(renew), at(o.expires()))}
}
