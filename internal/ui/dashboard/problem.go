package dashboard

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/muster-fleet/muster/internal/ui/view"
)

// shownProblem is the page of an error.
type shownProblem struct {
	Text string
	// Missing is the missing right of the visitor; nil if the problem is another one.
	Missing *missingRight
	// Next is a page with further help; nil without one.
	Next *link
}

// missingRight is a right required by the API server.
type missingRight struct{ Verb, Resource, Namespace, user string }

// refused matches the API server's message about a missing right.
var refused = regexp.MustCompile(`User "([^"]*)" cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?`)

// missingOf returns the right reported as missing by an error; nil for other errors, such as the
// refusal of an admission policy.
func missingOf(err error) *missingRight {
	found := refused.FindStringSubmatch(err.Error())
	if found == nil || !apierrors.IsForbidden(err) {
		return nil
	}
	resource := found[3]
	if found[4] != "" {
		resource += "." + found[4]
	}
	return &missingRight{Verb: found[2], Resource: resource, Namespace: found[5], user: found[1]}
}

// Commands grant the right with a role of its own.
func (m *missingRight) Commands() []string {
	const name = "dashboard-visitor"
	role, binding, kubectl := "clusterrole", "clusterrolebinding", "kubectl"
	if m.Namespace != "" {
		role, binding, kubectl = "role", "rolebinding", view.CommandLine("kubectl", "-n", m.Namespace)
	}
	return []string{
		view.CommandLine(fmt.Sprintf("%s create %s %s", kubectl, role, name), "--verb", m.Verb, "--resource", m.Resource),
		view.CommandLine(fmt.Sprintf("%s create %s %s", kubectl, binding, name), "--"+role, name, "--user", m.user),
	}
}

// titles are the headings of errors by status.
var titles = map[int]string{
	http.StatusBadRequest: "The request is not valid", http.StatusNotFound: "Not found", http.StatusForbidden: "Not permitted",
	http.StatusConflict: "The object has changed", http.StatusTooManyRequests: "Too many requests",
	http.StatusBadGateway: "The hub does not answer",
}

// problem shows an error.
func (s *Server) problem(w http.ResponseWriter, r *http.Request, v *visitor, status int, err error) {
	shown := shownProblem{Text: err.Error(), Missing: missingOf(err)}
	if name := path.Base(r.URL.Path); status == http.StatusNotFound && r.PathValue("name") != "" {
		list := fleetPath
		if r.PathValue("resource") != "" {
			list = deliveriesPath
		}
		shown.Next = &link{"Search for " + name, list + "?" + url.Values{"name": {name}}.Encode()}
	}
	p := page{Title: cmp.Or(titles[status], http.StatusText(status)), Status: status, Body: shown}
	if v != nil {
		p.Visitor = v.name
		_, p.SignOut = s.authenticator.(*tokenAuthenticator)
	}
	render(w, r, status, "problem", p)
}

// errNoPage reports an address without a page.
var errNoPage = errors.New("the dashboard has no page at this address: check the address, or go to the fleet")

// missing answers requests for other pages.
func (s *Server) missing(w http.ResponseWriter, r *http.Request, v *visitor) error {
	s.problem(w, r, v, http.StatusNotFound, errNoPage)
	return nil
}
