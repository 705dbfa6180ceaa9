package dashboard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/fleet/decision"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/ui/drain"
)

// action is a change of several members at once.
type action struct {
	Name, Text, Effect string
	// verb is the right needed for the change besides patch; empty for none.
	verb string
	// decision is the change, except for labels.
	decision *decision.Decision
}

// actionLabel is the action for setting and removing labels.
const actionLabel = "label"

// actionDrain is the action for moving placements to other members.
const actionDrain = "drain"

// actions are the changes of several members, in the order of their buttons.
var actions = []action{
	{actionLabel, "Label", "Bundles and placements with a matching selector follow at once.", "", nil},
	{"cordon", "Cordon", "The members keep their deliveries, and get no new ones.", "cordon", &decision.Cordon},
	{actionDrain, "Drain", "The members get no new deliveries, and their ClusterResourcePlacements move to other members. Bundles stay. " +
		"To stop a drain, uncordon the member.", "cordon", &decision.Drained},
	{"uncordon", "Uncordon", "The members get new deliveries again.", "cordon", &decision.Uncordon},
	{"quarantine", "Quarantine", "The members only send heartbeats and reports. Their workloads stay unchanged, and they get no deliveries.",
		"quarantine", &decision.Quarantine},
	{"unquarantine", "End quarantine", "The members get their deliveries again.", "quarantine", &decision.Unquarantine},
	{"approve", "Approve deliveries", "The members get all deliveries that select them.", "approve", &decision.Approve},
	{"revoke", "Revoke access", "The members lose access to the hub at once. Their objects on the hub and their workloads stay. " +
		"To join again, each needs a new token.", "", &decision.Revoke},
}

// Dangerous reports whether no other action undoes the change.
func (a action) Dangerous() bool { return a.Name == "revoke" }

// TakesLabels reports whether the visitor must give labels.
func (a action) TakesLabels() bool { return a.Name == actionLabel }

// TakesReason reports whether the visitor can say why.
func (a action) TakesReason() bool { return a.decision != nil && a.decision.TakesReason() }

// actionNamed returns an action by its name.
func actionNamed(name string) (action, error) {
	var names []string
	for _, a := range actions {
		if a.Name == name {
			return a, nil
		}
		names = append(names, a.Name)
	}
	return action{}, &inputError{fmt.Errorf("the dashboard has no action %q for members: use %s", name, strings.Join(names, ", "))}
}

// verbs are the rights needed for the action.
func (a action) verbs() []string {
	if a.verb == "" {
		return []string{"patch"}
	}
	return []string{"patch", a.verb}
}

// missing returns the sentence about missing rights.
func (a action) missing(resource string) string {
	return needs(resource, a.verbs()...)
}

// change returns the effect of an action on one member: the removed lines and the added lines. It
// returns an error if the action changes nothing. present is the state on the page; the change
// depends on it.
func (a action) change(member client.Object, labels map[string]any) (gone, added []string, present string, err error) {
	if member.GetDeletionTimestamp() != nil {
		return nil, nil, "", errors.New("it is leaving the fleet")
	}
	switch a.Name {
	case actionLabel:
		return labelChange(member.GetLabels(), labels)
	case "cordon", "uncordon":
		if membership.Cordoned(member) == (a.Name == "cordon") {
			return nil, nil, "", fmt.Errorf("it is %sed already", a.Name)
		}
		return nil, []string{a.Name}, fmt.Sprint(membership.Cordoned(member)), nil
	case actionDrain:
		if err := drain.Refusal(member); err != nil {
			return nil, nil, "", err
		}
		if !slices.Contains(decision.OfService(member), decision.Drained) {
			return nil, nil, "", errors.New("it is drained already")
		}
		return nil, []string{a.Name}, seenFor(decision.Drained, member), nil
	}
	if !slices.Contains(decision.OfMember(member), *a.decision) {
		return nil, nil, "", errors.New(map[string]string{
			"approve": "it needs no approval", "revoke": "it is revoked already",
			"quarantine": "it is quarantined already", "unquarantine": "it is not quarantined",
		}[a.Name])
	}
	return nil, []string{a.Name}, decidable(member), nil
}

