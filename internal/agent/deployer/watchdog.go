package deployer

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
)

// watchdog follows one run of the program: what it is at work on, until when it has to be done with that, and when it was heard last.
type watchdog struct {
	clock clock.Clock
	// silence is how long the program may say nothing.
	silence time.Duration

	mu    sync.Mutex
	heard time.Time
	// deaf says that an answer is being acted on, so that the next ones are not heard.
	deaf     bool
	underWay map[string]timed
	// changed tells that a deadline may have; its buffer is 1.
	changed chan struct{}
	// overdue is what took too long, stuck why the program was killed.
	overdue *Action
	stuck   string
}

type timed struct {
	Action
	until time.Time
}

func newWatchdog(clk clock.Clock, silence time.Duration) *watchdog {
	return &watchdog{clock: clk, silence: silence, heard: clk.Now(), underWay: map[string]timed{}, changed: make(chan struct{}, 1)}
}

// listens says that the next answers are heard again.
func (w *watchdog) listens() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard, w.deaf = w.clock.Now(), false
}

// take takes note of what the program says, and that nothing else is heard until listens is called.
func (w *watchdog) take(answer Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard, w.deaf = w.clock.Now(), true
	if answer.Begun != nil {
		w.underWay[answer.Begun.Name] = timed{*answer.Begun, w.heard.Add(answer.Begun.Within)}
	}
	if answer.Ended != nil {
		delete(w.underWay, answer.Ended.Name)
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// run calls kill when the program makes no progress, and returns then or when ctx ends.
func (w *watchdog) run(ctx context.Context, kill func()) {
	for {
		wait := w.look()
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

// look is how long the program may go on without a word; if that is over it notes why.
func (w *watchdog) look() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	if w.deaf {
		return w.silence // what it says in the meantime is not known yet
	}
	wait := w.heard.Add(w.silence).Sub(now)
	if wait <= 0 {
		w.stuck = fmt.Sprintf("it gave no sign of life for %s and was killed", w.silence)
	}
	for _, name := range slices.Sorted(maps.Keys(w.underWay)) {
		action := w.underWay[name]
		left := action.until.Sub(now)
		if left <= 0 && w.overdue == nil {
			w.overdue = &action.Action
			w.stuck = fmt.Sprintf("it was not done with that after %s and was killed", action.Within)
		}
		wait = min(wait, left)
	}
	return wait
}

// under is what the program was at work on, or what took too long, and why it was killed, if it was.
func (w *watchdog) under() (actions []Action, stuck string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.overdue != nil {
		return []Action{*w.overdue}, w.stuck
	}
	for _, name := range slices.Sorted(maps.Keys(w.underWay)) {
		actions = append(actions, w.underWay[name].Action)
	}
	return actions, w.stuck
}

// lastWords passes on what the program says on its standard error, and remembers why Go's runtime ended it.
type lastWords struct {
	to    io.Writer
	cause string
	line  []byte
}

// longest is how much of a line is looked at.
const longest = 200

func (l *lastWords) Write(text []byte) (int, error) {
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

// read knows the sentences of the runtime. What a library panics with may hold what was in a Secret.
func (l *lastWords) read(line string) {
	why, fatal := strings.CutPrefix(line, "fatal error: ")
	panicked, ok := strings.CutPrefix(line, "panic: ")
	switch {
	case fatal && strings.Contains(why, "out of memory"):
		why = "it ran out of memory"
	case fatal:
	case ok && strings.HasPrefix(panicked, "runtime error: "):
		why = panicked
	case ok:
		why = "it panicked, and the agent's log says why"
	default:
		return
	}
	l.cause = cmp.Or(l.cause, why)
}
