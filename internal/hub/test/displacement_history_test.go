package hub_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/naming"
)

// TestDeniedTakeoversAreInTheHistoryOfTheMember plays an attacker with a token who knows the client
// ID and the public key of a member, and sends a thousand requests. An approver denies another.
func TestDeniedTakeoversAreInTheHistoryOfTheMember(t *testing.T) {
	f := newAlone(t, `{"registration":{"maxWaitingPerToken":5000,"maxWaitingPerWorkspace":5000}}`)
	_, values := f.token("new-token", "")
	holder := f.join(values, map[string]any{"clientID": "web"})
	cluster := f.untilReady(naming.Cluster("web"), "Ready")
	own, err := credential.ParseAgentKey(f.keySecret(holder.agentNamespace).Data["key"])
	f.check(err)
	writes := f.historyWrites(&cluster)

	const requests = 1000
	key := answerKey(t).Public()
	f.requestMany(values, requests, func(int) fleet.ClusterRegistrationSpec {
		return fleet.ClusterRegistrationSpec{ClientID: "web", AnswerKey: key, AgentKey: own.Public(), Signature: make([]byte, 64)}
	})
	f.eventually("all requests are denied", func() error {
		if _, reasons := f.requests("new-token"); reasons["InvalidSignature"] != requests {
			return fmt.Errorf("there are %v", reasons)
		}
		return nil
	})
	f.eventually("the history has the attempts", func() error {
		return f.denials(&cluster, "InvalidSignature", "a wrong signature and registration token new-token")
	})
	thief := f.mustAsk(values, f.signed(f.keyOf("thief"), values, "web", answerKey(t)))
	f.untilState(&thief, fleet.RegistrationPending, "HolderAlive")
	approver, _ := f.userWith(f.workspace, "approver", rbacv1.PolicyRule{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusterregistrations"}, Verbs: []string{"get", "patch", "approve"}})
	f.check(f.decide(approver, &thief, "false"))
	f.untilState(&thief, fleet.RegistrationDenied, "NotApproved")
	f.eventually("the history has the denial", func() error {
		user := "system:serviceaccount:" + f.workspace + ":approver"
		return f.denials(&cluster, "NotApproved", user+" denied a registration request for the member", thief.Name)
	})
	if n := writes.Load(); n > 3 {
		t.Errorf("%d denied requests changed the history in %d writes", requests+1, n)
	}
	for _, entry := range f.untilReady(cluster.Name, "Ready").Status.History {
		if entry.Reason == clusterv1beta1.HistoryJoined {
			return
		}
	}
	t.Error("the denials displaced the entry Joined")
}

// historyWrites counts the changes of a Cluster's history from now on.
func (f fixture) historyWrites(cluster *fleet.Cluster) *atomic.Int32 {
	f.t.Helper()
	events := f.follow(&fleet.ClusterList{}, client.InNamespace(f.workspace))
	writes, known := &atomic.Int32{}, cluster.Status.History
	go func() {
		for event := range events {
			if seen, ok := event.Object.(*fleet.Cluster); ok && seen.UID == cluster.UID && !equality.Semantic.DeepEqual(known, seen.Status.History) {
				known = seen.Status.History
				writes.Add(1)
			}
		}
	}()
	return writes
}

// denials checks that the history of a Cluster has an entry about a cause with the given texts.
func (f fixture) denials(cluster *fleet.Cluster, cause string, texts ...string) error {
	var is fleet.Cluster
	f.check(f.get(&is, cluster.Namespace, cluster.Name))
	for _, entry := range is.Status.History {
		if entry.Cause != cause || entry.Reason != clusterv1beta1.HistoryDenied {
			continue
		}
		for _, text := range texts {
			if !strings.Contains(entry.Message, text) {
				return fmt.Errorf("the entry says %q", entry.Message)
			}
		}
		return nil
	}
	return fmt.Errorf("the history is %v", is.Status.History)
}
