package dashboard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/fleet/decision"
	"github.com/muster-fleet/muster/internal/ui/drain"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// Objects of a drain, outside the cache of the fleet.
const (
	evictions = "clusterresourceplacementevictions"
	works     = "works"
)

const (
	// drainsFor limits the time of a drain, as in the command line; drainsEvery is its interval of
	// reads.
	drainsFor, drainsEvery = 15 * time.Minute, 2 * time.Second
	// mostDrains limits the concurrent drains, mostSteps the last steps of each.
	mostDrains, mostSteps = mostChanged, 20
	// drainShown is the time to show the end of a drain.
	drainShown = time.Hour
)

// shownDrain is the progress of a drain that this process began for a visitor.
type shownDrain struct {
	UID   types.UID
	By    string
	Began time.Time
	// Steps are the last states, the newest last; Stays are the objects that do not move.
	Steps, Stays []string
	Moved        int
	// Ended is the time of the end; zero before it. Problem is the reason for an early end.
	Ended   time.Time
	Problem string
}

// Running reports whether the drain goes on.
func (d *shownDrain) Running() bool { return d.Ended.IsZero() }

// drains are the drains of this process, by the names of their members.
type drains struct {
	mu  sync.Mutex
	all map[string]*shownDrain
}

// begin adds a drain of a member.
func (ds *drains) begin(member client.Object, user string, now time.Time) error {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	running := 0
	for name, d := range ds.all {
		switch {
		case d.Running() && d.UID == member.GetUID():
			return fmt.Errorf("%s is being drained already", view.Title(member))
		case d.Running():
			running++
		case now.Sub(d.Ended) > drainShown:
			delete(ds.all, name)
		}
	}
	if running >= mostDrains {
		return fmt.Errorf("%d members are being drained: try again when one of these drains has ended", running)
	}
	if ds.all == nil {
		ds.all = map[string]*shownDrain{}
	}
	ds.all[view.NameOf(member)] = &shownDrain{UID: member.GetUID(), By: user, Began: now}
	return nil
}

// change changes a drain, unless a later member of the name has replaced it.
func (ds *drains) change(name string, uid types.UID, how func(*shownDrain)) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if d := ds.all[name]; d != nil && d.UID == uid {
		how(d)
	}
}

// of returns a copy of the drain of a member by a visitor; nil without one. Other visitors see the
// numbers in the annotation of the member.
func (ds *drains) of(member client.Object, visitor string) *shownDrain {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d := ds.all[view.NameOf(member)]
	if d == nil || d.UID != member.GetUID() || d.By != visitor {
		return nil
	}
	shown := *d
	shown.Steps, shown.Stays = append([]string(nil), d.Steps...), append([]string(nil), d.Stays...)
	return &shown
}

// mark changes when the drain of a member does.
func (ds *drains) mark(name string) []string {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d := ds.all[name]
	if d == nil {
		return nil
	}
	return append([]string{d.Began.String(), d.Ended.String(), d.Problem}, d.Steps...)
}

// drain cordons a member at once, and then moves its placements as the visitor, also after the
// visitor has left the page. It ends when a user uncordons the member.
func (s *Server) drain(ctx context.Context, v *visitor, member client.Object) error {
	refused, err := drainRefused(ctx, v, member)
	if err != nil {
		return err
	}
	if refused != "" {
		return apierrors.NewForbidden(schema.GroupResource{Resource: evictions}, member.GetName(), errors.New(refused))
	}
	if err := drain.Refusal(member); err != nil {
		return &inputError{err}
	}
	if err := s.drains.begin(member, v.name, time.Now()); err != nil {
		return &inputError{err}
	}
	member = member.DeepCopyObject().(client.Object) // the caller continues to read its own
	name, uid := view.NameOf(member), member.GetUID()
	end := func(result drain.Result, err error) {
		s.drains.change(name, uid, func(d *shownDrain) {
			d.Ended, d.Moved = time.Now(), result.Moved
			for _, stay := range result.Stays {
				d.Stays = append(d.Stays, stay.String())
			}
			if err != nil {
				d.Problem = err.Error()
			}
		})
	}
	if err := decision.Cordon.Write(ctx, v, member); err != nil {
		end(drain.Result{}, err)
		return err
	}
	d := &drain.Drain{Hub: v, Member: member, Timeout: drainsFor, Every: drainsEvery, Say: func(text string) {
		s.drains.change(name, uid, func(d *shownDrain) { d.step(text) })
	}}
	go func() { end(d.Run(s.ctx)) }()
	return nil
}

// step adds a state, unless it is unchanged.
func (d *shownDrain) step(text string) {
	if len(d.Steps) > 0 && d.Steps[len(d.Steps)-1] == text {
		return
	}
	d.Steps = append(d.Steps, text)
	d.Steps = d.Steps[max(0, len(d.Steps)-mostSteps):]
}

// drainRefused returns the rights that a visitor lacks to drain a member; empty if they may.
func drainRefused(ctx context.Context, v *visitor, member client.Object) (string, error) {
	resource := memberClusters
	if member.GetNamespace() != "" {
		resource = clusters
	}
	verbs := []string{"patch", "cordon"}
	for _, right := range []struct {
		verbs               []string
		resource, namespace string
	}{{verbs, resource, member.GetNamespace()}, {evictionVerbs, evictions, ""}, {[]string{"list"}, works, view.MemberNamespace(member)}} {
		for _, verb := range right.verbs {
			permitted, err := v.may(ctx, verb, right.resource, right.namespace)
			if err != nil {
				return "", err
			}
			if !permitted {
				return needs(right.resource, right.verbs...), nil
			}
		}
	}
	return "", nil
}

// evictionVerbs are the rights to evictions for a drain.
var evictionVerbs = []string{"create", "get", "delete"}

// needs returns the sentence about missing rights.
func needs(resource string, verbs ...string) string {
	return fmt.Sprintf("You need the right to %s %s.", strings.Join(verbs, " and "), resource)
}
