package hubclient

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// Session is a connection with the agent's own credential.
type Session struct {
	*Member
	// Credential is the initial credential of the session.
	Credential Credential
	// Report is the hub's report at the time it accepted the credential.
	Report *clusterv1beta1.InternalMemberCluster

	clock clock.Clock
	// announced is set after the takeover was written to the Cluster; see takeOver.
	announced bool
}

// NewSession prepares a session without sending a request.
func NewSession(credential Credential, policy Trust, clk clock.Clock) (*Session, error) {
	target := Target{Server: credential.Server, CA: credential.CA, Trust: policy, Certificate: credential.Certificate}
	hub, err := Dial(target, credential.Token, clk)
	if err != nil {
		return nil, err
	}
	member, err := hub.Member(credential.MemberNamespace, credential.Cluster)
	if err != nil {
		return nil, err
	}
	return &Session{Member: member, Credential: credential, clock: clk}, nil
}

// Verify reads the report to check whether the hub accepts the credential; see Persist.
func (s *Session) Verify(ctx context.Context, doubt func(error)) (Result, error) {
	return Persist(ctx, s.clock, s.Ask, doubt)
}

// Ask reads the report once. With the credential of a Rancher Fleet agent, it first writes the
// takeover to the Cluster. The hub then grants the rights for a report.
func (s *Session) Ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if s.Credential.Upstream && !s.announced {
		if err := s.takeOver(ctx); err != nil {
			return err
		}
		s.announced = true
	}
	report, err := s.Reports.Get(ctx, s.Name, metav1.GetOptions{})
	if err == nil {
		s.Report = report
	}
	return err
}

// takeOver notes in the status of the Cluster that a Muster agent continues with the account of a
// Rancher Fleet agent. Only this account may do so.
func (s *Session) takeOver(ctx context.Context) error {
	records, err := s.connection.REST(fleet.GroupVersion)
	if err != nil {
		return err
	}
	patch := fmt.Sprintf(`{"status":{"agent":{"account":%q}}}`, s.Credential.Account())
	return records.Patch(types.MergePatchType).Namespace(s.Credential.Workspace).Resource("clusters").Name(s.Credential.Cluster).
		SubResource("status").
		SetHeader("Accept", "application/json").Body([]byte(patch)).Do(ctx).Error()
}
