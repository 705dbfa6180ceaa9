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
	// unreadAfter is the time without the right to read the request before the agent reports the hub
	// as absent.
	unreadAfter = 10 * time.Second
	// renewAfter is the time until the agent replaces an unreadable request. It cannot distinguish a
	// deleted request from an unhandled one.
	renewAfter = 10 * time.Minute
)

// waiter waits for the answer to one request.
type waiter struct {
	*Joiner
	hub           *hubclient.Hub
	registrations *hubclient.Registrations
	request       *fleet.ClusterRegistration
	// dropped are the labels refused by the hub, with the reasons.
	dropped []string
	// denied is set if an administrator has denied the request. They may still approve it while it
	// exists.
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

// read reads the request, and retries until the hub allows it. The hub grants the right to read
// with its first reconcile.
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
				w.Progress(w.unread())
				backoff = &slow
			}
		case hubclient.Unauthorized:
			if unauthorized.IsZero() {
				unauthorized = w.Clock.Now()
				w.renewIdentity(ctx, w.hub)
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

// unread explains why the request is unreadable.
func (w *waiter) unread() string {
	if w.Bootstrap.Login != nil {
		return fmt.Sprintf("%s may not read request %s: have an administrator of the hub grant get, list and watch on clusterregistrations in "+
			"workspace %s", w.Bootstrap.loginRef(), w.name(), w.Bootstrap.Workspace)
	}
	return fmt.Sprintf("the hub has not processed request %s yet: check that muster-hub is running and serves workspace %s",
		w.name(), w.Bootstrap.Workspace)
}

// watch watches the request until it is answered; again is true if the request must be read again.
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
			// A list may be older than the request. The right to read ends with the request.
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

// sameRequest detects another request of the same name. Its answer is sealed for another key.
func (w *waiter) sameRequest(found *fleet.ClusterRegistration) (*fleet.ClusterRegistration, error) {
	if found.UID != w.request.UID {
		return nil, errGone
	}
	return found, nil
}

// answer reads the hub's answer; done is false while there is none.
func (w *waiter) answer(status fleet.ClusterRegistrationStatus) (sealed []byte, done bool, err error) {
	w.denied = nil
	switch {
	case status.State == fleet.RegistrationDenied:
		refusal := &Refusal{Message: fmt.Sprintf("the hub denied request %s (%s): %s; "+
			"this agent sends another request when secret %s or configmap %s changes",
			w.name(), status.Reason, cmp.Or(status.Message, "the hub gives no reason"), w.secret(), w.Member.Namespace+"/"+naming.AgentConfigMap),
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
			cmp.Or(status.Message, "the hub gives no reason")))
	}
	return nil, false, nil
}

func (w *waiter) name() string { return w.request.Namespace + "/" + w.request.Name }
