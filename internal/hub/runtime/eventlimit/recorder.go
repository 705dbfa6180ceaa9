// Package eventlimit bounds how many Events are recorded about one object. The recorder of events.k8s.io has no limit, and an Event of another resource
// version of the object is another Event, so that a member whose report flaps would fill the hub's etcd.
//
// Its invariant: at most Burst and twelve Events an hour are recorded about one object, and as many again with
// each of the reasons that say that a member has lost its access or its agent. The conditions of the object have the rest.
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
	// Burst is how many Events about an object are recorded at once.
	Burst = 25
	// Period is how long it takes after that until one more is recorded. Both are those of the recorder of core/v1 Events.
	Period = 5 * time.Minute
	// maxObjects is how many objects are remembered; those without an Event for longest are forgotten.
	maxObjects = 16384
	// maxNote is the longest note that an API server takes; it refuses the whole Event otherwise.
	maxNote = 1024
)

// reserved are the reasons that have an allowance of their own, which no other Event about the object can use up.
var reserved = map[string]bool{"Revoked": true, "IdentityMissing": true, "AgentLost": true}

// allowance is what one limiter is for.
type allowance struct {
	object types.UID
	// reason is the reserved one; "" for all others together.
	reason string
}

// Recorder records Events about each object at a bounded rate.
type Recorder struct {
	recorder events.EventRecorder
	clock    clock.PassiveClock

	mu sync.Mutex
	// limiters are by allowance.
	limiters *lru.Cache
}

var _ events.EventRecorder = (*Recorder)(nil)

// New bounds what a recorder records.
func New(recorder events.EventRecorder, clock clock.PassiveClock) *Recorder {
	return &Recorder{recorder: recorder, clock: clock, limiters: lru.New(maxObjects)}
}

// Eventf records an Event, with as much of the note as there is room for, unless there were too many about the object.
func (r *Recorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	if object, err := meta.Accessor(regarding); err == nil {
		of := allowance{object: object.GetUID()}
		if reserved[reason] {
			of.reason = reason
		}
		if !r.limiter(of).TryAccept() {
			return
		}
	}
	r.recorder.Eventf(regarding, related, eventtype, reason, action, "%s", kube.Clip(fmt.Sprintf(note, args...), maxNote-len("...")))
}

// limiter returns the limiter of an allowance. Objects without a UID, which are not created yet, share one.
func (r *Recorder) limiter(of allowance) flowcontrol.PassiveRateLimiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.limiters.Get(of); ok {
		return known.(flowcontrol.PassiveRateLimiter)
	}
	made := flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(float32(1/Period.Seconds()), Burst, r.clock)
	r.limiters.Add(of, made)
	return made
}
