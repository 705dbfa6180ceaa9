package agent

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/term"
)

// newHubKey returns the terms of a hub with a new key, by cluster.
func newHubKey(t *testing.T) func(cluster string) *clusterv1beta1.HubTerm {
	t.Helper()
	identity, err := term.NewIdentity()
	check(t, err)
	return identity.On
}

func TestOnlyTheMembershipsOnAnotherClusterOfTheHubAreLost(t *testing.T) {
	own, other := newHubKey(t), newHubKey(t)
	on := func(cluster string) *clusterv1beta1.HubTerm {
		if foreign, is := strings.CutPrefix(cluster, "other-"); is {
			return other(foreign)
		}
		return own(cluster)
	}
	at := func(pairs ...string) (list []membershipAt) {
		for _, pair := range pairs {
			report, cluster, _ := strings.Cut(pair, "@")
			list = append(list, membershipIn(types.UID(report), on(cluster)))
		}
		return list
	}
	for name, row := range map[string]struct {
		list    []membershipAt
		cluster string
		want    []string
	}{
		"none":                                     {nil, "a", nil},
		"the first":                                {at("1@a"), "a", nil},
		"registered again at the same hub":         {at("1@a", "2@a"), "a", nil},
		"restored on another cluster":              {at("1@a", "2@b"), "b", []string{"1"}},
		"restored, and not yet accepted there":     {at("1@a"), "b", []string{"1"}},
		"restored, and registered again there":     {at("1@a", "2@b", "3@b"), "b", []string{"1"}},
		"restored twice":                           {at("1@a", "2@b", "3@c"), "c", []string{"1", "2"}},
		"led back to the first, which is promoted": {at("1@a", "2@b"), "a", []string{"2"}},
		"at a hub with another key":                {at("1@a", "2@other-b"), "other-b", nil},
		"back at the hub, after its restore":       {at("1@a", "2@other-b", "3@c"), "c", []string{"1"}},
		"the report has moved with the hub":        {at("1@a", "1@b"), "b", nil},
	} {
		if diff := cmp.Diff(row.want, lostMemberships(row.list, on(row.cluster))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTheRememberedMembershipsAreBounded(t *testing.T) {
	var list []membershipAt
	for i := range 20 {
		list = remember(remember(list, membershipAt{fmt.Sprint(i), "k", "a"}), membershipAt{fmt.Sprint(i), "k", "a"})
	}
	if len(list) != maxMemberships || list[0].Report != "12" || list[7].Report != "19" {
		t.Errorf("they are %v", list)
	}
	for _, wrong := range []membershipAt{
		{"", "k", "a"}, {"1", "k", ""}, {"1", "", "a"}, {"1,2", "k", "a"}, {strings.Repeat("x", 64), "k", "a"}, {"1", "k", "a b"},
	} {
		if got := remember(list, wrong); cmp.Diff(list, got) != "" {
			t.Errorf("%v is remembered", wrong)
		}
	}
	uid := strings.Repeat("x", 63) // the longest one
	for i := range list {
		list[i] = membershipAt{uid[:62] + fmt.Sprint(i), uid, uid}
	}
	if got, err := decodeMemberships(encodeMemberships(list)); err != nil || cmp.Diff(list, got) != "" {
		t.Errorf("they are read as %v, %v", got, err)
	}
	for name, text := range map[string]string{"no JSON": "x", "another form": "{}", "too long": strings.Repeat(" ", maxMembershipsText+1)} {
		if got, err := decodeMemberships(text); err == nil || got != nil {
			t.Errorf("%s is read as %v", name, got)
		}
	}
	if got, err := decodeMemberships(`[{"report":"1) or (x","hub":"k","cluster":"a"},{"report":"2","hub":"k","cluster":"a"}]`); err != nil ||
		cmp.Diff([]membershipAt{{"2", "k", "a"}}, got) != "" {
		t.Errorf("a text that does not fit into a label is read as %v, %v", got, err)
	}
}

func TestAMembershipIsRememberedForTheObeyedHubOnly(t *testing.T) {
	at := hubTerms(t)
	other := hubTerms(t)
	report := func(uid string, of *clusterv1beta1.HubTerm) *clusterv1beta1.InternalMemberCluster {
		r := &clusterv1beta1.InternalMemberCluster{}
		r.UID, r.Spec.HubTerm = types.UID(uid), of
		return r
	}
	remembered := &terms{log: logr.Discard()}
	offer := func(uid string, of *clusterv1beta1.HubTerm, isNew bool, lost ...string) {
		t.Helper()
		remembered.raise(of)
		if got := remembered.enter(report(uid, of)); got != isNew {
			t.Errorf("the membership %s is new: %t", uid, got)
		}
		if diff := cmp.Diff(lost, remembered.lostMemberships()); diff != "" {
			t.Errorf("lost after %s (-want +got):\n%s", uid, diff)
		}
	}
	offer("0", nil, false)
	offer("1", at(1), true)
	offer("1", at(1), false)
	offer("2", at(2), true, "1")
	offer("old", at(1), false, "1")
	offer("3", other(1), true)
	offer("4", at(3), true, "1", "2")
}
