package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// tokenForm is the form for a new token.
type tokenForm struct {
	// Workspaces are the workspaces where the visitor may create tokens.
	Workspaces []string
	// Problem is the reason why the token was not created; empty at first.
	Problem string
	values  url.Values
}

// Value returns a value of the form; at first the usual one.
func (f tokenForm) Value(name string) string {
	if f.values != nil {
		return f.values.Get(name)
	}
	return map[string]string{"ttl": "24h", "max": "1"}[name]
}

// newToken is the page with the form for a token.
func (s *Server) newToken(w http.ResponseWriter, r *http.Request, v *visitor) error {
	return s.showTokenForm(w, r, v, tokenForm{}, http.StatusOK)
}

func (s *Server) showTokenForm(w http.ResponseWriter, r *http.Request, v *visitor, form tokenForm, status int) (err error) {
	if form.Workspaces, err = s.issuesIn(r.Context(), v); err != nil {
		return err
	}
	if chosen := form.Value("namespace"); chosen != "" && !slices.Contains(form.Workspaces, chosen) {
		form.Workspaces = append(form.Workspaces, chosen)
	}
	return s.show(w, r, v, "token-form", page{Title: "Register a cluster", View: "registration", Status: status, Body: form,
		Crumbs: crumbs("Registration", registrationPath, "Register a cluster")})
}

// createToken creates a token, as the visitor. A mistake keeps the form with its values.
func (s *Server) createToken(w http.ResponseWriter, r *http.Request, v *visitor) error {
	token, err := tokenOf(func(name string) string { return strings.TrimSpace(r.PostFormValue(name)) })
	if err != nil {
		err = &inputError{err}
	} else {
		err = v.Create(r.Context(), token)
	}
	switch input := (*inputError)(nil); {
	case err == nil:
		http.Redirect(w, r, "/tokens/"+url.PathEscape(token.Namespace)+"/"+url.PathEscape(token.Name), http.StatusSeeOther)
		return nil
	case apierrors.IsAlreadyExists(err):
		err = fmt.Errorf("the token %s/%s exists already: choose another name", token.Namespace, token.Name)
		return s.showTokenForm(w, r, v, tokenForm{Problem: err.Error(), values: r.PostForm}, http.StatusConflict)
	case errors.As(err, &input), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return s.showTokenForm(w, r, v, tokenForm{Problem: err.Error(), values: r.PostForm}, http.StatusBadRequest)
	}
	return err
}
