package supervise

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/kubeclient"
)

// watchdog watches one run of the program: the deadlines of its actions, and its last reply.
type watchdog struct {
	clock clock.Clock
	// silence is the longest time between two replies.
	silence time.Duration

	mu        sync.Mutex
	lastReply time.Time
	// handling is set while a reply is being handled, because later replies are not read yet.
	handling bool
	inFlight map[string]deadline
	// changed signals a possible change of a deadline; its buffer is 1.
	changed chan struct{}
	// overdue is the action that missed its deadline, stuck the reason for killing the program.
	overdue *protocol.Action
	stuck   string
}

type deadline struct {
	protocol.Action
	until time.Time
}

func newWatchdog(clk clock.Clock, silence time.Duration) *watchdog {
	return &watchdog{clock: clk, silence: silence, lastReply: clk.Now(), inFlight: map[string]deadline{}, changed: make(chan struct{}, 1)}
}

// handled marks the reply as handled: deadlines count again.
func (w *watchdog) handled() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastReply, w.handling = w.clock.Now(), false
	kubeclient.Notify(w.changed)
}

// observe notes a reply. The reply is in handling until handled is called.
func (w *watchdog) observe(reply protocol.Reply) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastReply, w.handling = w.clock.Now(), true
	if reply.Begun != nil {
		w.inFlight[reply.Begun.Name] = deadline{*reply.Begun, w.lastReply.Add(reply.Begun.Within)}
	}
	if reply.Ended != nil {
		delete(w.inFlight, reply.Ended.Name)
	}
	kubeclient.Notify(w.changed)
}

// run calls kill once the program makes no progress, then returns. It also returns when ctx ends.
func (w *watchdog) run(ctx context.Context, kill func()) {
	for {
		wait := w.remaining()
		if wait <= 0 {
			kill()
			return
		}
		timer := w.clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-w.changed:
			timer.Stop()
		case <-timer.C():
		}
	}
}

// remaining returns the time left without a reply. Once it is over, stuck has the reason.
func (w *watchdog) remaining() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	if w.handling {
		return w.silence // later replies are not read yet
	}
	wait := w.lastReply.Add(w.silence).Sub(now)
	if wait <= 0 {
		w.stuck = fmt.Sprintf("it did not respond for %s and was killed", w.silence)
	}
	for _, name := range slices.Sorted(maps.Keys(w.inFlight)) {
		action := w.inFlight[name]
		left := action.until.Sub(now)
		if left <= 0 && w.overdue == nil {
			w.overdue = &action.Action
			w.stuck = fmt.Sprintf("it did not finish within %s and was killed", action.Within)
		}
		wait = min(wait, left)
	}
	return wait
}

// inFlightOrOverdue returns the actions of the program, or only the overdue one with the reason for
// killing the program.
func (w *watchdog) inFlightOrOverdue() (actions []protocol.Action, stuck string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.overdue != nil {
		return []protocol.Action{*w.overdue}, w.stuck
	}
	for _, name := range slices.Sorted(maps.Keys(w.inFlight)) {
		actions = append(actions, w.inFlight[name].Action)
	}
	return actions, w.stuck
}

// crashReader passes on the program's standard error, and keeps the reason of a crash from Go's
// runtime.
type crashReader struct {
	to    io.Writer
	cause string
	line  []byte
}

// longest is the number of bytes read of a line.
const longest = 200

func (l *crashReader) Write(text []byte) (int, error) {
	for rest := text; len(rest) > 0; {
		line, more, ends := bytes.Cut(rest, []byte("\n"))
		l.line = append(l.line, line[:min(len(line), max(0, longest-len(l.line)))]...)
		if ends {
			l.read(string(l.line))
			l.line = l.line[:0]
		}
		rest = more
	}
	return l.to.Write(text)
}

// read keeps only messages of the runtime, because a library's message may contain the values of a
// Secret.
func (l *crashReader) read(line string) {
	why, fatal := strings.CutPrefix(line, "fatal error: ")
	panicked, ok := strings.CutPrefix(line, "panic: ")
	switch {
	case fatal && strings.Contains(why, "out of memory"):
		why = "it ran out of memory"
	case fatal:
	case ok && strings.HasPrefix(panicked, "runtime error: "):
		why = panicked
	case ok:
		why = "it panicked; read the agent's log"
	default:
		return
	}
	l.cause = cmp.Or(l.cause, why)
}
