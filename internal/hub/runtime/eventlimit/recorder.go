// Package eventlimit bounds the number of Events about one object. The recorder of events.k8s.io
// has no limit, and it emits another Event for each resource version of the object. A member with a
// flapping report would fill the hub's etcd.
//
// Its invariant: it emits at most Burst and twelve Events an hour about one object. Each reason for
// a lost access or agent has the same allowance again. The conditions of the object show the rest.
package eventlimit

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// Burst is the number of Events about an object without a pause.
	Burst = 25
	// Period is the interval between Events after a burst. Both values equal those in the recorder of
	// core/v1 Events.
	Period = 5 * time.Minute
	// maxObjects bounds the number of limiters; the least recently used are evicted first.
	maxObjects = 16384
	// maxNote is the longest note for an API server; a longer note makes it reject the whole Event.
	maxNote = 1024
)

// reserved lists the reasons with an allowance of their own. Other Events about the object cannot
// exhaust it.
var reserved = map[string]bool{"Revoked": true, "IdentityMissing": true, "AgentLost": true}

// allowance identifies a limiter.
type allowance struct {
	object types.UID
	// reason is the reserved reason; "" for all others together.
	reason string
}

// Limiter bounds the rate of Events about each object.
type Limiter struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	// limiters by allowance.
	limiters *lru.Cache
}

// NewLimiter returns a Limiter.
func NewLimiter(clock clock.PassiveClock) *Limiter {
	return &Limiter{clock: clock, limiters: lru.New(maxObjects)}
}

// Accept reports whether there is room for a reason about an object.
func (l *Limiter) Accept(object types.UID, reason string) bool {
	of := allowance{object: object}
	if reserved[reason] {
		of.reason = reason
	}
	return l.limiter(of).TryAccept()
}

// limiter returns the limiter of an allowance. Objects without a UID are not created yet, and share
// one.
func (l *Limiter) limiter(of allowance) flowcontrol.PassiveRateLimiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.limiters.Get(of); ok {
		return known.(flowcontrol.PassiveRateLimiter)
	}
	made := flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(float32(1/Period.Seconds()), Burst, l.clock)
	l.limiters.Add(of, made)
	return made
}

// Recorder emits Events about each object at a bounded rate.
type Recorder struct {
	recorder events.EventRecorder
	limiter  *Limiter
}

var _ events.EventRecorder = (*Recorder)(nil)

// New returns a Recorder with a limited rate on top of another recorder.
func New(recorder events.EventRecorder, clock clock.PassiveClock) *Recorder {
	return &Recorder{recorder: recorder, limiter: NewLimiter(clock)}
}

// Eventf emits an Event, with a note shortened to fit, unless there were too many about the object.
func (r *Recorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	if object, err := meta.Accessor(regarding); err == nil && !r.limiter.Accept(object.GetUID(), reason) {
		return
	}
	r.recorder.Eventf(regarding, related, eventtype, reason, action, "%s", kube.Clip(fmt.Sprintf(note, args...), maxNote-len("...")))
}
