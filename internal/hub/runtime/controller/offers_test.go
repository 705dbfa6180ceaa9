package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestAnOfferIsWrittenByTheMembersControllerOrAfterAMoment(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	member := func(uid types.UID) *fleet.Cluster {
		return &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "edge", UID: uid}}
	}
	key := client.ObjectKeyFromObject(member("1"))
	state := func(text string) func(client.Object) {
		return func(o client.Object) { o.(*fleet.Cluster).Status.AgentState = text }
	}
	accepted := func(o *Offers, uid types.UID, now time.Time) string {
		cluster := member(uid)
		if add := o.Accept(cluster, now); add != nil {
			add(cluster)
		}
		return cluster.Status.AgentState
	}
	o := NewOffers()
	if wait := o.Make(member("1"), noon, Moment, state("first")); wait != Moment {
		t.Errorf("the caller waits for %s", wait)
	}
	if wait := o.Make(member("1"), noon.Add(time.Second), Moment, state("second")); wait != Moment-time.Second {
		t.Errorf("another offer extends the wait to %s", wait)
	}
	for name, row := range map[string]struct {
		uid  types.UID
		now  time.Time
		want string
	}{
		"the last offer is accepted":                  {"1", noon.Add(time.Second), "second"},
		"a member of the same name gets nothing":      {"2", noon.Add(time.Second), ""},
		"the caller writes it at the end of the wait": {"1", noon.Add(Moment), ""},
	} {
		if got := accepted(o, row.uid, row.now); got != row.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
	if wait := o.Make(member("2"), noon.Add(time.Hour), Moment, state("other")); wait != Moment {
		t.Errorf("the offer for a new member of the name waits for %s", wait)
	}
	if !o.Withdraw(key) || o.Withdraw(key) || accepted(o, "2", noon.Add(time.Hour)) != "" {
		t.Error("a withdrawn offer is still there")
	}
	var none *Offers
	if none.Make(member("1"), noon, Moment, state("none")) != 0 || none.Withdraw(key) || none.Accept(member("1"), noon) != nil {
		t.Error("without Offers, the caller does not write at once")
	}
}
