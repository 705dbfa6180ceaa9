// Package renewal renews the credentials of agents with a key, for both Clusters and
// MemberClusters. It also detects the reuse of an older credential.
//
// The hub issues a new credential every day, sealed to the agent's key. The controller of the
// membership object writes it into the spec of the report. A counter distinguishes the credentials
// of an account:
//
//	          due                       the report names it                 the status shows that
//	in use ─────────► issued, sealed ─────────────────────► in use, newest ───────────────────────► withdrawn from the report
//	                                                          │
//	                                 the report names an older one for a while
//	                                                          ▼
//	                                                        Cloned   until an annotation accepts the older one, or the agent registers anew
//
// While the agent of a MemberCluster sends no heartbeats, the hub replaces the sealed credential in
// the report twice in its life. The agent then finds a working credential when it returns.
//
// Its invariant: only the pinned key opens a new credential, and only for the account of the
// member.
package renewal

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// Renewer renews the credentials of members: Clusters or MemberClusters.
type Renewer struct {
	deps controller.Deps
	// reconnect returns a token for the agent of a member to rejoin.
	reconnect Reconnect
	// Began returns the time when this hub began to reconcile.
	Began func() time.Time
	// superseded holds, by namespace, the time since when a report names a superseded credential.
	superseded kube.Memory[string, time.Time]
}

// Reconnect returns a token for the agent of a member to rejoin after its credential has expired;
// "" if there is none.
type Reconnect func(ctx context.Context, s *State) string

// New returns a renewer of credentials.
func New(deps controller.Deps, reconnect Reconnect) *Renewer {
	return &Renewer{deps: deps, reconnect: reconnect, Began: sync.OnceValue(deps.Clock.Now)}
}

// Observe checks whether the report has named an older credential for longer than an agent under
// replacement can cause.
func (r *Renewer) Observe(ctx context.Context, s *State) error {
	now := r.deps.Clock.Now()
	if !s.namesOlder() {
		r.Forget(s.Namespace)
		return nil
	}
	if until := r.superseded.Of(s.Namespace, now).Add(supersededFor); now.Before(until) {
		s.settleAt = until
		return nil
	}
	if s.shown().Superseded != nil {
		return nil
	}
	// After a restore of the hub's cluster, the cached membership object and report may be from
	// different times for a while.
	live, err := r.live(ctx, *s)
	if err != nil {
		return err
	}
	if s.superseded = live.namesOlder(); !s.superseded {
		r.Forget(s.Namespace)
		s.settleAt = now.Add(supersededFor)
	}
	return nil
}

// live returns the state with the membership object and the report read from the API server. The
// report is never older than the membership object read before it.
func (r *Renewer) live(ctx context.Context, s State) (State, error) {
	before, err := s.ReadCredential(ctx, r.deps.Live)
	if err != nil {
		return s, err
	}
	s.Before = before
	s.Report, err = s.ReadReport(ctx, r.deps.Live)
	return s, err
}

// Forget drops the data about a leaving or revoked member.
func (r *Renewer) Forget(namespace string) { r.superseded.Forget(namespace) }

// Issue returns the credential for the report: a new one if it is due, else the current one. Once
// the membership object shows this credential in use, Issue leaves out the sealed token. On failure
// Issue returns the current credential.
func (r *Renewer) Issue(ctx context.Context, s *State) *clusterv1beta1.IssuedCredential {
	next, err := r.issue(ctx, s)
	if s.Failure = err; err != nil {
		return s.issued()
	}
	after := *s
	if s.Report != nil {
		report := *s.Report
		report.Spec.Credential = next
		after.Report = &report
	}
	s.renewAt = after.renewalDue(r.deps.Config.Current().AgentTokenLifetime, r.Began())
	return next
}

func (r *Renewer) issue(ctx context.Context, s *State) (*clusterv1beta1.IssuedCredential, error) {
	current, life, now := s.issued(), r.deps.Config.Current().AgentTokenLifetime, r.deps.Clock.Now()
	due := s.renewalDue(life, r.Began())
	if due.IsZero() || now.Before(due) {
		if current != nil && len(current.Sealed) > 0 && s.shown().Sequence >= current.Sequence {
			withdrawn := *current
			withdrawn.Sealed = nil
			return &withdrawn, nil
		}
		return current, nil
	}
	token, err := kube.RequestToken(ctx, r.deps.Client.SubResource("token"), s.Account(), life)
	if err != nil {
		return nil, err
	}
	claims, err := credential.ReadClaims(token)
	if err != nil {
		return nil, err
	}
	if claims.AccountUID != string(s.AccountUID) {
		return nil, fmt.Errorf("renewing the credential of %s: the account was replaced meanwhile", s.Namespace)
	}
	next := &clusterv1beta1.IssuedCredential{
		AccountUID: claims.AccountUID, Sequence: s.Credential().Sequence + 1, After: s.Credential().Sequence,
		Issued: metav1.NewTime(now.Truncate(time.Second)), Expires: metav1.NewTime(claims.Expires),
	}
	if current != nil {
		next.Sequence = max(next.Sequence, current.Sequence+1)
	}
	tokens := credential.Tokens{Token: token}
	if s.Acting { // a member without heartbeats already has a token for rejoining; its absence must not prolong the token
		tokens.Reconnect = r.reconnect(ctx, s)
	}
	next.Sealed, err = credential.SealTokens(s.agentKey(),
		credential.Renewal{AccountUID: next.AccountUID, Sequence: next.Sequence}, tokens)
	if err != nil {
		return nil, fmt.Errorf("renewing the credential of %s: %w", s.Namespace, err)
	}
	ctrl.LoggerFrom(ctx).V(1).Info("Credential renewed", "sequence", next.Sequence, "expires", claims.Expires)
	return next, nil
}
