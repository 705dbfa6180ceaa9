package bundle

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/removal"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// losing is a Bundle of a workspace that so many Clusters would lose, of a namespace and with a
// name made of a number.
func losing(number int, namespace, name string) observed {
	o := observed{bundle: &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "app"}}}
	o.bundle.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionProcessed, Reason: reasons.Processed}}
	for i := range number {
		d := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("member-", i),
			Name: "app", UID: types.UID(fmt.Sprint(i)),
			Labels: map[string]string{fleet.LabelClusterNamespace: namespace, fleet.LabelCluster: fmt.Sprintf(name, i)}}}
		o.leftover = append(o.leftover, leftover{d, removal.NoTarget})
	}
	return o
}

func TestAWorkspaceSetsItsOwnBrake(t *testing.T) {
	hubs := brakeSetting{share: 20}
	for value, want := range map[string]brakeSetting{
		"":    {20, `; annotation muster/removal-brake of Namespace clusters is "", which is no percentage from 0 to 100, and is ignored`},
		"0":   {0, ""},
		"50":  {50, ""},
		"100": {100, ""},
		"101": {20, `; annotation muster/removal-brake of Namespace clusters is "101", which is no percentage from 0 to 100, and is ignored`},
		strings.Repeat("9", 1000): {20, `; annotation muster/removal-brake of Namespace clusters is "99999999999999999999...", ` +
			"which is no percentage from 0 to 100, and is ignored"},
	} {
		namespace := kube.CoreMetadata("Namespace")
		namespace.Name, namespace.Annotations = "clusters", map[string]string{fleet.AnnotationRemovalBrake: value}
		if got := hubs.in(namespace); got != want {
			t.Errorf("%q: %+v", value, got)
		}
	}
	if got := hubs.in(kube.CoreMetadata("Namespace")); got != hubs {
		t.Errorf("without the annotation: %+v", got)
	}
	o := losing(10, "clusters", "c%d")
	for share, held := range map[int]bool{0: true, 20: true, 99: true, 100: false} {
		if o.share = share; (o.brake() != "") != held {
			t.Errorf("with a share of %d ten of ten are held back: %t", share, !held)
		}
	}
	if o.brakeSetting = (brakeSetting{20, "; half is ignored"}); !strings.Contains(o.brake(),
		" have changed; half is ignored; deployed objects stay") {
		t.Errorf("of what is ignored it says: %s", o.brake())
	}
}

