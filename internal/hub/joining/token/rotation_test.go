package token

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
)

func rotated(generation int64, requested string, ends *metav1.Time) *fleet.TokenRotation {
	return &fleet.TokenRotation{Requested: requested, Generation: generation, Time: metav1.NewTime(start), PreviousEnds: ends}
}

func at(after time.Duration) *metav1.Time { return &metav1.Time{Time: start.Add(after)} }

func TestWhenTheCredentialIsReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		annotations map[string]string
		last        *fleet.TokenRotation
		due         bool
		generation  int64
		problem     string
	}{
		"never asked":          {nil, nil, false, 0, ""},
		"asked":                {map[string]string{fleet.AnnotationRotate: "1"}, nil, true, 1, ""},
		"done":                 {map[string]string{fleet.AnnotationRotate: "1"}, rotated(1, "1", nil), false, 1, ""},
		"asked again":          {map[string]string{fleet.AnnotationRotate: "2"}, rotated(1, "1", nil), true, 2, ""},
		"the question removed": {nil, rotated(3, "1", nil), false, 3, ""},
		"no duration": {
			map[string]string{fleet.AnnotationRotate: "2", fleet.AnnotationRotateOverlap: "soon"}, rotated(1, "1", nil), false, 1,
			`annotation muster/rotate-overlap is "soon": set a duration from 0s to 720h`,
		},
		"a negative one": {map[string]string{fleet.AnnotationRotate: "2", fleet.AnnotationRotateOverlap: "-1s"}, nil, false, 0, "-1s"},
		"too long":       {map[string]string{fleet.AnnotationRotate: "2", fleet.AnnotationRotateOverlap: "721h"}, nil, false, 0, "721h"},
		"too much":       {map[string]string{fleet.AnnotationRotate: strings.Repeat("x", 257)}, nil, false, 0, "257 characters"},
	} {
		t.Run(name, func(t *testing.T) {
			token := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations}}
			token.Status.Rotation = c.last
			r := rotationOf(token)
			fits := strings.Contains(r.problem, c.problem) && (r.problem == "") == (c.problem == "")
			if r.due() != c.due || r.generation() != c.generation || !fits {
				t.Errorf("due %t, generation %d, problem %q; want %t, %d, %q", r.due(), r.generation(), r.problem, c.due, c.generation, c.problem)
			}
		})
	}
}

func TestWhenThePreviousCredentialEnds(t *testing.T) {
	day := 24 * time.Hour
	bound := credential.Claims{Subject: "s", Secret: "a-lasting", Expires: start.Add(10 * day)}
	unbound := credential.Claims{Subject: "s", Expires: start.Add(10 * day)}
	for name, c := range map[string]struct {
		overlap  string
		previous credential.Claims
		expires  time.Time
		want     time.Duration
	}{
		"a day later":             {"", bound, start.Add(10 * day), day},
		"after the given time":    {"2h", bound, start.Add(10 * day), 2 * time.Hour},
		"at once":                 {"0s", bound, time.Time{}, 0},
		"with the token":          {"720h", bound, start.Add(2 * day), 2 * day},
		"when it expires":         {"720h", bound, time.Time{}, 10 * day},
		"one without an end":      {"2h", credential.Claims{Subject: "s", Secret: "a-token"}, time.Time{}, 2 * time.Hour},
		"one that nobody can end": {"2h", unbound, time.Time{}, 10 * day},
		"one that is not known":   {"2h", credential.Claims{}, time.Time{}, 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			token := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{fleet.AnnotationRotate: "1"}}}
			if c.overlap != "" {
				token.Annotations[fleet.AnnotationRotateOverlap] = c.overlap
			}
			r := rotationOf(token)
			r.finish(c.previous, c.expires, start)
			if got := r.status(start).PreviousEnds.Sub(start); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestOnlyTheCredentialOfTheGenerationIsHandedOut(t *testing.T) {
	for name, c := range map[string]struct {
		last   *fleet.TokenRotation
		secret string
		want   bool
	}{
		"the first, of an earlier hub": {nil, "", true},
		"the first":                    {nil, "a-lasting", true},
		"the first, by Kubernetes":     {nil, "a-token", true},
		"the second":                   {rotated(1, "", nil), "a-1-lasting", true},
		"the second, by Kubernetes":    {rotated(1, "", nil), "a-1-token", true},
		"the one before":               {rotated(1, "", nil), "a-lasting", false},
		"one of an earlier hub":        {rotated(1, "", nil), "", false},
		"one to come":                  {nil, "a-1-lasting", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := rotationOf(&fleet.ClusterRegistrationToken{Status: fleet.ClusterRegistrationTokenStatus{Rotation: c.last}})
			if got := r.covers(credential.Claims{Secret: c.secret}, "a"); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestWhatATokenSaysOfItsRotation(t *testing.T) {
	asked := map[string]string{fleet.AnnotationRotate: "2"}
	held := decision{state: held, reason: "InvalidLabels", message: "a label is not valid"}
	for name, c := range map[string]struct {
		annotations map[string]string
		last        *fleet.TokenRotation
		d           decision
		status      string
		says        string
	}{
		"nothing": {nil, nil, decision{}, "", ""},
		"in the overlap": {nil, rotated(1, "1", at(time.Hour)), decision{}, "True",
			"credential 2 was issued at 2026-01-02T03:04:05Z; the previous one ends at 2026-01-02T04:04:05Z"},
		"after it":        {nil, rotated(1, "1", nil), decision{}, "True", "the previous one has ended"},
		"one that waits":  {asked, rotated(1, "1", nil), held, "False", "once the token is Ready: a label is not valid"},
		"one that cannot": {map[string]string{fleet.AnnotationRotateOverlap: "x"}, nil, decision{}, "False", "the credential is not replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			r := rotationOf(&fleet.ClusterRegistrationToken{
				ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations}, Status: fleet.ClusterRegistrationTokenStatus{Rotation: c.last},
			})
			got := r.condition(r.status(start), c.d)
			if string(got.Status) != c.status || !strings.Contains(got.Message, c.says) {
				t.Errorf("got %+v, want %s with %q", got, c.status, c.says)
			}
		})
	}
}

func TestACredentialFitsItsToken(t *testing.T) {
	year := 365 * 24 * time.Hour
	until := func(d time.Duration) credential.Claims {
		return credential.Claims{Issued: start, Expires: start.Add(d)}
	}
	for name, c := range map[string]struct {
		claims  credential.Claims
		expires time.Time
		want    bool
	}{
		"with the token":                    {until(time.Hour), start.Add(time.Hour), true},
		"before it":                         {until(time.Hour), start.Add(2 * time.Hour), true},
		"the shortest one":                  {until(10 * time.Minute), start.Add(time.Minute), true},
		"after a token with a shorter life": {until(3 * time.Hour), start.Add(2 * time.Hour), false},
		"one for ever":                      {credential.Claims{Issued: start}, start.Add(time.Hour), false},
		"a token of centuries":              {until(200 * year), start.Add(200 * year), true},
		"for ever, of a token without end":  {credential.Claims{Issued: start}, time.Time{}, true},
		"for a lifetime":                    {until(136 * year), time.Time{}, true},
		"an end, of a token without one":    {until(time.Hour), time.Time{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fits(c.claims, c.expires); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
