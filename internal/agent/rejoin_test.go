package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestATokenOfAnotherWorkspaceMovesTheClusterThereAndTheOldRecordSaysSo(t *testing.T) {
	from, member, agent := newJoinedCluster(t)
	to := newTestHub(t, from.config)
	to.serve(to.grant)
	values := to.values()
	member.bootstrap(values)
	stored := to.joinedAt(agent, member)
	from.reported(agent, metav1.ConditionFalse, "InternalMemberClusterLeft", "registered as "+to.workspace+"/my-cluster at "+to.config.Host,
		"its deliveries stay")
	to.beatsAgain(agent)
	member.untilForgotten(agent)
	from.requested(1)
	to.requested(1)
	for _, secret := range []string{string(values["token"]), stored.Token} {
		if strings.Contains(agent.lines(), secret) || strings.Contains(stored.JoinedWith, secret) {
			t.Errorf("a token is in the log:\n%s", agent.lines())
		}
	}
	agent.stop()
	again := member.start()
	to.joinedAt(again, member)
	again.stop()
	from.requested(1)
	to.requested(1)
}

func TestATokenOfASecondHubMovesTheClusterThereAndLeavesTheFirstHub(t *testing.T) {
	config := startCluster(t)
	second := testkube.Start(t, "second")
	second.InstallCRDs(t)
	from, to, member := newTestHub(t, config), newTestHub(t, second.Config), newTestMember(t, config)
	from.serve(from.grant)
	to.serve(to.grant)
	member.bootstrap(from.values())
	agent := member.start()
	agent.untilJoined()
	member.bootstrap(to.values())
	to.joinedAt(agent, member)
	from.reported(agent, metav1.ConditionFalse, "InternalMemberClusterLeft",
		"registered as "+to.workspace+"/my-cluster at "+second.Config.Host)
	to.beatsAgain(agent)
}

func TestANewTokenOfTheSameWorkspaceReplacesTheCredentialAndNothingIsLeft(t *testing.T) {
	hub, member := newCluster(t)
	hub.serve(func(r *fleet.ClusterRegistration) fleet.ClusterRegistrationStatus {
		if hub.count() == 2 {
			hub.revoke() // as the hub does: one identity at a time
		}
		return hub.grant(r)
	})
	member.bootstrap(hub.values())
	agent := member.start()
	agent.untilJoined()
	before := hub.joinedAt(agent, member)
	lost := make(chan string, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if state, reason, ready := agent.Status(); !ready {
				lost <- fmt.Sprintf("%s: %s", state, reason)
				return
			}
		}
	}()
	member.bootstrap(hub.values())
	agent.until("another credential", func() error {
		if after := hub.joinedAt(agent, member); after.JoinedWith == before.JoinedWith || after.Token == before.Token {
			return errors.New("it is the same")
		}
		return nil
	})
	hub.beatsAgain(agent)
	hub.reported(agent, metav1.ConditionTrue, "InternalMemberClusterJoined", "the agent has joined")
	member.untilForgotten(agent)
	select {
	case why := <-lost:
		t.Errorf("meanwhile the agent was not ready: %s", why)
	default:
	}
	hub.requested(2)
}

func TestATokenThatIsDeniedLeavesTheMembershipAndSaysSoUntilItIsTakenAway(t *testing.T) {
	from, member, agent := newJoinedCluster(t)
	to := newTestHub(t, from.config)
	to.serve(func(*fleet.ClusterRegistration) fleet.ClusterRegistrationStatus {
		return state("Denied", "TokenExpired", "create another one")
	})
	member.untilForgotten(agent)
	member.bootstrap(to.values())
	agent.untilState(Joined, "joined as "+from.workspace+"/my-cluster", "registers with another token", "denied request "+to.workspace,
		"TokenExpired", "create another one")
	from.reported(agent, metav1.ConditionTrue, "Registering", "denied request "+to.workspace, "TokenExpired")
	from.beatsAgain(agent)
	if _, reason, ready := agent.Status(); !ready {
		t.Errorf("the agent is no longer ready: %s", reason)
	}
	if stored, err := hubclient.CredentialFromSecret(member.secret(naming.AgentSecret)); err != nil || stored.Workspace != from.workspace {
		t.Errorf("stored is the credential of %s: %v", stored.Record(), err)
	}
	member.remove(naming.AgentBootstrapSecret)
	from.reported(agent, metav1.ConditionTrue, "InternalMemberClusterJoined", "the agent has joined")
	to.requested(1)
}

func TestAnAgentKilledWhileItRegistersAgainGoesOn(t *testing.T) {
	from, member, agent := newJoinedCluster(t)
	to := newTestHub(t, from.config)
	to.serve(func(r *fleet.ClusterRegistration) fleet.ClusterRegistrationStatus {
		if to.count() == 1 {
			return state("Pending", "ApprovalRequired", "approve it")
		}
		return to.grant(r)
	})
	member.bootstrap(to.values())
	agent.untilState(Joined, "joined as "+from.workspace, "is Pending (ApprovalRequired): approve it")
	from.reported(agent, metav1.ConditionTrue, "Registering", "is Pending")
	agent.stop()
	again := member.start()
	to.joinedAt(again, member)
	from.reported(again, metav1.ConditionFalse, "InternalMemberClusterLeft", "registered as "+to.workspace)
}

