package notify

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

const (
	// firstPause and longestPause bound the pause after a failure. It doubles with each failure in a
	// row, and varies by half.
	firstPause   = time.Second
	longestPause = 5 * time.Minute
	// longestAsked bounds the pause requested by a receiver.
	longestAsked = time.Hour
	// attemptsInARow is the number of attempts before another message has its turn.
	attemptsInARow = 5
	// longestLife is the maximum age of a message.
	longestLife = 24 * time.Hour
	// announcePeriod is the time between two Events about a failing sink; an API server keeps them for
	// an hour.
	announcePeriod = 50 * time.Minute
)

// worker sends the messages of one sink, one after the other.
type worker struct {
	*Notifier
	name  string
	log   logr.Logger
	queue *queue
	// web sends to the sink of the settings, in to.
	to   settings.Sink
	web  *http.Client
	keys keys
	// failures counts the failed attempts in a row; announced is the time of the last Event about
	// them. dropping: the queue has been full since the last success, and the log reports it.
	failures  int
	announced time.Time
	dropping  bool
}

func newWorker(n *Notifier, name string, log logr.Logger) *worker {
	return &worker{Notifier: n, name: name, log: log, queue: n.queue(name)}
}

// run sends until the context ends.
func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		m, found := w.queue.first()
		if !found {
			select {
			case <-ctx.Done():
			case <-w.queue.more:
			}
			continue
		}
		w.wait(ctx, w.attempt(ctx, m))
	}
}

// wait waits for the next attempt, or for a change of the settings.
func (w *worker) wait(ctx context.Context, pause time.Duration) {
	if pause <= 0 {
		return
	}
	timer := w.clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	case <-w.queue.retry:
	}
}

// attempt sends a message, and returns the pause before the next attempt; zero after a success.
func (w *worker) attempt(ctx context.Context, m message) time.Duration {
	w.noteDropped()
	if age := w.clock.Since(m.since); age > longestLife {
		w.queue.done(m.id)
		w.sent.add(w.name, resultDropped, 1)
		w.log.Info("Notification was given up", "message", m.id, "failed", m.attempts)
		return 0
	}
	err := w.send(ctx, m)
	if ctx.Err() != nil {
		return 0
	}
	if err == nil {
		w.queue.done(m.id)
		w.sent.add(w.name, resultSent, 1)
		w.recovered()
		return 0
	}
	w.sent.add(w.name, resultFailed, 1)
	if err.refused {
		w.queue.done(m.id)
		w.log.Info("Receiver refuses the notification, which is not sent again", "message", m.id, "cause", err.Error())
		return 0
	}
	w.queue.failed(m.id)
	w.keys = keys{} // the Secret may have another key by now
	w.failing(err)
	return max(pauseAfter(w.failures, m.id), min(err.after, longestAsked))
}

// pauseAfter returns the pause after failures in a row.
func pauseAfter(failures int, id string) time.Duration {
	pause := longestPause
	if shift := failures - 1; shift < 10 {
		pause = min(pause, firstPause<<shift)
	}
	jitter := kube.Jitter(fmt.Sprintf("%s/%d", id, failures))
	return pause/2 + time.Duration(jitter*float64(pause)/2)
}

// noteDropped logs once that the queue is full.
func (w *worker) noteDropped() {
	if dropped := w.sent.of(w.name, resultDropped); dropped > 0 && !w.dropping && w.failures > 0 {
		w.dropping = true
		w.log.Info("Notifications are dropped, the oldest first, because the receiver does not accept them", "dropped", dropped,
			"kept", maxWaiting)
	}
}

// failing reports the failure of the sink: in the metrics, and once an hour in the log and in an
// Event.
func (w *worker) failing(err *sendError) {
	w.failures++
	w.sent.setFailing(w.name, true)
	now := w.clock.Now()
	if !w.announced.IsZero() && now.Before(w.announced.Add(announcePeriod)) {
		return
	}
	w.announced = now
	w.log.Info("Notifications fail, and are tried again", "cause", err.Error())
	w.recorder.Eventf(w.configMap(), nil, corev1.EventTypeWarning, reasons.NotificationsFail, "Notify",
		"notifications to %s fail, and are tried again: %v", w.name, err)
}

// recovered reports the recovery of the sink.
func (w *worker) recovered() {
	if w.failures == 0 {
		return
	}
	w.failures, w.announced, w.dropping = 0, time.Time{}, false
	w.sent.setFailing(w.name, false)
	w.log.Info("Notifications are sent again")
	w.recorder.Eventf(w.configMap(), nil, corev1.EventTypeNormal, reasons.NotificationsSent, "Notify",
		"notifications to %s are sent again", w.name)
}

func (w *worker) configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: naming.HubConfigMap}}
}
