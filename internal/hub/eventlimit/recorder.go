// Package eventlimit bounds how many Events are recorded about one object. The recorder of events.k8s.io has no limit, and an Event of another resource
// version of the object is another Event, so that a member whose report flaps would fill the hub's etcd.
//
// Its invariant: at most Burst and twelve Events an hour are recorded about one object. The conditions of the object have the rest.
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

// Recorder records Events about each object at a bounded rate.
type Recorder struct {
	recorder events.EventRecorder
	clock    clock.PassiveClock

	mu sync.Mutex
	// limiters are by the UID of the object.
	limiters *lru.Cache
}

var _ events.EventRecorder = (*Recorder)(nil)

// New bounds what a recorder records.
func New(recorder events.EventRecorder, clock clock.PassiveClock) *Recorder {
	return &Recorder{recorder: recorder, clock: clock, limiters: lru.New(maxObjects)}
}

// Eventf records an Event, with as much of the note as there is room for, unless there were too many about the object.
func (r *Recorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	if object, err := meta.Accessor(regarding); err == nil && !r.limiter(object.GetUID()).TryAccept() {
		return
	}
	r.recorder.Eventf(regarding, related, eventtype, reason, action, "%s", kube.Clip(fmt.Sprintf(note, args...), maxNote-len("...")))
}

// limiter returns the limiter of an object. Objects without a UID, which are not created yet, share one.
func (r *Recorder) limiter(uid types.UID) flowcontrol.PassiveRateLimiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.limiters.Get(uid); ok {
		return known.(flowcontrol.PassiveRateLimiter)
	}
	made := flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(float32(1/Period.Seconds()), Burst, r.clock)
	r.limiters.Add(uid, made)
	return made
}
