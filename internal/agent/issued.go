package agent

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/retry"
)

// issuedCredentials adopts credentials from the hub. The hub seals them to the key of a joined
// agent, in the spec of the report.
type issuedCredentials struct {
	*session
	key *credential.AgentKey
	// current is the last observed credential of the report; changed wakes run.
	current atomic.Pointer[clusterv1beta1.IssuedCredential]
	changed chan struct{}
}

// observe stores the credential of a report.
func (i *issuedCredentials) observe(report *clusterv1beta1.InternalMemberCluster) {
	i.current.Store(report.Spec.Credential)
	kubeclient.Notify(i.changed)
}

func (i *issuedCredentials) run(ctx context.Context) {
	for backoff, logged := retry.Unreachable(), ""; ctx.Err() == nil; {
		err := i.adopt(ctx)
		if text(err) != logged && ctx.Err() == nil {
			if logged = text(err); err != nil {
				i.log.Info("The issued credential is not used", "reason", logged)
			}
		}
		if err != nil {
			_ = retry.Wait(ctx, i.clock, backoff.Step()) // the loop ends with the context
			continue
		}
		backoff = retry.Unreachable()
		select {
		case <-ctx.Done():
		case <-i.changed:
		}
	}
}

// adopt makes the issued credential the one in use, unless the agent has it. The hub must accept
// the credential first, and the agent stores it before using it.
func (i *issuedCredentials) adopt(ctx context.Context) error {
	issued, before := i.current.Load(), *i.credential.Load()
	if !adoptable(issued, before.Account(), before.Sequence) && !(i.mode.exchanges && exchangeable(issued, before.Account())) {
		return nil
	}
	next, err := i.mode.open(i.key, issued, before)
	if err != nil {
		return err
	}
	tried, err := hubclient.NewSession(next, i.hub.Target().Trust, i.clock)
	if err != nil {
		return err
	}
	defer tried.Close()
	if err := tried.Ask(ctx); err != nil {
		return fmt.Errorf("trying it: %s", tried.Explain(err))
	}
	err = i.changeCredential(ctx, func(c *hubclient.Credential) {
		if c.Account() == before.Account() {
			c.Token, c.Sequence, c.Reconnect = next.Token, next.Sequence, next.Reconnect
			c.Login, c.Certificate = nil, nil
		}
	})
	if err == nil && before.Certificate != nil { // the hub would prefer it to the new token
		i.hub.Move(tried.Hub)
		kubeclient.Notify(i.moved)
	}
	if err == nil {
		i.log.Info("Credential renewed by the hub", "sequence", next.Sequence, "expires", credential.ClaimsOf(next.Token).Expires)
	}
	return err
}

// open returns the successor of a credential, issued to the agent's key.
func (m *mode) open(key *credential.AgentKey, issued *clusterv1beta1.IssuedCredential,
	before hubclient.Credential) (hubclient.Credential, error) {
	tokens, err := key.OpenTokens(credential.Renewal{AccountUID: issued.AccountUID, Sequence: issued.Sequence}, issued.Sealed)
	if err != nil {
		return before, err
	}
	next := before.WithoutLogin()
	if next.Token, next.Sequence = tokens.Token, issued.Sequence; next.Account() != issued.AccountUID {
		return before, errors.New("it belongs to another account")
	}
	if claims := credential.ClaimsOf(next.Token); m.exchanges &&
		(claims.Namespace != next.MemberNamespace || claims.Account != naming.MemberServiceAccount) {
		return before, fmt.Errorf("it belongs to %s, not to a member's account of the hub", claims.Subject)
	}
	// The hub issues no reconnect token to the agent of a MemberCluster while it is away. The previous
	// token remains valid.
	if tokens.Reconnect != "" || !m.exchanges || next.Account() != before.Account() {
		next.Reconnect = tokens.Reconnect
	}
	return next, nil
}

// adoptable reports whether an agent adopts an issued credential. It does not if its own credential
// is older than the one in use at the time of issue. The hub must then learn of two agents with the
// same key, or of a restore from a backup.
func adoptable(issued *clusterv1beta1.IssuedCredential, account string, sequence int64) bool {
	return issued != nil && len(issued.Sealed) > 0 && issued.AccountUID == account && issued.Sequence > sequence && sequence >= issued.After
}

// exchangeable reports whether a credential was issued in exchange for a token of another account.
func exchangeable(issued *clusterv1beta1.IssuedCredential, account string) bool {
	return issued != nil && len(issued.Sealed) > 0 && issued.AccountUID != account
}

// credentialInUse returns the reported form of the credential; nil if its token does not name an
// account.
func credentialInUse(c *hubclient.Credential) *clusterv1beta1.CredentialInUse {
	claims := credential.ClaimsOf(c.Token)
	if claims.AccountUID == "" {
		return nil
	}
	used := &clusterv1beta1.CredentialInUse{AccountUID: claims.AccountUID, Sequence: c.Sequence}
	if !claims.Expires.IsZero() {
		used.Expires = &metav1.Time{Time: claims.Expires}
	}
	return used
}
