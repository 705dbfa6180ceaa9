package dashboard

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// registering is the view of tokens and registration requests.
type registering struct {
	*listing
	RequestLines, TokenLines lines
	Requests                 []request
	Tokens                   []token
	// Issues are the workspaces where the visitor may create tokens, as far as the visitor sees
	// an object in them.
	Issues []string
}

// request is a request to register.
type request struct {
	*entry
	// Decides reports whether a user can decide about it. Refused is the reason why the visitor may
	// not; empty if they may.
	Decides bool
	Refused string
}

func (r request) Path() string      { return "/requests/" + r.name }
func (r request) UID() types.UID    { return r.asked.uid }
func (r request) Cluster() string   { return r.asked.cluster }
func (r request) ClientID() string  { return r.asked.clientID }
func (r request) Labels() string    { return r.asked.labels }
func (r request) Since() time.Time  { return r.since }
func (r request) Reason() string    { return r.asked.reason }
func (r request) TokenName() string { return r.labels.Get(fleet.LabelRegistrationToken) }

// State names requests replaced by a newer one.
func (r request) State() string {
	if r.asked.superseded {
		return stateSuperseded
	}
	return r.state
}

// stateSuperseded is the state of a denied request after its replacement by a newer one.
const stateSuperseded = reasons.Superseded

// isSuperseded reports whether a newer request has replaced a request.
func isSuperseded(r *fleet.ClusterRegistration) bool { return r.Status.Reason == reasons.Superseded }

// Again reports whether an earlier decision must be undone first.
func (r request) Again() bool { return r.asked.decided }

// waitsForSomebody reports whether a request waits for a decision.
func waitsForSomebody(e *entry) bool { return e.state == string(fleet.RegistrationPending) }

// byDecision is the order of requests. Waiting requests come first, the oldest of them at the top:
// none moves when another one arrives. The newest denied requests follow, then the granted ones;
// there are as many as Clusters.
func byDecision(a, b *entry) int {
	rank := func(e *entry) int {
		switch e.state {
		case string(fleet.RegistrationPending):
			return 0
		case string(fleet.RegistrationGranted):
			return 2
		}
		return 1
	}
	age := a.since.Compare(b.since)
	if !waitsForSomebody(a) {
		age = -age
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), age, strings.Compare(a.name, b.name))
}

// token is a registration token.
type token struct {
	*entry
	columns []string
}

// State covers tokens that expired after they were read.
func (t token) State() string { return t.Column("STATE") }

// Why returns the reason why a token is unusable, up to date like State; empty if it is usable.
func (t token) Why() string {
	if why := t.Column("WHY"); why != view.Nothing {
		return why
	}
	return ""
}

func (t token) Column(name string) string { return t.columns[slices.Index(view.TokenColumns, name)] }

// Left returns the remaining part of a token's life; -1 if it has no end.
func (t token) Left() float64 {
	ends, made := t.object.(*fleet.ClusterRegistrationToken).Status.Expires, t.object.GetCreationTimestamp()
	if ends == nil || !ends.After(made.Time) {
		return -1
	}
	return max(0, time.Until(ends.Time).Seconds()/ends.Sub(made.Time).Seconds())
}

// registration is the view of tokens and requests. Objects for a decision come first.
func (s *Server) registration(w http.ResponseWriter, r *http.Request, v *visitor) error {
	found, err := s.list(r, v, tokens, requests)
	if err != nil {
		return err
	}
	shown := registering{listing: found}
	asking, given := partitioned(found.matching, func(e *entry) bool { return e.resource == requests })
	shown.RequestLines, shown.TokenLines = found.lines(asking, byDecision), found.lines(given, byUrgency)
	for _, e := range shown.RequestLines.shown {
		one := request{entry: e}
		if waitsForSomebody(e) || one.Again() {
			one.Decides = true
			permitted, err := s.mayDecide(r.Context(), v, requests, e.namespace)
			if err != nil {
				return err
			}
			if !permitted {
				one.Refused = "You need the right to patch and approve " + requests + "."
			}
		}
		shown.Requests = append(shown.Requests, one)
	}
	for _, e := range shown.TokenLines.shown {
		shown.Tokens = append(shown.Tokens, token{e, view.Row(e.object, time.Now())})
	}
	if shown.Issues, err = s.issuesIn(r.Context(), v); err != nil {
		return err
	}
	p := page{Title: "Registration", View: "registration", Stale: found.stale, Live: found.live(r), Body: shown}
	return s.show(w, r, v, "registration", p.invalidated(found.invalid))
}

// partitioned returns the elements that meet a condition, and the others.
func partitioned[T any](all []T, holds func(T) bool) (with, without []T) {
	for _, e := range all {
		if holds(e) {
			with = append(with, e)
		} else {
			without = append(without, e)
		}
	}
	return with, without
}

// issuesIn returns the workspaces where a visitor may create tokens, among workspaces with
// visible Clusters or tokens.
func (s *Server) issuesIn(ctx context.Context, v *visitor) (workspaces []string, err error) {
	entries, _, err := s.entries(ctx, v, clusters, tokens)
	if err != nil {
		return nil, err
	}
	allowed, err := v.mayIn(ctx, "create", tokens, entries)
	if err != nil {
		return nil, err
	}
	for workspace, may := range allowed {
		if may {
			workspaces = append(workspaces, workspace)
		}
	}
	slices.Sort(workspaces)
	return workspaces, nil
}
