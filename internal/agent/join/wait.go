package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/retry"
)

const (
	// unreadAfter is when a hub that has not granted the right to read the request is called absent.
	unreadAfter = 10 * time.Second
	// renewAfter is when a request that the agent may not read is made anew: the agent cannot tell a
	// request that is gone from a hub that has not looked at it.
	renewAfter = 10 * time.Minute
)

// waiter waits for the answer to one request.
type waiter struct {
	*Joiner
	hub           *hubclient.Hub
	registrations *hubclient.Registrations
	request       *fleet.ClusterRegistration
	// dropped are the labels that the hub did not take, with the reasons.
	dropped []string
	// denied is that somebody has denied the request, who may think better of it as long as
	// the request is there.
	denied *Refusal
}

// wait returns the sealed answer.
func (w *waiter) wait(ctx context.Context) ([]byte, error) {
	sealed, err := w.answered(ctx)
	if errors.Is(err, errGone) && w.denied != nil {
		return nil, w.denied
	}
	return sealed, err
}

func (w *waiter) answered(ctx context.Context) ([]byte, error) {
	for backoff := retry.Soon(); ; {
		found, err := w.read(ctx)
		if err != nil {
			return nil, err
		}
		sealed, done, err := w.answer(found.Status)
		if done {
			return sealed, err
		}
		sealed, again, err := w.watch(ctx)
		if !again {
			return sealed, err
		}
		if err := retry.Wait(ctx, w.Clock, backoff.Step()); err != nil {
			return nil, err
		}
	}
}

// read reads the request until the hub lets it: the right to read it is granted with
// the first reconcile.
func (w *waiter) read(ctx context.Context) (*fleet.ClusterRegistration, error) {
	start, quick, slow := w.Clock.Now(), retry.Soon(), retry.Watch()
	slow.Cap = 5 * time.Second
	var unauthorized time.Time
	for {
		found, err := get(ctx, w.registrations, w.request.Name)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		result, backoff := hubclient.Classify(err), &quick
		if result != hubclient.Unauthorized {
			unauthorized = time.Time{}
		}
		switch result {
		case hubclient.Accepted:
			return w.sameRequest(found)
		case hubclient.NotFound:
			return nil, errGone
		case hubclient.Forbidden:
			if w.Clock.Since(start) >= renewAfter {
				return nil, errGone
			}
			if w.Clock.Since(start) >= unreadAfter {
				w.Progress(fmt.Sprintf("the hub has not looked at request %s yet: is muster-hub running and serving workspace %s?",
					w.name(), w.Bootstrap.Workspace))
				backoff = &slow
			}
		case hubclient.Unauthorized:
			if unauthorized.IsZero() {
				unauthorized = w.Clock.Now()
			} else if w.Clock.Since(unauthorized) >= 2*time.Second {
				return nil, &Refusal{Message: w.refused(w.hub, result, err)}
			}
		default:
			w.Progress("waiting for the answer to request " + w.name() + ": " + w.hub.Explain(err))
			backoff = &slow
		}
		if err := retry.Wait(ctx, w.Clock, backoff.Step()); err != nil {
			return nil, err
		}
	}
}

// watch watches the request until it is answered; again is true if the request has to be read anew.
func (w *waiter) watch(ctx context.Context) (sealed []byte, again bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	changed := make(chan struct{}, 1)
	mirror := kubeclient.NewMirror[*fleet.ClusterRegistration](changed)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		kubeclient.FollowOne(ctx, mirror, w.registrations, w.request.Name)
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
			if hubclient.Classify(failure) != hubclient.Unreachable {
				return nil, true, nil
			}
			continue
		}
		found, synced := mirror.Get()
		if !synced {
			continue
		}
		if found == nil {
			// A list may be older than the request. With the request goes the right to read it.
			switch _, err := get(ctx, w.registrations, w.request.Name); hubclient.Classify(err) {
			case hubclient.NotFound, hubclient.Forbidden:
				return nil, false, errGone
			default:
				return nil, true, nil
			}
		}
		if _, err := w.sameRequest(found); err != nil {
			return nil, false, err
		}
		if sealed, done, err := w.answer(found.Status); done {
			return sealed, false, err
		}
	}
}

// sameRequest notices a request that was deleted and made anew under the same name, whose answer
// is not for our key.
func (w *waiter) sameRequest(found *fleet.ClusterRegistration) (*fleet.ClusterRegistration, error) {
	if found.UID != w.request.UID {
		return nil, errGone
	}
	return found, nil
}

// answer reads the hub's answer; done is false as long as there is none.
func (w *waiter) answer(status fleet.ClusterRegistrationStatus) (sealed []byte, done bool, err error) {
	w.denied = nil
	switch {
	case status.State == fleet.RegistrationDenied:
		refusal := &Refusal{Message: fmt.Sprintf("the hub denied request %s (%s): %s; "+
			"this agent asks again when secret %s or configmap %s changes",
			w.name(), status.Reason, cmp.Or(status.Message, "the hub says no more"), w.secret(), w.Member.Namespace+"/"+naming.AgentConfigMap),
			Final: true}
		if status.Reason != fleet.ReasonNotApproved {
			return nil, true, refusal
		}
		w.denied = refusal
		w.Progress(refusal.Message + ", or when the request is approved after all")
		return nil, false, nil
	case len(status.Answer) > 0:
		w.dropped = status.DroppedLabels
		return status.Answer, true, nil
	case status.Granted && status.State == "":
		w.Progress(fmt.Sprintf("the hub granted request %s without an answer that this agent can read: "+
			"it is not a Muster hub, or its CRDs are old: upgrade the chart fleet-crd there", w.name()))
	case status.State == "":
		w.Progress(fmt.Sprintf("request %s waits for the hub", w.name()))
	default:
		w.Progress(fmt.Sprintf("request %s is %s (%s): %s", w.name(), status.State, status.Reason,
			cmp.Or(status.Message, "the hub says no more")))
	}
	return nil, false, nil
}

func (w *waiter) name() string { return w.request.Namespace + "/" + w.request.Name }
