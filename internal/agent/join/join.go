// Package join turns a registration token into a credential. It sends a registration request to the
// hub, waits for the answer by a watch, and verifies the credential in the answer.
//
// Its invariant: it stores and deletes nothing, so it may be killed at any point and started again.
// The hub accepts a new request with the same client ID for the same cluster. No message contains
// tokens, keys or the client ID.
package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent/local"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/hublogin"
	"github.com/muster-fleet/muster/internal/retry"
)

// Refusal is an answer of the hub that an early retry does not change.
type Refusal struct {
	// Message has the reason and the remedy.
	Message string
	// Final is set if only another bootstrap Secret or ConfigMap can change the answer.
	Final bool
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

// errGone means that the request was deleted. It also stands for a hub that has refused to show the
// request for so long that it may be deleted.
var errGone = errors.New("the request was deleted")

// Joiner joins one hub with one token.
type Joiner struct {
	// Member is the joining cluster.
	Member *local.Cluster
	// Bootstrap and Config are the settings for the join.
	Bootstrap Bootstrap
	Config    Config
	// Key is the agent's own key; nil if it cannot keep one.
	Key *credential.AgentKey
	// Hostname is the hostname of the agent's Pod.
	Hostname string
	Clock    clock.Clock
	// Progress receives the progress of the join as a sentence. It may receive the same sentence
	// again.
	Progress func(string)
}

// Join returns a session with a verified credential. Its error is a *Refusal, the error of the
// context, or names the unreachable hub or member.
func (j *Joiner) Join(ctx context.Context) (*hubclient.Session, error) {
	clientID := j.Config.ClientID
	if clientID == "" {
		var err error
		if clientID, err = j.Member.ID(ctx); err != nil {
			return nil, err
		}
	}
	identity, err := j.identity(ctx)
	if err != nil {
		return nil, &Refusal{Message: err.Error()}
	}
	target := j.target()
	target.Certificate = identity.Certificate
	hub, err := hubclient.Dial(target, identity.Token, j.Clock)
	if err != nil {
		return nil, &Refusal{Message: fmt.Sprintf("secret %s: %v", j.secret(), err), Final: true}
	}
	defer hub.Close()
	for backoff := retry.Unreachable(); ; {
		found, err := j.ask(ctx, hub, clientID)
		if !errors.Is(err, errGone) {
			return found, err
		}
		j.Progress("the request was deleted on the hub without an answer; sending another")
		if err := retry.Wait(ctx, j.Clock, backoff.Step()); err != nil {
			return nil, err
		}
	}
}

// identity returns the identity for the request: the registration token, or from the kubeconfig.
func (j *Joiner) identity(ctx context.Context) (hublogin.Identity, error) {
	if j.Bootstrap.Login == nil {
		return hublogin.Identity{Token: j.Bootstrap.Token}, nil
	}
	identity, err := j.Bootstrap.Login.Identify(ctx, j.Bootstrap.Server, j.Clock.Now())
	if err != nil {
		return hublogin.Identity{}, fmt.Errorf("secret %s: %w", j.Bootstrap.LoginSecret, err)
	}
	return identity, nil
}

// renewIdentity gets the token of a kubeconfig again, because it may be shorter-lived than the
// wait for an approval.
func (j *Joiner) renewIdentity(ctx context.Context, hub *hubclient.Hub) {
	if j.Bootstrap.Login == nil {
		return
	}
	identity, err := j.identity(ctx)
	if err != nil {
		j.Progress(err.Error())
		return
	}
	hub.SetToken(identity.Token)
}

func (j *Joiner) target() hubclient.Target {
	return hubclient.Target{Server: j.Bootstrap.Server, CA: j.Bootstrap.CA, Trust: j.Config.Trust()}
}

// ask creates one request and waits for its answer.
func (j *Joiner) ask(ctx context.Context, hub *hubclient.Hub, clientID string) (*hubclient.Session, error) {
	registrations, err := hub.Registrations(j.Bootstrap.Workspace)
	if err != nil {
		return nil, err
	}
	key, err := credential.NewAnswerKey()
	if err != nil {
		return nil, err
	}
	request, err := j.create(ctx, hub, registrations, j.request(clientID, key))
	if err != nil {
		return nil, err
	}
	logr.FromContextOrDiscard(ctx).Info("Registration requested", "hub", hub.Server(), "request", request.Namespace+"/"+request.Name)
	w := waiter{Joiner: j, hub: hub, registrations: registrations, request: request}
	sealed, err := w.wait(ctx)
	if err != nil {
		return nil, err
	}
	if dropped := w.dropped; len(dropped) > 0 {
		logr.FromContextOrDiscard(ctx).Info("The hub dropped labels of the registration request", "request", w.name(), "dropped", dropped)
	}
	answer, err := key.Open(string(request.UID), sealed)
	if err != nil {
		return nil, fmt.Errorf("the hub's answer is unusable: %w", err)
	}
	return j.accept(ctx, answer)
}

// accept verifies the credential before its first use.
func (j *Joiner) accept(ctx context.Context, answer credential.Answer) (*hubclient.Session, error) {
	found := hubclient.Credential{
		Server: j.Bootstrap.Server, CA: j.Bootstrap.CA, Token: answer.Token,
		MemberNamespace: answer.DeploymentNamespace, Workspace: answer.ClusterNamespace, Cluster: answer.ClusterName,
		JoinedWith: cmp.Or(j.Bootstrap.JoinedWith, j.Bootstrap.Digest(j.Config.ClientID)), Reconnect: answer.Reconnect,
		JoinedAs: DigestOfClientID(j.Config.ClientID),
	}
	if found.Token == "" || found.MemberNamespace == "" || found.Workspace == "" || found.Cluster == "" {
		return nil, errors.New("the hub's answer is incomplete: it lacks a token, a member namespace, a workspace or a cluster name")
	}
	session, err := hubclient.NewSession(found, j.Config.Trust(), j.Clock)
	if err != nil {
		return nil, err
	}
	result, err := session.Verify(ctx, func(err error) { j.Progress("granted; trying the credential: " + session.Explain(err)) })
	switch result {
	case hubclient.Accepted:
		return session, nil
	case hubclient.Unreachable:
		err = j.unreachable(ctx, session.Hub, err)
	default:
		err = &Refusal{Message: fmt.Sprintf(
			"the hub granted a credential for %s that it does not accept: %s", found.Record(), session.Explain(err))}
	}
	session.Close()
	return nil, err
}

func (j *Joiner) create(
	ctx context.Context, hub *hubclient.Hub, registrations *hubclient.Registrations, request *fleet.ClusterRegistration,
) (*fleet.ClusterRegistration, error) {
	var created *fleet.ClusterRegistration
	result, err := hubclient.Persist(ctx, j.Clock, func(ctx context.Context) error {
		var err error
		created, err = post(ctx, registrations, request)
		return err
	}, func(err error) { j.Progress(j.refused(hub, hubclient.Classify(err), err)) })
	switch result {
	case hubclient.Accepted:
		return created, nil
	case hubclient.Unreachable:
		return nil, j.unreachable(ctx, hub, err)
	default:
		return nil, &Refusal{Message: j.refused(hub, result, err)}
	}
}

// unreachable returns the context's own error unchanged, for callers to recognize.
func (j *Joiner) unreachable(ctx context.Context, hub *hubclient.Hub, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.New(hub.Explain(err))
}
