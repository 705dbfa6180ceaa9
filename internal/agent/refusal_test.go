package agent

import (
	"errors"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent/join"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/naming"
)

func TestPendingRequestTellsWhyUntilItIsGranted(t *testing.T) {
	hub, member := newCluster(t)
	requests := make(chan *fleet.ClusterRegistration, 1)
	hub.serve(func(r *fleet.ClusterRegistration) fleet.ClusterRegistrationStatus {
		requests <- r
		return state("Pending", "ApprovalRequired", "approve it: muster approve x")
	})
	member.bootstrap(hub.values())
	agent := member.start()
	agent.untilState(Joining, "is Pending", "ApprovalRequired", "approve it: muster approve x")
	request := <-requests
	registrations := hub.registrations()
	request, err := registrations.Get(t.Context(), request.Name, metav1.GetOptions{})
	check(t, err)
	hub.set(registrations, request, hub.grant(request))
	agent.untilJoined()
}

func TestDeniedAgentWaitsForAnotherTokenAndThenJoins(t *testing.T) {
	hub, member := newCluster(t)
	hub.serve(func(r *fleet.ClusterRegistration) fleet.ClusterRegistrationStatus {
		if r.Spec.ClientID == "good" {
			return hub.grant(r)
		}
		return state("Denied", "EmptyClientID", "the clientID is bad")
	})
	member.bootstrap(hub.values())
	agent := member.start()
	agent.untilState(Denied, "denied request "+hub.workspace, "EmptyClientID", "the clientID is bad")
	hub.requested(1)
	member.configure(`{"clientID":"good"}`)
	agent.untilJoined()
}

// deniedBySomebody is an agent whose request a person has denied, and that request.
func deniedBySomebody(t *testing.T) (*testHub, *running, *fleet.ClusterRegistration) {
	t.Helper()
	hub, member := newCluster(t)
	hub.serve(func(*fleet.ClusterRegistration) fleet.ClusterRegistrationStatus {
		return state("Denied", fleet.ReasonNotApproved, "somebody has denied it")
	})
	member.bootstrap(hub.values())
	agent := member.start()
	agent.untilState(Joining, "somebody has denied it", "or when the request is approved after all")
	list, err := hub.registrations().List(t.Context(), metav1.ListOptions{})
	check(t, err)
	return hub, agent, &list.Items[0]
}

func TestADenialCanBeTakenBackWhileTheRequestIsThere(t *testing.T) {
	hub, agent, request := deniedBySomebody(t)
	hub.set(hub.registrations(), request, hub.grant(request))
	agent.untilJoined()
}

func TestADenialIsFinalWhenItsRequestIsGone(t *testing.T) {
	hub, agent, request := deniedBySomebody(t)
	check(t, hub.registrations().Delete(t.Context(), request.Name, metav1.DeleteOptions{}))
	agent.untilState(Denied, "somebody has denied it")
	hub.requested(1)
}

func TestDeletedRequestIsMadeAgain(t *testing.T) {
	hub, member := newCluster(t)
	deleted := false
	hub.serve(func(r *fleet.ClusterRegistration) fleet.ClusterRegistrationStatus {
		if deleted {
			return hub.grant(r)
		}
		return state("Waiting", "NamespaceNotReady", "soon")
	})
	member.bootstrap(hub.values())
	agent := member.start()
	agent.untilState(Joining, "is Waiting")
	hub.mu.Lock()
	deleted = true
	hub.mu.Unlock()
	registrations := hub.registrations()
	list, err := registrations.List(t.Context(), metav1.ListOptions{})
	check(t, err)
	check(t, registrations.Delete(t.Context(), list.Items[0].Name, metav1.DeleteOptions{}))
	agent.untilJoined()
}