// TestAConfirmationHoldsForTheRestOfWhatItNamed has some of what was confirmed removed, and the
// others not, because their deletions failed.
func TestAConfirmationHoldsForTheRestOfWhatItNamed(t *testing.T) {
	first := losing(6, "clusters", "c%d")
	_, value := view.HeldRemoval(&fleet.Bundle{Status: fleet.BundleStatus{Conditions: []fleet.Condition{processed(first, nil)}}})
	confirms := func(o observed, value string, before confirmed) observed {
		o.bundle = o.bundle.DeepCopy()
		o.bundle.Annotations, o.confirmed = map[string]string{fleet.AnnotationConfirmRemoval: value}, before
		return o
	}
	of := func(o observed, indexes ...int) observed {
		all := o.leftover
		o.leftover = nil
		for _, i := range indexes {
			o.leftover = append(o.leftover, all[i])
		}
		return o
	}
	all := confirms(first, value, confirmed{})
	rest := confirms(of(first, 1, 4, 5), value, all.confirms())
	for name, row := range map[string]struct {
		o    observed
		held bool
	}{
		"all that it named":                         {all, false},
		"another value":                             {confirms(first, "deadbeef", confirmed{}), true},
		"the rest":                                  {rest, false},
		"the rest of the rest":                      {confirms(of(first, 4, 5), value, rest.confirms()), false},
		"the rest after a restart":                  {confirms(of(first, 1, 4, 5), value, confirmed{}), true},
		"the rest and one more":                     {confirms(of(losing(7, "clusters", "c%d"), 4, 5, 6), value, rest.confirms()), true},
		"one that was wanted again in between":      {confirms(of(first, 2, 4, 5), value, rest.confirms()), true},
		"the rest after the annotation was removed": {confirms(of(first, 1, 4, 5), "", all.confirms()), true},
		"the rest after the annotation was changed": {confirms(of(first, 1, 4, 5), "deadbeef", all.confirms()), true},
		"all again after nothing was left of them": {confirms(of(first, 1, 4), value, confirms(of(first), value, rest.confirms()).confirms()),
			true},
		"the rest of what a take-over would take": {confirms(of(first, 1, 4), takeoverOf(first),
			confirms(first, takeoverOf(first), confirmed{}).confirms()), false},
		"more than a take-over would have taken": {confirms(first, takeoverOf(of(first, 1, 4)),
			confirms(of(first, 1, 4), takeoverOf(of(first, 1, 4)), confirmed{}).confirms()), true},
	} {
		if got := row.o.brake(); (got != "") != row.held {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// takeoverOf is the value that confirms a take-over.
func takeoverOf(o observed) string {
	_, value := o.takes()
	return value
}

func TestTheBrakeNamesWhoWouldLoseTheBundle(t *testing.T) {
	few := losing(5, "clusters", "c%d")
	few.targets = make([]target, 1) // which keeps it
	for name, row := range map[string]struct {
		o    observed
		want string
	}{
		"few are taken away": {few, ""},
		"all of several": {losing(2, "clusters", "c%d"),
			"2 of the 2 Clusters with the Bundle would lose it, although the Bundle has not changed: c0, c1; "},
		"those of its workspace": {losing(6, "clusters", "c%d"),
			"6 of the 6 Clusters with the Bundle would lose it, although the Bundle has not changed: c0, c1, c2, c3, c4, c5; "},
		"those of another one": {losing(6, "team", "c%d"), ": team/c0, team/c1, team/c2, team/c3, team/c4, team/c5; "},
		"of many the first ten": {losing(1000, "clusters", "c%03d"),
			": c000, c001, c002, c003, c004, c005, c006, c007, c008, c009 and 990 more; "},
		"with names that are long": {losing(1000, strings.Repeat("n", 63), strings.Repeat("c", 59)+"%03d"), " and 990 more; "},
	} {
		got := row.o.brake()
		conditions := []fleet.Condition{processed(row.o, nil)}
		message, value := view.HeldRemoval(&fleet.Bundle{Status: fleet.BundleStatus{Conditions: conditions}})
		if is := ready(row.o, nil, fleet.BundleSummary{}); (is.Reason == reasons.RemovalHeld) != (got != "") {
			t.Errorf("%s: Ready is %+v", name, is)
		}
		if message != got || !strings.HasSuffix(got, value) || (value == "") != (got == "") {
			t.Errorf("%s: of %s users see %q to be confirmed by %q", name, got, message, value)
		}
		if !strings.Contains(got, row.want) || (got == "") != (row.want == "") || len(got) > kube.MaxMessage/4 {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestWhatAnotherHubHasDeliveredIsChangedOnlyByAnEditOrAConfirmation(t *testing.T) {
	taken := func(reason, has string, observedGeneration int64, gone int) observed {
		o := losing(gone, "clusters", "gone%d")
		o.bundle.Generation, o.bundle.Status.ObservedGeneration = 2, observedGeneration
		o.bundle.Status.Conditions[0].Reason = reason
		if reason == "" {
			o.bundle.Status.Conditions = nil
		}
		d := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: fleet.BundleDeploymentSpec{DeploymentID: has}}
		wants := &fleet.BundleDeployment{Spec: fleet.BundleDeploymentSpec{DeploymentID: "ours"}}
		o.targets = []target{{
			cluster: &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "a"}}, desired: wants, deployment: d,
		}}
		return o
	}
	ofThisHub := func(o observed) observed {
		o.ours = true
		return o
	}
	ofAgent := func(o observed) observed {
		o.bundle.Labels = map[string]string{fleet.LabelAgent: "true"}
		return o
	}
	for name, row := range map[string]struct {
		o    observed
		want string
	}{
		"seen for the first time":             {taken("", "theirs", 2, 0), "1 would get another version: a; deployed objects"},
		"whatever the other hub has observed": {taken("", "theirs", 0, 0), "1 would get another version: a; deployed objects"},
		"with one that would lose it": {taken("", "theirs", 2, 1),
			"1 would get another version: a; 1 would lose it: gone0; deployed objects"},
		"and still not confirmed":       {taken(reasons.TakeoverHeld, "theirs", 2, 0), "1 would get another version: a; deployed objects"},
		"the same by the rules of both": {taken("", "ours", 2, 0), ""},
		"held back by the other hub":    {taken("", "", 2, 0), ""},
		"edited since":                  {taken(reasons.TakeoverHeld, "theirs", 1, 0), ""},
		"processed before":              {taken(reasons.Processed, "theirs", 2, 1), ""},
		"of an agent":                   {ofAgent(taken("", "theirs", 2, 0)), ""},
		"first deployed by this hub":    {ofThisHub(taken("", "theirs", 2, 0)), ""},
	} {
		got := row.o.takeover()
		if !strings.Contains(got, row.want) || (got == "") != (row.want == "") {
			t.Errorf("%s: %q", name, got)
		}
		if row.want == "" {
			continue
		}
		if decide(row.o).release[0] {
			t.Errorf("%s: it is released", name)
		}
		_, value := view.HeldRemoval(&fleet.Bundle{Status: fleet.BundleStatus{Conditions: []fleet.Condition{processed(row.o, nil)}}})
		row.o.bundle.Annotations = map[string]string{fleet.AnnotationConfirmRemoval: value}
		if got := row.o.takeover(); got != "" || !decide(row.o).release[0] {
			t.Errorf("%s: after it is confirmed by %q: %q", name, value, got)
		}
	}
}
