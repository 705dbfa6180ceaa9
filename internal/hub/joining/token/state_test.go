package token

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestDecide(t *testing.T) {
	const ttl = 240 * time.Hour
	ends := start.Add(ttl)
	for _, c := range []struct {
		name     string
		observed observed
		now      time.Time
		want     decision
	}{
		{
			"a token without an end gets a credential and no timer", observed{created: start}, start, decision{
				state: active, reason: "Ready", issue: true,
			},
		},
		{
			"with its credential in place nothing is left to do", observed{created: start, credentialValid: true}, start, decision{
				state: active, reason: "Ready",
			},
		},
		{
			"a negative TTL never expires", observed{created: start, ttl: -1, credentialValid: true}, ends, decision{state: active, reason: "Ready"},
		},
		{"a hub that wants a TTL refuses tokens without one", observed{created: start, ttlRequired: true}, start,
			decision{
				state: refused, reason: "TTLRequired", message: "this hub does not accept tokens without an expiry: set spec.ttl, for example 240h",
			}},
		{"a TTL wakes exactly at its end",
			observed{created: start, ttl: ttl, credentialValid: true, credentialIssued: start, credentialExpires: ends}, start,
			decision{state: active, reason: "Ready", wake: ends}},
		{"a credential that the server made shorter is renewed at two thirds",
			observed{created: start, ttl: ttl, credentialValid: true, credentialIssued: start, credentialExpires: start.Add(24 * time.Hour)}, start,
			decision{state: active, reason: "Ready", wake: start.Add(16 * time.Hour)}},
		{"and not later", observed{created: start, ttl: ttl, credentialValid: true, credentialIssued: start,
			credentialExpires: start.Add(24 * time.Hour)}, start.Add(16 * time.Hour),
			decision{state: active, reason: "Ready", wake: ends, issue: true}},
		{"at its end a token expires and says so", observed{created: start, ttl: ttl, credentialValid: true}, ends,
			decision{state: expired, reason: "Expired", wake: ends.Add(24 * time.Hour),
				message: "expired at 2026-01-12T03:04:05Z; create another ClusterRegistrationToken for new clusters, registered ones are not " +
					"affected"}},
		{"a day later it is deleted", observed{created: start, ttl: ttl}, ends.Add(24 * time.Hour), decision{state: removed}},
		{"without settings nothing is handed out", observed{created: start, ttl: ttl, settingsMissing: "they are gone"}, start,
			decision{state: held, reason: "SettingsMissing", wake: ends, message: "the hub creates and changes no values.yaml: they are gone"}},
		{"an expression that is wrong is named at once",
			observed{created: start, ttl: ttl, approvalProblem: "spec.approvalExpression: it returns int"}, start,
			decision{
				state: held, reason: "InvalidApprovalExpression", wake: ends,
				message: "spec.approvalExpression: it returns int; until that is corrected, no cluster registers with this token",
			}},
		{
			"but a token still ends", observed{created: start, ttl: ttl, settingsMissing: "they are gone"}, ends.Add(24 * time.Hour),
			decision{state: removed},
		},
		{"a Secret of somebody else is never overwritten", observed{created: start, foreignSecret: true}, start,
			decision{
				state: refused, reason: "SecretNameTaken", wake: start.Add(30 * time.Second),
				message: "a Secret with this name exists and was not created for this token: delete it, or choose another name for the token",
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, decide(c.observed, c.now), cmp.AllowUnexported(decision{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhenATokenExpires(t *testing.T) {
	made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		ttl      time.Duration
		required bool
		expires  time.Time
		refused  bool
	}{
		"a token with a life":                              {ttl: time.Hour, expires: made.Add(time.Hour)},
		"a token with a life on a hub that requires one":   {ttl: time.Hour, required: true, expires: made.Add(time.Hour)},
		"a token without a life":                           {},
		"a token with a negative life":                     {ttl: -time.Hour},
		"a token without a life on a hub that requires it": {required: true, refused: true},
	} {
		if expires, problem := Expiry(made, c.ttl, c.required); !expires.Equal(c.expires) || (problem != "") != c.refused {
			t.Errorf("%s: %s, %q", name, expires, problem)
		}
	}
}