func TestTokenDeletedWhileWaitingIsSaid(t *testing.T) {
	hub, member := newCluster(t)
	hub.serve(func(*fleet.ClusterRegistration) fleet.ClusterRegistrationStatus { return state("Pending", "X", "y") })
	member.bootstrap(hub.values())
	agent := member.start()
	agent.untilState(Joining, "is Pending")
	check(t, hub.kube.CoreV1().ServiceAccounts(hub.workspace).Delete(t.Context(), hub.account, metav1.DeleteOptions{}))
	// The API server remembers a token for 10 s and cuts no watch because of it; the end of the watch
	// shows it, or the next start.
	agent.stop()
	token := string(member.secret(naming.AgentBootstrapSecret).Data["token"])
	agent.until("the API server has noticed", func() error {
		review, err := hub.kube.AuthenticationV1().TokenReviews().Create(t.Context(),
			&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
		if err != nil || review.Status.Authenticated {
			return errors.New("it still knows the token")
		}
		return nil
	})
	member.start().untilState(Retrying, "token "+hub.workspace+"/new-token", "deleted or revoked", "create another ClusterRegistrationToken")
}

func TestTokenOfAnotherWorkspaceIsSaid(t *testing.T) {
	hub, member := newCluster(t)
	values := hub.values()
	values["clusterNamespace"] = []byte("elsewhere")
	member.bootstrap(values)
	member.start().untilState(Joining, "belongs to workspace "+hub.workspace, "set clusterNamespace to "+hub.workspace)
}

func TestMissingWorkspaceIsSaid(t *testing.T) {
	hub, member := newCluster(t)
	_, err := hub.kube.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: hub.workspace},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"fleet.cattle.io"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
	}, metav1.CreateOptions{})
	check(t, err)
	_, err = hub.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: hub.workspace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: hub.workspace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: hub.account, Namespace: hub.workspace}},
	}, metav1.CreateOptions{})
	check(t, err)
	values := hub.values()
	values["clusterNamespace"] = []byte("elsewhere")
	member.bootstrap(values)
	member.start().untilState(Joining, "workspace elsewhere does not exist")
}

func TestGarbageIsNamedAndItsCorrectionIsNoticed(t *testing.T) {
	hub, member := newCluster(t)
	hub.serve(hub.grant)
	member.configure(`{"labels": {"a": 1}}`)
	agent := member.start()
	agent.untilState(BadInput, "configmap "+member.namespace+"/fleet-agent", "labels: found a JSON number where text in quotes is wanted")
	member.configure(`{}`)
	agent.untilState(Waiting, "not registered", "secret "+member.namespace+"/fleet-agent-bootstrap")
	member.bootstrap(map[string][]byte{"apiServerURL": []byte("hub:6443"), "token": []byte("x")})
	agent.untilState(BadInput, "apiServerURL", "hub:6443", "want https://host")
	member.bootstrap(hub.values())
	agent.untilJoined()
}

func TestGarbageCredentialIsReplacedByARegistration(t *testing.T) {
	hub, member := newCluster(t)
	hub.serve(hub.grant)
	member.put(naming.AgentSecret, map[string][]byte{"kubeconfig": []byte("garbage")})
	agent := member.start()
	agent.untilState(Waiting, "secret "+member.namespace+"/fleet-agent cannot be used", "no key deploymentNamespace")
	member.bootstrap(hub.values())
	agent.untilJoined()
}

func TestRevokedAgentSaysSoAndJoinsAgainOnlyWithAToken(t *testing.T) {
	hub, member, agent := newJoinedCluster(t)
	hub.revoke()
	agent.untilState(Waiting, "the hub refuses the credential of "+hub.workspace+"/my-cluster", "there is no secret", "helm upgrade")
	hub.requested(1)
	if member.secret(naming.AgentSecret) == nil {
		t.Error("the refused credential was thrown away")
	}
	member.bootstrap(hub.values())
	agent.untilJoined()
}

func TestTokenGivenRightAfterARevocationIsNotForgotten(t *testing.T) {
	hub, member, agent := newJoinedCluster(t, func(h *testHub) { h.period = 600 })
	member.untilForgotten(agent)
	before := hub.joinedAt(agent, member)
	hub.revoke()
	member.bootstrap(hub.values())
	agent.until("a second registration", func() error {
		if after := hub.joinedAt(agent, member); after.JoinedWith == before.JoinedWith {
			return errors.New("the credential is that of the first")
		}
		return nil
	})
	hub.requested(2)
}

