// Package notify sends the changes of members to the receivers in the hub's settings: CloudEvents
// by HTTP, signed by Standard Webhooks.
//
// Notify reads the Secrets with the signing keys and emits Events on the hub's ConfigMap. Its
// invariant: no receiver delays the hub or another receiver. Each has a queue with a maximum and a
// goroutine of its own, and each request a time limit. A receiver gets each change at least once
// while the hub leads; a queue ends with its process. No log, Event or metric contains a URL or a
// key.
package notify

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/history"
	"github.com/muster-fleet/muster/internal/hub/runtime/eventlimit"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

// Notifier sends changes to the sinks in the settings. A nil Notifier sends none.
type Notifier struct {
	client    client.Client
	live      client.Reader
	clock     clock.Clock
	recorder  events.EventRecorder
	config    *settings.Controller
	namespace string
	changed   <-chan event.GenericEvent
	limiter   *eventlimit.Limiter
	// timeout bounds a request, from the name resolution to the end of the answer.
	timeout time.Duration
	sent    *counters

	mu sync.Mutex
	// queues by the names of their sinks.
	queues map[string]*queue
}

// Deps holds the dependencies of a Notifier.
type Deps struct {
	// Client has the scheme of the objects; Live reads the Secrets with the keys.
	Client client.Client
	Live   client.Reader
	// Clock is the machine's clock.
	Clock    clock.Clock
	Recorder events.EventRecorder
	Config   *settings.Controller
	// Namespace is the hub's own namespace.
	Namespace string
}

// New returns a Notifier. Call it before the settings' controller starts.
func New(deps Deps) *Notifier {
	return &Notifier{
		client: deps.Client, live: deps.Live, clock: deps.Clock, recorder: deps.Recorder, config: deps.Config, namespace: deps.Namespace,
		changed: deps.Config.Subscribe(), limiter: eventlimit.NewLimiter(deps.Clock), timeout: requestTimeout, sent: newCounters(),
		queues: map[string]*queue{},
	}
}

// Start sends until the context ends. Only the leader runs it.
func (n *Notifier) Start(ctx context.Context) error {
	log := logr.FromContextOrDiscard(ctx).WithName("notify")
	running := map[string]context.CancelFunc{}
	var workers sync.WaitGroup
	defer workers.Wait()
	for {
		sinks := n.config.Current().Notifications
		for _, sink := range sinks {
			if running[sink.Name] == nil {
				ctx, cancel := context.WithCancel(ctx)
				running[sink.Name] = cancel
				worker := newWorker(n, sink.Name, log.WithValues("sink", sink.Name))
				workers.Go(func() { worker.run(ctx) })
			}
		}
		for name, cancel := range running {
			if _, found := n.sink(name); !found {
				cancel()
				delete(running, name)
				n.forget(name)
			}
		}
		select {
		case <-ctx.Done():
			for _, cancel := range running {
				cancel()
			}
			return nil
		case <-n.changed:
			n.wakeAll()
		}
	}
}

// sink returns the settings of a sink.
func (n *Notifier) sink(name string) (settings.Sink, bool) {
	for _, sink := range n.config.Current().Notifications {
		if sink.Name == name {
			return sink, true
		}
	}
	return settings.Sink{}, false
}

// queue returns the queue of a sink.
func (n *Notifier) queue(name string) *queue {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.queues[name] == nil {
		n.queues[name] = newQueue()
	}
	return n.queues[name]
}

// forget drops the queue and the metrics of a sink removed from the settings.
func (n *Notifier) forget(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.queues, name)
	n.sent.forget(name)
}

// wakeAll ends the pauses of all workers, because their settings may have changed.
func (n *Notifier) wakeAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, q := range n.queues {
		q.retryNow()
	}
}

// Tell queues changes of a member or a request for all interested sinks. It never waits. It leaves
// out changes of a frequently changing object, like its Events.
func (n *Notifier) Tell(o client.Object, state string, changes ...history.Change) {
	if n == nil || len(changes) == 0 {
		return
	}
	current := n.config.Current()
	if len(current.Notifications) == 0 {
		return
	}
	gvk, err := apiutil.GVKForObject(o, n.client.Scheme())
	if err != nil {
		return // no kind of the hub: a bug, found by the tests of each caller
	}
	now := n.clock.Now()
	for _, change := range changes {
		if !n.limiter.Accept(o.GetUID(), string(change.Reason)) {
			continue
		}
		event := cloudEvent(gvk.Kind, o, state, change, current.APIServerURL, now)
		body, err := json.Marshal(event)
		if err != nil {
			continue // strings and a time always have a form
		}
		for i := range current.Notifications {
			if sink := &current.Notifications[i]; sink.Wants(change.Reason, o.GetNamespace()) {
				dropped := n.queue(sink.Name).push(message{id: event.ID, body: body, since: now})
				n.sent.add(sink.Name, resultDropped, dropped)
			}
		}
	}
}

// Event is the body of a notification: a CloudEvent in structured mode.
type Event struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject"`
	Time            time.Time `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	Data            Data      `json:"data"`
}

// Data is the changed member or request, and its change.
type Data struct {
	Kind      string                       `json:"kind"`
	Namespace string                       `json:"namespace,omitempty"`
	Name      string                       `json:"name"`
	UID       string                       `json:"uid"`
	Reason    clusterv1beta1.HistoryReason `json:"reason"`
	Message   string                       `json:"message"`
	// State is the state of the agent, or of the request, after the change.
	State string `json:"state,omitempty"`
}

// cloudEvent returns the notification of a change.
func cloudEvent(kind string, o client.Object, state string, change history.Change, hub string, now time.Time) Event {
	subject := kind + "/" + o.GetName()
	if o.GetNamespace() != "" {
		subject = kind + "/" + o.GetNamespace() + "/" + o.GetName()
	}
	if hub == "" {
		hub = "/muster-hub"
	}
	return Event{
		SpecVersion: "1.0", ID: "msg_" + string(uuid.NewUUID()), Source: hub, Type: TypeOf(change.Reason), Subject: subject,
		Time: now.UTC().Truncate(time.Millisecond), DataContentType: "application/json",
		Data: Data{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: string(o.GetUID()), Reason: change.Reason,
			Message: change.Message, State: state},
	}
}

// TypeOf returns the type of the CloudEvent of a change, such as io.muster.member.agent-updated.
func TypeOf(reason clusterv1beta1.HistoryReason) string {
	text := []byte("io.muster.member.")
	for i, c := range []byte(reason) {
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				text = append(text, '-')
			}
			c += 'a' - 'A'
		}
		text = append(text, c)
	}
	return string(text)
}
