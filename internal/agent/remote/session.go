package remote

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/identity"
	"github.com/muster-fleet/muster/internal/agent/trust"
)

// Session is a connection with the agent's own credential.
type Session struct {
	*Member
	// Credential is the one that the session began with.
	Credential identity.Credential
	// Report is the report as the hub had it when it accepted the credential.
	Report *clusterv1beta1.InternalMemberCluster

	clock clock.Clock
}

// NewSession prepares a session; nothing is sent yet.
func NewSession(credential identity.Credential, policy trust.Policy, clk clock.Clock) (*Session, error) {
	hub, err := Dial(Target{Server: credential.Server, CA: credential.CA, Trust: policy}, credential.Token, clk)
	if err != nil {
		return nil, err
	}
	member, err := hub.Member(credential.MemberNamespace, credential.Cluster)
	if err != nil {
		return nil, err
	}
	return &Session{Member: member, Credential: credential, clock: clk}, nil
}

// Prove reads the report to learn whether the hub accepts the credential; see Persist.
func (s *Session) Prove(ctx context.Context, doubt func(error)) (Verdict, error) {
	return Persist(ctx, s.clock, s.Ask, doubt)
}

// Ask reads the report once.
func (s *Session) Ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	report, err := s.Reports.Get(ctx, s.Name, metav1.GetOptions{})
	if err == nil {
		s.Report = report
	}
	return err
}
