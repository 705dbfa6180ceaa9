package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/decision"
	"github.com/muster-fleet/muster/internal/ui/drain"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// mayDecide reports whether a visitor may approve and deny objects of a workspace. The visitor
// needs the verb approve, besides the right to edit them.
func (s *Server) mayDecide(ctx context.Context, v *visitor, resource, namespace string) (bool, error) {
	approve, err := v.may(ctx, "approve", resource, namespace)
	if err != nil || !approve {
		return false, err
	}
	return v.may(ctx, "patch", resource, namespace)
}

// unchanged returns an error unless the object is still the one seen by the visitor, in the same
// state.
func unchanged(o client.Object, form func(string) string, state string) error {
	if o.GetUID() != types.UID(form("uid")) {
		return &inputError{replaced(o)}
	}
	if form("reason") != state {
		return &inputError{fmt.Errorf("%s has changed since you opened the page, and is now %s (%s): check it, and decide again",
			view.Title(o), view.State(o), view.Because(o))}
	}
	return nil
}

// replaced returns the error for an object created after the visitor's page.
func replaced(o client.Object) error {
	return fmt.Errorf("%s was replaced since you opened the page: check it, and decide again", view.Title(o))
}

// find returns the decision of a name among others.
func find(all []decision.Decision, name string) (decision.Decision, bool) {
	for _, d := range all {
		if d.Name == name {
			return d, true
		}
	}
	return decision.Decision{}, false
}

// decide approves or denies a request.
func (s *Server) decide(w http.ResponseWriter, r *http.Request, v *visitor) error {
	d, found := find([]decision.Decision{decision.Approve, decision.Deny, decision.Reconsider}, r.PostFormValue("decision"))
	if !found {
		return &inputError{errors.New("the decision about a request is approve, deny or reconsider")}
	}
	o := &fleet.ClusterRegistration{}
	if err := v.Get(r.Context(), client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}, o); err != nil {
		return err
	}
	if err := unchanged(o, r.PostFormValue, o.Status.Reason); err != nil {
		return err
	}
	if err := d.Because(because(r)).Write(r.Context(), v, o); err != nil {
		return err
	}
	http.Redirect(w, r, local(cmp.Or(r.PostFormValue("to"), registrationPath)), http.StatusSeeOther)
	return nil
}

// because returns the visitor's reason for a decision; empty without one.
func because(r *http.Request) string { return strings.TrimSpace(r.PostFormValue("because")) }

// offer is a decision about a member on a page.
type offer struct {
	decision.Decision
	Text string
	// Effect is the consequence of a decision that takes a second click.
	Effect string
	// Refused is the reason why the visitor may not decide; empty if they may.
	Refused string
	// Seen is the state of the member that the decision depends on.
	Seen string
}

// Dangerous reports whether no other decision undoes this one.
func (o offer) Dangerous() bool { return o.Name == decision.Revoke.Name }

// offers holds the decisions about members.
var offers = []offer{
	{Decision: decision.Approve, Text: "Approve deliveries"},
	{Decision: decision.Deny, Text: "Deny new deliveries"},
	{Decision: decision.Quarantine, Text: "Quarantine"},
	{Decision: decision.Unquarantine, Text: "End quarantine"},
	{Decision: decision.Revoke, Text: "Revoke access", Effect: "The member loses access to the hub at once. Its object on the hub " +
		"and its workloads stay. To join again, it needs a new token."},
	{Decision: decision.Readmit, Text: "Restore access"},
	{Decision: decision.Cordon, Text: "Cordon"},
	{Decision: decision.Uncordon, Text: "Uncordon"},
	{Decision: decision.Drained, Text: "Drain", Effect: "The member gets no new deliveries, and its ClusterResourcePlacements move to other " +
		"members. Bundles stay. The drain takes up to 15 minutes, also when you leave this page. To stop it, uncordon the member."},
}

// decisionsAbout returns the possible decisions about a member, with the reason for each the
// visitor may not make.
func (s *Server) decisionsAbout(ctx context.Context, v *visitor, record client.Object) (decisions []offer, err error) {
	resource := memberClusters
	if record.GetNamespace() != "" {
		resource = clusters
	}
	possible := slices.Concat(decision.OfMember(record), decision.OfService(record))
	for _, o := range offers {
		if !slices.Contains(possible, o.Decision) {
			continue
		}
		verbs := []string{"patch"}
		if verb := o.Verb(); verb != "" {
			verbs = append(verbs, verb)
		}
		for _, verb := range verbs {
			permitted, err := v.may(ctx, verb, resource, record.GetNamespace())
			if err != nil {
				return nil, err
			}
			if !permitted {
				o.Refused = needs(resource, verbs...)
			}
		}
		if o.Seen = seenFor(o.Decision, record); o.Decision == decision.Drained && o.Refused == "" {
			if o.Refused, err = drainRefused(ctx, v, record); err != nil {
				return nil, err
			}
			if cause := drain.Refusal(record); o.Refused == "" && cause != nil {
				o.Refused = "A quarantined member cannot be drained: end the quarantine first."
			}
		}
		decisions = append(decisions, o)
	}
	return decisions, nil
}

// With returns the data of the button of a decision.
func (m *shownMember) With(o offer) any {
	return struct {
		Body  *shownMember
		Offer offer
	}{m, o}
}

// decidable returns the state behind a decision about a member: a visitor with an outdated page
// must decide again.
func decidable(record client.Object) string { return verbsOf(decision.OfMember(record)) }

// seenFor returns the state behind one decision.
func seenFor(d decision.Decision, record client.Object) string {
	if d == decision.Cordon || d == decision.Uncordon || d == decision.Drained {
		return verbsOf(decision.OfService(record))
	}
	return decidable(record)
}

func verbsOf(decisions []decision.Decision) string {
	var names []string
	for _, d := range decisions {
		names = append(names, d.Name)
	}
	return strings.Join(names, " ")
}

// decideMember approves or denies deliveries to a member, quarantines it, revokes or restores its
// access, or takes it out of service.
func (s *Server) decideMember(w http.ResponseWriter, r *http.Request, v *visitor) error {
	record, err := readMember(r, v)
	if err != nil {
		return err
	}
	d, found := find([]decision.Decision{
		decision.Approve, decision.Deny, decision.Quarantine, decision.Unquarantine, decision.Revoke, decision.Readmit,
		decision.Cordon, decision.Uncordon, decision.Drained,
	}, r.PostFormValue("decision"))
	if !found {
		return &inputError{errors.New("the decision about a member is approve, deny, quarantine, unquarantine, revoke, readmit, " +
			"cordon, uncordon or drain")}
	}
	if err := unchanged(record, r.PostFormValue, seenFor(d, record)); err != nil {
		return err
	}
	if d == decision.Drained {
		err = s.drain(r.Context(), v, record)
	} else {
		err = d.Because(because(r)).Write(r.Context(), v, record)
	}
	if err != nil {
		return err
	}
	http.Redirect(w, r, memberPath(view.NameOf(record)), http.StatusSeeOther)
	return nil
}

// readMember reads a request's membership object, as the visitor.
func readMember(r *http.Request, v *visitor) (client.Object, error) {
	key := client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	var record client.Object = &clusterv1beta1.MemberCluster{}
	if key.Namespace != "" {
		record = &fleet.Cluster{}
	}
	return record, v.Get(r.Context(), key, record)
}
