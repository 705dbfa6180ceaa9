package supervise

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/retry"
)

const (
	// firstDelay is the delay of a BundleDeployment after the first crash on it. Each further crash
	// doubles the delay, up to lastDelay.
	firstDelay = 10 * time.Second
	lastDelay  = time.Hour
)

// suspects are the BundleDeployments suspected of a crash of the program, kept from run to run.
type suspects struct {
	mu     sync.Mutex
	byName map[string]*suspect
}

type suspect struct {
	protocol.Suspect
	// times is the number of crashes on it, in this generation.
	times int
}

// list returns the suspects for the next order.
func (s *suspects) list() []protocol.Suspect {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []protocol.Suspect
	for _, suspect := range s.byName {
		list = append(list, suspect.Suspect)
	}
	slices.SortFunc(list, func(a, b protocol.Suspect) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// clear drops a suspect after the program has survived it.
func (s *suspects) clear(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byName, name)
}

// add adds the actions in flight at a crash, and returns the culprit, if it is known.
func (s *suspects) add(inFlight []protocol.Action, cause string, now time.Time) (culprit string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName == nil {
		s.byName = map[string]*suspect{}
	}
	// A program crashes while it renders or compares, not while it waits for a hook.
	if busy := slices.DeleteFunc(slices.Clone(inFlight), func(a protocol.Action) bool { return a.Rendered }); len(busy) > 0 {
		inFlight = busy
	}
	for _, action := range inFlight {
		one := s.byName[action.Name]
		if one == nil || one.UID != action.UID || one.Generation != action.Generation {
			one = &suspect{Suspect: protocol.Suspect{Name: action.Name, UID: action.UID, Generation: action.Generation}}
			s.byName[action.Name] = one
		}
		if len(inFlight) > 1 {
			one.RetryAt = time.Time{} // only another run finds the one among them
			continue
		}
		culprit = action.Name
		one.times++
		one.RetryAt = now.Add(retry.Doubled(firstDelay, one.times, lastDelay))
		one.Message = fmt.Sprintf("%s, which deploys on this cluster, ended while it was at work on this Bundle, %s: %s. The agent retries at "+
			"%s, or at once when the Bundle changes: look for a template with a huge or endless result, or give the agent more memory",
			protocol.Program, count(one.times), cause, one.RetryAt.UTC().Format(time.RFC3339))
	}
	return culprit
}

func count(times int) string {
	if times == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", times)
}
