package uninstall_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/uninstall"
)

// hosts replaces the Deployment of the site by the mark for an agent on another cluster.
func (s *site) hosts() {
	s.t.Helper()
	check(s.t, s.Delete(s.t.Context(), s.own[1]))
	s.agent.Name = naming.HostedAgentConfigMap
	s.own[1] = s.create(s.marked(s.named(&corev1.ConfigMap{}, s.agent.Namespace, s.agent.Name), "fleet-agent", s.agent.Namespace))
}

func TestAnAgentOnAnotherClusterRemovesItsPartAndNamesTheHost(t *testing.T) {
	s := newSite(t)
	s.hosts()
	found := s.find()
	if says := strings.Join(found.Stays, "\n"); !strings.Contains(says, "the Deployment of the agent: it is on another cluster, the host") {
		t.Errorf("it says %s", says)
	}
	check(t, s.cluster.Prepare(t.Context(), found))
	resumed, err := s.cluster.Resume(t.Context(), s.agent)
	check(t, err)
	if resumed == nil {
		t.Error("the prepared removal does not go on")
	}
	s.goes(s.own)
}

// TestOnlyAHostedAgentTakesTheMarkForAProof: an agent with its Deployment on the cluster, or one
// outside of any, must not remove the objects of the hosted agent.
func TestOnlyAHostedAgentTakesTheMarkForAProof(t *testing.T) {
	s := newSite(t)
	s.hosts()
	s.agent.Name = "fleet-agent"
	if _, err := s.cluster.Find(t.Context(), s.agent); !errors.Is(err, uninstall.ErrNotProved) {
		t.Errorf("an agent without Deployment: %v", err)
	}
	if resumed, err := s.cluster.Resume(t.Context(), s.agent); resumed != nil || err != nil {
		t.Errorf("it resumes %v, %v", resumed, err)
	}
}

func TestNothingOfAHostedAgentIsALeftover(t *testing.T) {
	s := newSite(t)
	s.hosts()
	found, err := s.cluster.Leftovers(t.Context())
	check(t, err)
	for _, leftover := range found.Found {
		for _, own := range s.own {
			if leftover.UID == own.GetUID() {
				t.Errorf("%s is a leftover: %s", leftover, leftover.Proof)
			}
		}
	}
	if says := strings.Join(found.Stays, "\n"); !strings.Contains(says, "ConfigMap "+s.agent.String()+" is installed") {
		t.Errorf("it says %s", says)
	}
}