func TestATokenOfAnotherHubIsUsedWhenTheHubSoFarIsGone(t *testing.T) {
	hub, member := newCluster(t)
	hub.serve(hub.grant)
	secret, err := (hubclient.Credential{
		Server: "https://127.0.0.1:1", Token: "t", MemberNamespace: "m", Workspace: "clusters", Cluster: "c", JoinedWith: "something-else",
	}).Secret(member.namespace)
	check(t, err)
	member.put(naming.AgentSecret, secret.Data)
	agent := member.start()
	agent.untilState(Unreachable, "https://127.0.0.1:1 cannot be reached")
	member.bootstrap(hub.values())
	hub.joinedAt(agent, member)
}

// TestAMembershipIsLeftAlsoIfItsHubAnswersAfterTheRegistrationElsewhere starts an agent while the
// hub of its credential does not answer, and lets it register elsewhere.
func TestAMembershipIsLeftAlsoIfItsHubAnswersAfterTheRegistrationElsewhere(t *testing.T) {
	from, member, agent := newJoinedCluster(t)
	member.untilForgotten(agent)
	agent.stop()
	to := newTestHub(t, from.config)
	back := make(chan struct{})
	to.serve(func(r *fleet.ClusterRegistration) fleet.ClusterRegistrationStatus {
		close(back)
		return to.grant(r)
	})
	stored, err := hubclient.CredentialFromSecret(member.secret(naming.AgentSecret))
	check(t, err)
	stored.Server = silentUntil(t, from.config, back)
	secret, err := stored.Secret(member.namespace)
	check(t, err)
	member.put(naming.AgentSecret, secret.Data)
	member.bootstrap(to.values())
	again := member.start()
	to.joinedAt(again, member)
	from.reported(again, metav1.ConditionFalse, "InternalMemberClusterLeft", "registered as "+to.workspace)
	again.until("the replaced credential is forgotten", func() error {
		if stored, err := hubclient.CredentialFromSecret(member.secret(naming.AgentSecret)); err != nil || stored.Former != nil {
			return fmt.Errorf("it is stored: %w", err)
		}
		return nil
	})
	again.stop()
	if lines := again.lines(); strings.Contains(lines, stored.Token) {
		t.Error("the log has the token of the former membership")
	}
}

func TestAnAgentFollowsTheRegistrationOfAnotherAgentOfItsCluster(t *testing.T) {
	from, member, agent := newJoinedCluster(t)
	to := newTestHub(t, from.config)
	secret, err := (hubclient.Credential{
		Server: to.config.Host, CA: to.config.CAData, Token: to.prepare(time.Hour), MemberNamespace: to.namespace, Workspace: to.workspace,
		Cluster: "my-cluster", JoinedWith: "by-the-other-agent",
	}).Secret(member.namespace)
	check(t, err)
	member.put(naming.AgentSecret, secret.Data)
	to.joinedAt(agent, member)
	from.reported(agent, metav1.ConditionFalse, "InternalMemberClusterLeft", "registered as "+to.workspace)
}

func TestATokenWaitsForTheConfigMapThatComesWithIt(t *testing.T) {
	config := startCluster(t)
	from, to, member := newTestHub(t, config), newTestHub(t, config), newTestMember(t, config)
	asked := make(chan string, 2)
	from.serve(from.grant)
	to.serve(func(r *fleet.ClusterRegistration) fleet.ClusterRegistrationStatus {
		asked <- r.Spec.ClientID
		return to.grant(r)
	})
	member.configure(`{"clientID":"before"}`)
	member.bootstrap(from.values())
	agent := member.start()
	agent.untilJoined()
	const after = `{"clientID":"after"}`
	values := to.values()
	values["configDigest"] = []byte(digestOfConfig(t, after))
	member.bootstrap(values)
	from.beatsAgain(agent) // it has had the time to ask
	member.configure(after)
	to.joinedAt(agent, member)
	if got := <-asked; got != "after" {
		t.Errorf("it asked as %q", got)
	}
	member.untilForgotten(agent)
	member.configure(`{"clientID":"alone"}`)
	agent.until("it says that this does not count", func() error {
		return containsAll(agent.lines(), "The clientID has changed and counts at the next registration only")
	})
	to.requested(1)
}

func TestAClusterWhoseHubFallsSilentForGoodMovesAndIsServedAtOnce(t *testing.T) {
	config := startCluster(t)
	from, to, member := newTestHub(t, config), newTestHub(t, config), newTestMember(t, config)
	from.serve(from.grant)
	to.serve(to.grant)
	values := from.values()
	address, cut := from.behind()
	values["apiServerURL"] = []byte(address)
	member.bootstrap(values)
	agent := member.start(func(o *Options) { o.Delivery = Delivery{Off: true} })
	agent.untilJoined()
	cut()
	member.bootstrap(to.values())
	to.joinedAt(agent, member)
	_, err := to.deployments().Create(t.Context(), &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, metav1.CreateOptions{})
	check(t, err)
	agent.until("the BundleDeployment is looked at", func() error {
		found, err := to.deployments().Get(t.Context(), "web", metav1.GetOptions{})
		if err == nil && len(found.Status.Conditions) == 0 {
			err = errors.New("it says nothing")
		}
		return err
	})
}
