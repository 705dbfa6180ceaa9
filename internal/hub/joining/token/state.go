package token

import (
	"fmt"
	"time"
)

// The life of a token:
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

// over says whether a token in a state hands out nothing any more. (A Secret of somebody else's only defers that.)
func over(s state) bool { return s == expired || s == refused || s == removed }

// expiredRetention is how long an expired token stays and says so before it is deleted; upstream deletes it at once.
const expiredRetention = 24 * time.Hour

// foreignSecretRetry is how soon the deletion of another's Secret is noticed.
const foreignSecretRetry = 30 * time.Second

// observed is all that a decision depends on.
type observed struct {
	created time.Time
	// ttl is zero or negative if the token never expires.
	ttl time.Duration
	// ttlRequired is the hub's setting.
	ttlRequired bool
	// served: the token has an account, so that credentials were handed out.
	served bool
	// settingsMissing is why the hub's address is unknown; empty if it is known.
	settingsMissing string
	// labelProblem is what is wrong with spec.labels or spec.allowedLabelKeys; empty if nothing.
	labelProblem string
	// approvalProblem is what is wrong with spec.approvalExpression; empty if nothing.
	approvalProblem string
	// foreignSecret says that a Secret of the token's name exists which the hub did not make.
	foreignSecret bool
	// credentialValid says that the values Secret holds a token of the account as it is now.
	credentialValid bool
	// credentialIssued and credentialExpires bound the life of that token; zero if it is stored in a Secret that Kubernetes fills.
	credentialIssued, credentialExpires time.Time
}

// decision is what to do and to report.
type decision struct {
	state           state
	reason, message string
	// issue asks for a new credential.
	issue bool
	// wake is when time alone changes the decision; zero if only an event can.
	wake time.Time
}

func (o observed) expires() time.Time {
	if o.ttl <= 0 {
		return time.Time{}
	}
	return o.created.Add(o.ttl)
}

func decide(o observed, now time.Time) decision {
	expires := o.expires()
	switch {
	case o.ttl <= 0 && o.ttlRequired:
		return decision{state: refused, reason: "TTLRequired", message: "this hub does not accept tokens without an end: set spec.ttl, for example 240h"}
	case o.ttl > 0 && !now.Before(expires.Add(expiredRetention)):
		return decision{state: removed}
	case o.ttl > 0 && !now.Before(expires):
		return decision{state: expired, reason: "Expired", wake: expires.Add(expiredRetention),
			message: fmt.Sprintf("expired at %s; create another ClusterRegistrationToken for new clusters, registered ones are not affected", expires.UTC().Format(time.RFC3339))}
	case o.labelProblem != "":
		return decision{state: held, reason: "InvalidLabels", wake: expires, message: o.labelProblem + "; nothing registers with this token before that is corrected"}
	case o.approvalProblem != "":
		return decision{state: held, reason: "InvalidApprovalExpression", wake: expires, message: o.approvalProblem + "; nothing registers with this token before that is corrected"}
	case o.settingsMissing != "":
		return decision{state: held, reason: "SettingsMissing", wake: expires, message: "no values.yaml is made or changed: " + o.settingsMissing}
	case o.foreignSecret:
		// A Secret that is not ours is not watched, so this wait is a timer. The account stays, if there is one, and with it what was handed out before.
		state := refused
		if o.served {
			state = held
		}
		return decision{state: state, reason: "SecretNameTaken", wake: now.Add(foreignSecretRetry), message: "a Secret with this name exists and was not made for this token: delete it, or choose another name for the token"}
	}
	d := decision{state: active, reason: "Ready", wake: expires}
	renew := renewAt(o)
	if !o.credentialValid || (!renew.IsZero() && !now.Before(renew)) {
		d.issue = true
		return d
	}
	if !renew.IsZero() && renew.Before(expires) {
		d.wake = renew
	}
	return d
}

// renewAt is when a credential that the API server made shorter than the token's life has to be replaced: at two thirds.
func renewAt(o observed) time.Time {
	const slack = time.Minute
	if o.credentialExpires.IsZero() || !o.credentialExpires.Before(o.expires().Add(-slack)) {
		return time.Time{}
	}
	return o.credentialIssued.Add(o.credentialExpires.Sub(o.credentialIssued) * 2 / 3)
}

// life is how long what a token has handed out works.
type life struct {
	// expires is when values.yaml of the Secret stops working; zero if never.
	expires time.Time
	// shortened says that this is before the token ends, and what to do; empty if it is not.
	shortened string
}

func lifeOf(o observed, d decision, secret string) life {
	renew := renewAt(o)
	if renew.IsZero() || d.state != active && d.state != held {
		return life{expires: o.expires()}
	}
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	return life{expires: o.credentialExpires, shortened: fmt.Sprintf(
		"the hub's API server grants credentials of at most %s (--service-account-max-token-expiration), and spec.ttl is %s: values.yaml in Secret %s works until %s and is renewed there at %s, as long as the token lives, which is until %s; take it from the Secret again for clusters that join later",
		o.credentialExpires.Sub(o.credentialIssued).Round(time.Minute), o.ttl, secret, at(o.credentialExpires), at(renew), at(o.expires()))}
}
