package join

import (
	"context"
	"fmt"
	"time"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent/client"
	"github.com/muster-fleet/muster/internal/agent/remote"
	"github.com/muster-fleet/muster/internal/agent/retry"
	"github.com/muster-fleet/muster/internal/naming"
)

// unseenAfter is when a hub that has granted no reading right is called absent.
const unseenAfter = 10 * time.Second

// waiter waits for the answer to one request.
type waiter struct {
	*Joiner
	hub           *remote.Hub
	registrations *remote.Registrations
	request       *fleet.ClusterRegistration
}

// wait returns the sealed answer.
func (w *waiter) wait(ctx context.Context) ([]byte, error) {
	for {
		seen, err := w.firstLook(ctx)
		if err != nil {
			return nil, err
		}
		sealed, done, err := w.judge(seen.Status)
		if done {
			return sealed, err
		}
		sealed, again, err := w.follow(ctx)
		if !again {
			return sealed, err
		}
	}
}

// firstLook reads the request until the hub lets it: the right to read it is granted with the first reconcile.
func (w *waiter) firstLook(ctx context.Context) (*fleet.ClusterRegistration, error) {
	start, quick, slow := w.Clock.Now(), retry.Soon(), retry.Watch()
	slow.Cap = 5 * time.Second
	var unauthorized time.Time
	for {
		seen, err := get(ctx, w.registrations, w.request.Name)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		verdict, pace := remote.Classify(err), &quick
		if verdict != remote.Unauthorized {
			unauthorized = time.Time{}
		}
		switch verdict {
		case remote.Accepted:
			return w.sameRequest(seen)
		case remote.NotFound:
			return nil, errGone
		case remote.Forbidden:
			if w.Clock.Since(start) >= unseenAfter {
				w.Progress(fmt.Sprintf("the hub has not looked at request %s yet: is muster-hub running and serving workspace %s?",
					w.name(), w.Bootstrap.Workspace))
				pace = &slow
			}
		case remote.Unauthorized:
			if unauthorized.IsZero() {
				unauthorized = w.Clock.Now()
			} else if w.Clock.Since(unauthorized) >= 2*time.Second {
				return nil, &Refusal{Message: w.refused(w.hub, verdict, err)}
			}
		default:
			w.Progress("waiting for the answer to request " + w.name() + ": " + w.hub.Explain(err))
			pace = &slow
		}
		if err := retry.Wait(ctx, w.Clock, pace.Step()); err != nil {
			return nil, err
		}
	}
}

// follow watches the request until it is answered; again is true if it has to be looked at anew.
func (w *waiter) follow(ctx context.Context) (sealed []byte, again bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	changed := make(chan struct{}, 1)
	mirror := client.NewMirror[*fleet.ClusterRegistration](changed)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		client.FollowOne(ctx, mirror, w.registrations, w.request.Name)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	for {
		select {
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case <-changed:
		}
		if failure := mirror.Failure(); failure != nil {
			w.Progress("waiting for the answer to request " + w.name() + ": " + w.hub.Explain(failure))
			if remote.Classify(failure) != remote.Unreachable {
				return nil, true, nil
			}
			continue
		}
		seen, synced := mirror.Get()
		if !synced {
			continue
		}
		if seen == nil {
			return nil, false, errGone
		}
		if _, err := w.sameRequest(seen); err != nil {
			return nil, false, err
		}
		if sealed, done, err := w.judge(seen.Status); done {
			return sealed, false, err
		}
	}
}

// sameRequest notices a request that was deleted and made anew under the same name, whose answer is not for our key.
func (w *waiter) sameRequest(seen *fleet.ClusterRegistration) (*fleet.ClusterRegistration, error) {
	if seen.UID != w.request.UID {
		return nil, errGone
	}
	return seen, nil
}

// judge reads the hub's answer; done is false as long as there is none.
func (w *waiter) judge(status fleet.ClusterRegistrationStatus) (sealed []byte, done bool, err error) {
	switch {
	case status.State == fleet.RegistrationDenied:
		return nil, true, &Refusal{Message: fmt.Sprintf("the hub denied request %s (%s): %s; "+
			"this agent asks again when secret %s or configmap %s changes",
			w.name(), status.Reason, orUnsaid(status.Message), w.secret(), w.Member.Namespace+"/"+naming.AgentConfigMap), Final: true}
	case len(status.Answer) > 0:
		return status.Answer, true, nil
	case status.Granted && status.State == "":
		w.Progress(fmt.Sprintf("the hub granted request %s without an answer that this agent can read: "+
			"it is not a Muster hub, or its CRDs are old: upgrade the chart fleet-crd there", w.name()))
	case status.State == "":
		w.Progress(fmt.Sprintf("request %s waits for the hub", w.name()))
	default:
		w.Progress(fmt.Sprintf("request %s is %s (%s): %s", w.name(), status.State, status.Reason, orUnsaid(status.Message)))
	}
	return nil, false, nil
}

func (w *waiter) name() string { return w.request.Namespace + "/" + w.request.Name }

func orUnsaid(message string) string {
	if message == "" {
		return "the hub says no more"
	}
	return message
}
