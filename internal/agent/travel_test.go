package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/naming"
)

// move asks the agent to reach the hub in another way.
func (h *testHub) move(to clusterv1beta1.HubAddress) {
	h.t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"hub": to}})
	check(h.t, err)
	h.patchReport(string(patch))
}

// untilReached waits until the report says how the hub is reached, and a failure that holds a text;
// none if that is empty.
func (h *testHub) untilReached(agent *running, ca, failure string) {
	h.t.Helper()
	agent.until("the report says how the hub is reached", func() error {
		report, err := h.report()
		if err != nil || report.Status.Hub == nil {
			return fmt.Errorf("there is none: %w", err)
		}
		used := *report.Status.Hub
		if used.APIServerCAHash != credential.CAHash([]byte(ca)) || (used.Failure == "") != (failure == "") ||
			!strings.Contains(used.Failure, failure) {
			return fmt.Errorf("it says %+v", used)
		}
		return nil
	})
}

// overlap is the hub's CA, and that with another one.
func overlap(t *testing.T, config *rest.Config) (own, both string) {
	t.Helper()
	ca, err := credential.ParseCA(string(config.CAData))
	check(t, err)
	return string(ca), string(ca) + string(otherCA(t))
}

func TestRegisteredAgentStoresTheAddressOfTheHubWithTheRightsOfItsChart(t *testing.T) {
	hub, member, agent := newJoinedCluster(t)
	_, both := overlap(t, hub.config)
	hub.move(clusterv1beta1.HubAddress{APIServerCA: both, AgentTLSMode: "strict"})
	hub.untilReached(agent, both, "")
	stored, err := hubclient.CredentialFromSecret(member.secret(naming.AgentSecret))
	check(t, err)
	if string(stored.CA) != both || stored.Mode != "strict" || stored.ChartMode != "system-store" {
		t.Errorf("stored: CA %s, mode %q, the chart's %q", credential.CAHash(stored.CA), stored.Mode, stored.ChartMode)
	}
	if _, reason, joined := agent.Status(); !joined {
		t.Errorf("it is no longer joined: %s", reason)
	}
}

func TestAgentOfAMemberClusterStoresTheAddressOfTheHubWithTheRightsOfItsChart(t *testing.T) {
	hub, member, agent := newJoinedMember(t, "moving")
	own, both := overlap(t, hub.config)
	for _, ca := range []string{both, own, both} { // made first, and then changed
		hub.move(clusterv1beta1.HubAddress{APIServerCA: ca})
		hub.untilReached(agent, ca, "")
		kept, err := member.kube.CoreV1().ConfigMaps(member.namespace).Get(t.Context(), naming.LearnedHubConfigMap, metav1.GetOptions{})
		check(t, err)
		if kept.Data[keyCA] != ca || kept.Data[keyServer] != hub.config.Host {
			t.Errorf("kept is %v", kept.Data)
		}
	}
	agent.stop()
	again := member.start(member.membership(hub))
	again.untilJoined()
	hub.untilReached(again, both, "")
}

func TestAddressThatCannotBeKeptIsNotUsed(t *testing.T) {
	config := startCluster(t)
	hub, member := newMemberHub(t, config, "older-chart"), newTestMember(t, config)
	rights := testHub{t: t, config: config, kube: member.kube}
	rights.bind(member.namespace, "hub-token", "fleet-agent", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"hub-token"}, Verbs: []string{"get", "list", "watch"},
	})
	check(t, member.kube.RbacV1().Roles(member.namespace).Delete(t.Context(), "hub-term", metav1.DeleteOptions{})) // it is newer
	hub.apply()
	member.give(hub.own())
	agent := member.start(member.membership(hub))
	agent.untilJoined()
	own, both := overlap(t, config)
	hub.move(clusterv1beta1.HubAddress{APIServerCA: both})
	hub.untilReached(agent, own, "upgrade the chart member-agent, which gives the agent this right")
}