func TestUnreachableHubCostsNothing(t *testing.T) {
	hub, member := newCluster(t)
	hub.serve(hub.grant)
	values := hub.values()
	member.bootstrap(values)
	with, err := join.ParseBootstrap(member.secret(naming.AgentBootstrapSecret), false)
	check(t, err)
	secret, err := (hubclient.Credential{
		Server: "https://127.0.0.1:1", Token: "t", MemberNamespace: "m", Workspace: "clusters", Cluster: "c", JoinedWith: with.Digest(""),
	}).Secret(member.namespace)
	check(t, err)
	member.put(naming.AgentSecret, secret.Data)
	agent := member.start()
	agent.untilState(Unreachable, "https://127.0.0.1:1 cannot be reached", "connection refused", "the credential is kept")
	if hub.count() != 0 || member.secret(naming.AgentBootstrapSecret) == nil || member.secret(naming.AgentSecret) == nil {
		t.Error("an unreachable hub made the agent register or throw something away")
	}
}

func TestWrongCASaysWhatWasSeenAndWhatIsTrusted(t *testing.T) {
	hub, member := newCluster(t)
	values := hub.values()
	values["apiServerCA"] = otherCA(t)
	member.configure(`{"agentTLSMode":"strict"}`)
	member.bootstrap(values)
	agent := member.start()
	agent.untilState(Retrying, "cannot be trusted", "it showed the certificate CN=", "SHA-256", "trusted: CN=another", "set apiServerCA")
	delete(values, "apiServerCA")
	member.bootstrap(values)
	agent.untilState(Denied, "strict trusts only the given CA, and there is none")
}

func TestAgentMayRenewItsOwnToken(t *testing.T) {
	config := startCluster(t)
	hub := newTestHub(t, config)
	session, err := hubclient.NewSession(hubclient.Credential{
		Server: hub.config.Host, CA: hub.config.CAData, Token: hub.prepare(time.Hour),
		MemberNamespace: hub.namespace, Workspace: hub.workspace, Cluster: "my-cluster",
	}, hubclient.Trust{Mode: hubclient.TLSStrict}, clock.RealClock{})
	check(t, err)
	token, err := session.RequestToken(t.Context(), time.Hour)
	check(t, err)
	claims := credential.ClaimsOf(token)
	if life := claims.Expires.Sub(claims.Issued); life != time.Hour {
		t.Errorf("the new token lives %s, want 1h", life)
	}
	session.SetToken(token)
	result, err := session.Verify(t.Context(), func(error) {})
	if result != hubclient.Accepted {
		t.Errorf("the new token is %s: %v", result, err)
	}
}

func TestRestartedWhileWaitingItAsksAgain(t *testing.T) {
	hub, member := newCluster(t)
	hub.serve(func(r *fleet.ClusterRegistration) fleet.ClusterRegistrationStatus {
		if hub.count() == 1 {
			return state("Pending", "X", "y")
		}
		return hub.grant(r)
	})
	member.bootstrap(hub.values())
	first := member.start()
	first.untilState(Joining, "is Pending")
	first.stop()
	member.start().untilJoined()
}

func TestLostReportIsNoReasonToLeave(t *testing.T) {
	hub, _, agent := newJoinedCluster(t)
	check(t, hub.reports().Delete(t.Context(), hub.name, metav1.DeleteOptions{}))
	hub.prepare(time.Hour)
	agent.until("the new report is filled", func() error {
		report, err := hub.report()
		if err != nil {
			return err
		}
		if report.Status.KubernetesVersion == "" {
			return errors.New("it is empty")
		}
		return nil
	})
	if _, reason, joined := agent.Status(); !joined {
		t.Errorf("no longer joined: %s", reason)
	}
}