// labelChange compares the labels of a member with the labels to set; nil removes one.
func labelChange(labels map[string]string, set map[string]any) (gone, added []string, present string, err error) {
	for _, key := range slices.Sorted(maps.Keys(set)) {
		value, exists := labels[key]
		if exists && set[key] != any(value) {
			gone = append(gone, key+"="+value)
		}
		if set[key] != nil && (!exists || set[key] != any(value)) {
			added = append(added, fmt.Sprintf("%s=%v", key, set[key]))
		}
	}
	if len(gone)+len(added) == 0 {
		return nil, nil, "", errors.New("it has these labels already")
	}
	return gone, added, strings.Join(gone, ","), nil
}

// labelsTo returns the labels of a text such as env=prod,region-. A minus removes a label.
func labelsTo(text string) (map[string]any, error) {
	labels := map[string]any{}
	for one := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		key, value, set := strings.Cut(one, "=")
		bare, removed := strings.CutSuffix(one, "-")
		switch {
		case set && key != "":
			labels[key] = value
		case removed && bare != "":
			labels[bare] = nil
		default:
			return nil, &inputError{fmt.Errorf("%s is not a label: write KEY=VALUE to set one, or KEY- to remove one", one)}
		}
	}
	return labels, nil
}

// write applies the action to a member, as the visitor, with the reason given.
func (a action) write(ctx context.Context, s *Server, v *visitor, member client.Object, labels map[string]any, reason string) error {
	if a.TakesLabels() {
		return kube.PatchMetadata(ctx, v, member, "labels", labels)
	}
	if a.Name == actionDrain {
		return s.drain(ctx, v, member)
	}
	return a.decision.Because(reason).Write(ctx, v, member)
}

// bulkOffer is the button of an action. Refused is the reason why the visitor may not use it;
// empty if they may, for at least one member shown.
type bulkOffer struct {
	action
	Refused string
}

// bulkOffers returns the buttons for some members.
func bulkOffers(ctx context.Context, v *visitor, members []*entry) (offers []bulkOffer, err error) {
	for _, a := range actions {
		one := bulkOffer{a, a.missing(clusters)}
		for _, resource := range []string{clusters, memberClusters} {
			of := slices.DeleteFunc(slices.Clone(members), func(e *entry) bool { return e.resource != resource })
			permitted, err := a.permittedIn(ctx, v, resource, of)
			if err != nil {
				return nil, err
			}
			if len(of) > 0 && slices.Contains(slices.Collect(maps.Values(permitted)), true) {
				one.Refused = ""
			}
		}
		if a.Name == actionDrain && one.Refused == "" {
			for _, verb := range evictionVerbs {
				permitted, err := v.may(ctx, verb, evictions, "")
				if err != nil {
					return nil, err
				}
				if !permitted {
					one.Refused = needs(evictions, evictionVerbs...)
				}
			}
		}
		offers = append(offers, one)
	}
	return offers, nil
}

// Refusals returns the reasons why buttons of the page are disabled, each once.
func (f *shown) Refusals() (reasons []string) {
	for _, o := range f.Offers {
		if reason := o.Text + ": " + o.Refused; o.Refused != "" {
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

// permittedIn returns the namespaces of some entries where a visitor has all rights for the
// action. The empty namespace stands for cluster-scoped members.
func (a action) permittedIn(ctx context.Context, v *visitor, resource string, members []*entry) (map[string]bool, error) {
	permitted := map[string]bool{}
	for _, e := range members {
		permitted[e.namespace] = true
	}
	for _, verb := range a.verbs() {
		allowed, err := v.mayIn(ctx, verb, resource, members)
		if err != nil {
			return nil, err
		}
		if permitted[""] {
			if allowed[""], err = v.may(ctx, verb, resource, ""); err != nil {
				return nil, err
			}
		}
		for namespace := range permitted {
			permitted[namespace] = permitted[namespace] && allowed[namespace]
		}
	}
	return permitted, nil
}
