package notify

import (
	"slices"
	"sync"
	"time"
)

// maxWaiting bounds the messages of a sink in memory, of about a kilobyte each. It holds the loss
// of a tenth of 10,000 members.
const maxWaiting = 1000

// message is a notification on its way to a sink.
type message struct {
	id   string
	body []byte
	// since is the time of the change.
	since time.Time
	// attempts is the number of failed requests.
	attempts int
}

// queue holds the messages of a sink, the oldest first.
type queue struct {
	mu      sync.Mutex
	waiting []message
	// more holds a token after a push, retry after a change of the settings.
	more, retry chan struct{}
}

func newQueue() *queue {
	return &queue{more: make(chan struct{}, 1), retry: make(chan struct{}, 1)}
}

// push adds a message, and returns the number of dropped messages.
func (q *queue) push(m message) (dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, m)
	if dropped = max(0, len(q.waiting)-maxWaiting); dropped > 0 {
		q.waiting = slices.Delete(q.waiting, 0, dropped)
	}
	signal(q.more)
	return dropped
}

// first returns the oldest message, and whether there is one.
func (q *queue) first() (message, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return message{}, false
	}
	return q.waiting[0], true
}

// done removes a message, unless it was dropped for another one.
func (q *queue) done(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.DeleteFunc(q.waiting, func(m message) bool { return m.id == id })
}

// failed counts an attempt of a message. After several, the message goes behind the others. An
// undeliverable message then does not hold them back.
func (q *queue) failed(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	index := slices.IndexFunc(q.waiting, func(m message) bool { return m.id == id })
	if index < 0 {
		return
	}
	q.waiting[index].attempts++
	if m := q.waiting[index]; m.attempts%attemptsInARow == 0 {
		q.waiting = append(slices.Delete(q.waiting, index, index+1), m)
	}
}

// retryNow ends the pause before the next attempt.
func (q *queue) retryNow() { signal(q.retry) }

func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
