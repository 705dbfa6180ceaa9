package agent

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/standby"
	"github.com/muster-fleet/muster/internal/hubclient"
)

// published reads the credential that a restored hub has published for the key of the agent of a
// MemberCluster.
func (e *environment) published(ctx context.Context, to hubclient.Address, key *credential.AgentKey,
	mode hubclient.TLSMode) (*clusterv1beta1.IssuedCredential, error) {
	if key == nil {
		return nil, errWithoutKey
	}
	hub, err := e.dialStandby(to, mode)
	if err != nil {
		return nil, err
	}
	defer hub.Close()
	system := credential.ClaimsOf(to.Token).Namespace
	issued, err := hub.Published(ctx, standby.PublishedAt(system, credential.Fingerprint(key.Public())))
	switch {
	case hubclient.Classify(err) == hubclient.Unauthorized:
		return nil, errStandbyToken
	case apierrors.IsForbidden(err):
		return nil, errors.New("the token of the standby may not read credentials there: no hub with MemberClusters was restored there, or " +
			"it has not given the right yet")
	case apierrors.IsNotFound(err):
		return nil, errors.New("the hub there has issued no credential to the key of this cluster: it restored no member with this key, or has " +
			"not started yet")
	case err != nil:
		return nil, errors.New(hub.Explain(err))
	}
	return issued, nil
}

// joinSuccessor returns a session with the restored hub that succeeds the lost hub of a
// MemberCluster. It takes the credential of the lost hub, with the address of the standby.
func (a *Agent) joinSuccessor(ctx context.Context, o observation, to hubclient.Address,
	lost hubclient.Credential) (*hubclient.Session, error) {
	key, err := a.member.AgentKey(ctx)
	if err != nil {
		return nil, err
	}
	issued, err := a.published(ctx, to, key, lost.Mode)
	if err != nil {
		return nil, err
	}
	next, err := a.mode.open(key, issued, lost)
	if err != nil {
		return nil, err
	}
	session, err := hubclient.NewSession(next, a.mode.trust(o, next), a.clock)
	if err != nil {
		return nil, err
	}
	if err := a.keepSuccessor(ctx, o, session); err != nil {
		session.Close()
		return nil, err
	}
	a.log.Info("Joined the successor of the lost hub with the key of this cluster", "hub", next.Server, "sequence", next.Sequence)
	return session, nil
}

// keepSuccessor verifies that the hub of a session succeeds the lost hub, and stores its
// credential. It remembers the higher term first, so that the agent then refuses the lost hub.
func (a *Agent) keepSuccessor(ctx context.Context, o observation, session *hubclient.Session) error {
	if err := session.Ask(ctx); err != nil {
		return fmt.Errorf("trying the credential of the hub there: %s", session.Explain(err))
	}
	if refused := a.refuseTerm(ctx, session, true); refused != nil {
		return errors.New(refused.message)
	}
	if err := a.terms.accept(ctx, session); err != nil {
		return err
	}
	former := o.stored
	former.Former = nil
	session.Credential.Former, session.Credential.Addresses.Report = &former, session.Report.UID
	// The agent observes the stored credential at once and tries it, and so cancels this try.
	return a.mode.storeCredential(context.WithoutCancel(ctx), session.Credential)
}
