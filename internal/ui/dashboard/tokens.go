package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/bootstrap"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// shownToken is the view of one token.
type shownToken struct {
	Name, State, Why       string
	Workspace, Description string
	Facts                  []fact
	// Requests are the requests with the token, the newest first, as far as the visitor may list
	// them. MayList reports whether they may.
	Requests []request
	More     int
	MayList  bool
	// Line registers a cluster. It is empty before it exists, or if the visitor may not see it;
	// Unseen has the reason.
	Line, Unseen string
}

// tokenOf returns the token requested by the fields of the form. As with the flags of muster
// token create, most may be empty. The name, the duration and the number of clusters are
// required: "no end" must be explicit.
func tokenOf(field func(name string) string) (*fleet.ClusterRegistrationToken, error) {
	requested := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: field("namespace"), Name: field("name")},
		Spec: fleet.ClusterRegistrationTokenSpec{ClusterName: field("cluster"), ClientID: field("client-id"), Description: field("description")}}
	if requested.Namespace == "" || requested.Name == "" {
		return nil, errors.New("a token needs a workspace and a name")
	}
	ttl, err := time.ParseDuration(field("ttl"))
	if err != nil || ttl < 0 {
		return nil, fmt.Errorf("invalid duration %q: write for example 24h, or 0 for no limit", field("ttl"))
	}
	if ttl > 0 {
		requested.Spec.TTL = &metav1.Duration{Duration: ttl}
	}
	most, err := strconv.ParseInt(field("max"), 10, 32)
	if err != nil || most < 0 {
		return nil, fmt.Errorf("invalid number of clusters %q: write for example 1, or 0 for no limit", field("max"))
	}
	if most > 0 {
		requested.Spec.MaxRegistrations = new(int32(most))
	}
	if text := field("labels"); text != "" {
		if requested.Spec.Labels, err = labels.ConvertSelectorToLabelsMap(text); err != nil {
			return nil, fmt.Errorf("invalid labels %q: %w; write for example env=prod,region=eu", text, err)
		}
	}
	if field("approve") != "" {
		requested.Spec.Approval = fleet.ApprovalManual
	}
	return requested, nil
}

// token is the view of one token, read as the visitor.
func (s *Server) token(w http.ResponseWriter, r *http.Request, v *visitor) error {
	digest, stale, used, err := s.lookAtToken(r.Context(), v, r.PathValue("namespace"), r.PathValue("name"))
	if err != nil {
		return err
	}
	live := liveOf(r, digest)
	key := client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	o := &fleet.ClusterRegistrationToken{}
	if err := v.Get(r.Context(), key, o); err != nil {
		return err
	}
	shown := shownToken{Name: view.NameOf(o), State: view.State(o), Why: view.Because(o), Workspace: o.Namespace,
		Description: o.Spec.Description, Facts: tokenFacts(o)}
	for _, e := range used {
		shown.Requests = append(shown.Requests, request{entry: e})
	}
	slices.SortStableFunc(shown.Requests, func(a, b request) int { return b.since.Compare(a.since) })
	shown.Requests, shown.More = atMost(mostRequests, shown.Requests)
	if shown.MayList, err = v.may(r.Context(), "list", requests, o.Namespace); err != nil {
		return err
	}
	if o.Status.SecretName != "" {
		secret := &corev1.Secret{}
		if err := v.Get(r.Context(), client.ObjectKey{Namespace: o.Namespace, Name: o.Status.SecretName}, secret); err != nil {
			shown.Unseen = err.Error()
		} else {
			values := bootstrap.ReadBootstrap(secret)
			shown.Line = view.JoinCommand(values.Token, values.APIServerURL, []byte(values.APIServerCA), "")
			if values.APIServerURL == "" {
				shown.Unseen = "The hub does not know its own address. Add --hub-url URL to the command, or set the value " +
					"apiServerURL of the chart fleet."
			}
		}
	}
	return s.show(w, r, v, "token", page{
		Title: shown.Name, View: "registration", Stale: stale, Live: live, Body: shown,
		Crumbs: crumbs("Registration", registrationPath, shown.Name),
	})
}

// lookAtToken returns the requests with a token for a visitor. digest changes with them, and with
// the token.
func (s *Server) lookAtToken(ctx context.Context, v *visitor, namespace, name string) (
	digest string, stale []string, used []*entry, err error) {
	token, stale, err := s.entriesNamed(ctx, v, namespace+"/"+name, tokens)
	if err != nil {
		return "", nil, nil, err
	}
	listed, _, err := s.entries(ctx, v, requests)
	if err != nil {
		return "", nil, nil, err
	}
	for _, e := range listed {
		if e.namespace == namespace && e.labels.Get(fleet.LabelRegistrationToken) == name {
			used = append(used, e)
		}
	}
	return digestOfAll(append(token, used...), stale), stale, used, nil
}

// tokenFacts returns the limits of a token.
func tokenFacts(o *fleet.ClusterRegistrationToken) []fact {
	facts := []fact{{"Expires", view.Until(o.Status.Expires, time.Now())}, {"Registrations", view.Column(o, "REGISTRATIONS", time.Now())},
		{"Last used", view.Column(o, "LAST-USED", time.Now())}, {"Approval", cmp.Or(string(o.Spec.Approval), "Automatic")}}
	if rotated := kube.FindCondition(o.Status.Conditions, fleet.ConditionRotated); rotated != nil {
		facts = append(facts, fact{"Credential", rotated.Message})
	}
	if len(o.Spec.Labels) > 0 {
		facts = append(facts, fact{"Labels for the clusters", labels.FormatLabels(o.Spec.Labels)})
	}
	for _, limit := range []fact{{"Only this Cluster", o.Spec.ClusterName}, {"Only this client ID", o.Spec.ClientID}} {
		if limit.Value != "" {
			facts = append(facts, limit)
		}
	}
	return facts
}
