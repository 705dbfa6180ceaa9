package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// mostChanged limits the members changed by one form.
const mostChanged = rowsOnPage

// bulkChange is the change of one member.
type bulkChange struct {
	Name string
	// UID and Seen are the member and its state on the page. The change applies to nothing else.
	UID         types.UID
	Seen        string
	Gone, Added []string
	// Refused is the reason why the member does not change; empty if it does.
	Refused string

	member client.Object
}

// bulk is the page for confirming an action and for its result.
type bulk struct {
	Action action
	Labels string
	// Changes are the members to change, Refused the other ones.
	Changes, Refused []bulkChange
	// Done reports whether the page is the result.
	Done bool
	// Back is the page with the selection. Problem is the reason why the labels are not valid.
	Back, Problem string
	labels        map[string]any
}

// bulkOf reads the members of a form, as the visitor.
func bulkOf(r *http.Request, v *visitor) (*bulk, error) {
	if err := r.ParseForm(); err != nil {
		return nil, &inputError{err}
	}
	names := r.Form["member"]
	switch {
	case len(names) == 0:
		return nil, &inputError{errors.New("select members in the table first")}
	case len(names) > mostChanged:
		return nil, &inputError{fmt.Errorf("%d members are selected: select at most %d", len(names), mostChanged)}
	}
	a, err := actionNamed(r.Form.Get("action"))
	if err != nil {
		return nil, err
	}
	b := &bulk{Action: a, Labels: strings.TrimSpace(r.Form.Get("labels")), Back: local(r.Form.Get("back"))}
	if b.labels, err = labelsTo(b.Labels); err != nil {
		b.Problem = err.Error()
	}
	b.Changes = make([]bulkChange, len(names))
	workqueue.ParallelizeUntil(r.Context(), askedAtOnce, len(names), func(i int) { b.Changes[i] = b.read(r.Context(), v, names[i]) })
	return b, r.Context().Err()
}

// read reads one member, and its change.
func (b *bulk) read(ctx context.Context, v *visitor, name string) bulkChange {
	c := bulkChange{Name: name}
	namespace, bare, qualified := strings.Cut(name, "/")
	resource := clusters
	c.member = &fleet.Cluster{}
	if !qualified {
		namespace, bare, resource, c.member = "", name, memberClusters, &clusterv1beta1.MemberCluster{}
	}
	err := v.Get(ctx, client.ObjectKey{Namespace: namespace, Name: bare}, c.member)
	if err != nil {
		c.Refused = err.Error()
		return c
	}
	for _, verb := range b.Action.verbs() {
		permitted, err := v.may(ctx, verb, resource, namespace)
		if err != nil {
			c.Refused = err.Error()
			return c
		}
		if !permitted {
			c.Refused = b.Action.missing(resource)
			return c
		}
	}
	if b.Action.Name == actionDrain {
		if c.Refused, err = drainRefused(ctx, v, c.member); err != nil {
			c.Refused = err.Error()
		}
		if c.Refused != "" {
			return c
		}
	}
	c.UID = c.member.GetUID()
	if b.Action.TakesLabels() && len(b.labels) == 0 {
		return c // the page requests the labels first
	}
	if c.Gone, c.Added, c.Seen, err = b.Action.change(c.member, b.labels); err != nil {
		c.Refused = err.Error()
	}
	return c
}

// split moves the unchanged members to Refused.
func (b *bulk) split() {
	b.Changes, b.Refused = partitioned(b.Changes, func(c bulkChange) bool { return c.Refused == "" })
}

// Ready reports whether the page can offer to change something.
func (b *bulk) Ready() bool {
	return len(b.Changes) > 0 && b.Problem == "" && (len(b.labels) > 0 || !b.Action.TakesLabels())
}

// confirmBulk shows the effect of an action on the selected members. It changes nothing.
func (s *Server) confirmBulk(w http.ResponseWriter, r *http.Request, v *visitor) error {
	b, err := bulkOf(r, v)
	if err != nil {
		return err
	}
	b.split()
	return s.showBulk(w, r, v, b)
}

// changeBulk applies an action to the confirmed members, each only if it is still as the page
// showed it.
func (s *Server) changeBulk(w http.ResponseWriter, r *http.Request, v *visitor) error {
	b, err := bulkOf(r, v)
	if err != nil {
		return err
	}
	uids, seen := r.PostForm["uid"], r.PostForm["seen"]
	if len(uids) != len(b.Changes) || len(seen) != len(b.Changes) || b.Problem != "" || b.Action.TakesLabels() && len(b.labels) == 0 {
		return &inputError{errors.New("the form is incomplete: go back to the fleet, and select the members again")}
	}
	for i := range b.Changes {
		c := &b.Changes[i]
		switch {
		case c.Refused != "":
		case string(c.UID) != uids[i] || c.Seen != seen[i]:
			c.Refused = "it has changed since you opened the page: check it, and decide again"
		default:
			if err := b.Action.write(r.Context(), s, v, c.member, b.labels, because(r)); err != nil {
				c.Refused = err.Error()
			}
		}
	}
	b.Done = true
	b.split()
	return s.showBulk(w, r, v, b)
}

func (s *Server) showBulk(w http.ResponseWriter, r *http.Request, v *visitor, b *bulk) error {
	p := page{Title: b.Action.Text, View: "fleet", Crumbs: []link{{"Fleet", b.Back}, {Name: b.Action.Text}}, Body: b}
	if b.Problem != "" {
		p.Status = http.StatusBadRequest
	}
	return s.show(w, r, v, "bulk", p)
}
