package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Offers lets two controllers write the status of a new Cluster or MemberCluster once. One of them
// offers its first conditions, and the member's own controller writes them with its next change.
// Without such a change, the offering controller writes them itself after a moment.
//
// A killed hub loses its offers. Both controllers then decide again.
type Offers struct {
	mu sync.Mutex
	of map[types.NamespacedName]offer
}

type offer struct {
	uid   types.UID
	until time.Time
	add   func(member client.Object)
}

// NewOffers returns Offers without an entry.
func NewOffers() *Offers { return &Offers{of: map[types.NamespacedName]offer{}} }

// Make offers an addition to the status of a member, in place of an earlier one. It returns the
// time left until the caller writes the addition itself. The time counts from the first offer.
func (o *Offers) Make(member client.Object, now time.Time, moment time.Duration, add func(member client.Object)) time.Duration {
	if o == nil {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	key, made := client.ObjectKeyFromObject(member), offer{uid: member.GetUID(), until: now.Add(moment), add: add}
	if earlier, found := o.of[key]; found && earlier.uid == made.uid {
		made.until = earlier.until
	}
	o.of[key] = made
	return made.until.Sub(now)
}

// Withdraw ends the offer for a member, and reports whether there was one.
func (o *Offers) Withdraw(member types.NamespacedName) bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	_, found := o.of[member]
	delete(o.of, member)
	return found
}

// Accept returns the offered addition to the status of a member, nil if there is none. The offer
// lasts until the offering controller sees it in the status.
func (o *Offers) Accept(member client.Object, now time.Time) func(member client.Object) {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if found := o.of[client.ObjectKeyFromObject(member)]; found.uid == member.GetUID() && now.Before(found.until) {
		return found.add
	}
	return nil
}
