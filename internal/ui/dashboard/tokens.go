package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/bootstrap"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// shownToken is the view of one token.
type shownToken struct {
	Name, State, Why string
	// Line registers a cluster. It is empty before it exists, or if the visitor may not see it;
	// Unseen has the reason.
	Line, Unseen string
}

// createToken creates a token, as the visitor.
func (s *Server) createToken(w http.ResponseWriter, r *http.Request, v *visitor) error {
	made, err := tokenOf(func(name string) string { return strings.TrimSpace(r.PostFormValue(name)) })
	if err != nil {
		return &inputError{err}
	}
	if err := v.Create(r.Context(), made); err != nil {
		return err
	}
	http.Redirect(w, r, "/tokens/"+url.PathEscape(made.Namespace)+"/"+url.PathEscape(made.Name), http.StatusSeeOther)
	return nil
}

// tokenOf returns the token requested by the fields of the form. As with the flags of muster
// token create, most may be empty. The name, the duration and the number of clusters are
// required: "no end" must be explicit.
func tokenOf(field func(name string) string) (*fleet.ClusterRegistrationToken, error) {
	made := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: field("namespace"), Name: field("name")},
		Spec: fleet.ClusterRegistrationTokenSpec{ClusterName: field("cluster"), ClientID: field("client-id"), Description: field("description")}}
	if made.Namespace == "" || made.Name == "" {
		return nil, errors.New("a token needs a workspace and a name")
	}
	ttl, err := time.ParseDuration(field("ttl"))
	if err != nil || ttl < 0 {
		return nil, fmt.Errorf("invalid duration %q: write for example 24h, or 0 for no limit", field("ttl"))
	}
	if ttl > 0 {
		made.Spec.TTL = &metav1.Duration{Duration: ttl}
	}
	most, err := strconv.ParseInt(field("max"), 10, 32)
	if err != nil || most < 0 {
		return nil, fmt.Errorf("invalid number of clusters %q: write for example 1, or 0 for no limit", field("max"))
	}
	if most > 0 {
		made.Spec.MaxRegistrations = new(int32(most))
	}
	if text := field("labels"); text != "" {
		if made.Spec.Labels, err = labels.ConvertSelectorToLabelsMap(text); err != nil {
			return nil, fmt.Errorf("invalid labels %q: %w; write for example env=prod,region=eu", text, err)
		}
	}
	if field("approve") != "" {
		made.Spec.Approval = fleet.ApprovalManual
	}
	return made, nil
}

// token is the view of one token, read as the visitor.
func (s *Server) token(w http.ResponseWriter, r *http.Request, v *visitor) error {
	live, stale, err := s.follow(r, v, tokens)
	if err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	o := &fleet.ClusterRegistrationToken{}
	if err := v.Get(r.Context(), key, o); err != nil {
		return err
	}
	shown := shownToken{Name: view.NameOf(o), State: view.State(o), Why: view.Because(o)}
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
