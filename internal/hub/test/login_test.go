package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// cloudPlugin is a program that answers with the credential of a user, as the plugins of clouds
// do. The API server of the hub knows the user without an account.
func (f fixture) cloudPlugin(user string) string {
	f.t.Helper()
	certificate, key := testkube.ClientCertificate(f.t, f.cluster.Config, user)
	answer, err := json.Marshal(map[string]any{
		"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": map[string]string{
			"clientCertificateData": string(certificate),
			"clientKeyData":         string(key),
		},
	})
	f.check(err)
	path := filepath.Join(f.t.TempDir(), "cloud-plugin")
	f.check(os.WriteFile(path, []byte("#!/bin/sh\ncat <<'EOF'\n"+string(answer)+"\nEOF\n"), 0o700)) //nolint:gosec // a program
	return path
}

const loginSecret = "cloud"

// giveKubeconfig writes a kubeconfig of the hub into the namespace of an agent.
func (m *member) giveKubeconfig(plugin string, labels map[string]string) {
	m.t.Helper()
	kubeconfig := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: hub\nclusters: [{name: hub, cluster: {server: %q}}]\n"+
		"contexts: [{name: hub, context: {cluster: hub, user: cloud}}]\nusers: [{name: cloud, user: {exec: {command: %q, "+
		"interactiveMode: Never, apiVersion: client.authentication.k8s.io/v1}}}]\n", m.cluster.Config.Host, plugin)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.agentNamespace, Name: loginSecret, Labels: labels},
		StringData: map[string]string{"kubeconfig": kubeconfig},
	}
	err := m.Create(context.Background(), secret)
	if apierrors.IsAlreadyExists(err) {
		err = m.Update(context.Background(), secret)
	}
	m.check(err)
}

func withKubeconfig(o *agent.Options) { o.HubKubeconfig.Secret = loginSecret }

// untilSays waits until the agent says all parts.
func (m *member) untilSays(parts ...string) {
	m.t.Helper()
	m.eventually("the agent says "+strings.Join(parts, " ... "), func() error {
		state, reason, _ := m.agent.Status()
		for _, part := range parts {
			if !strings.Contains(string(state)+": "+reason, part) {
				return fmt.Errorf("it says %s: %s", state, reason)
			}
		}
		return nil
	})
}

// TestAMemberClusterJoinsWithTheIdentityOfACloud has no token at all. The agent uses the identity
// until the hub has issued a credential, and then no longer.
func TestAMemberClusterJoinsWithTheIdentityOfACloud(t *testing.T) {
	f := newFixture(t)
	user := "arn:cloud:" + f.workspace
	r := f.register("cloudy", every(10), func(mc *clusterv1beta1.MemberCluster) {
		mc.Spec.Identity = rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}
	})
	r.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	plugin := f.cloudPlugin(user)
	m := &member{fixture: f, agentNamespace: f.namespace("agent-")}
	given := agent.Membership{Server: f.cluster.Config.Host, Name: r.name, CA: string(f.cluster.Config.CAData), SecretNamespace: "default",
		SecretName: "none"}
	m.options = []func(*agent.Options){withKubeconfig, func(o *agent.Options) { o.Membership = &given }}
	m.start()
	m.untilSays("Waiting", "there is no secret "+m.agentNamespace+"/"+loginSecret, "with a kubeconfig of the hub for member "+r.name)
	m.giveKubeconfig(plugin, map[string]string{naming.LabelObjectSet: "a-bundle"})
	m.untilSays("BadInput", "a hub has delivered it")
	m.giveKubeconfig("muster-no-such-plugin", nil)
	m.untilSays("Waiting", `the program "muster-no-such-plugin", which is not in the agent's container`)
	m.giveKubeconfig(f.cloudPlugin("arn:cloud:another"), nil)
	m.untilSays("the hub knows no member "+r.name+` for user "cloud" of the kubeconfig in secret `+m.agentNamespace+"/"+loginSecret,
		"kubectl auth whoami")
	m.giveKubeconfig(plugin, nil)
	r.until("CredentialExchanged", metav1.ConditionTrue, "Exchanged")
	r.until("Joined", metav1.ConditionTrue, "MemberClusterJoined")

	f.check(os.Remove(plugin))
	m.stop()
	m.start()
	m.untilSays("joined as member " + r.name)
	if strings.Contains(m.logged.String(), "BEGIN") {
		t.Error("the log holds a certificate or a key")
	}
}

// TestAClusterRegistersWithTheIdentityOfACloud plays an administrator of the hub who grants the
// rights one by one.
func TestAClusterRegistersWithTheIdentityOfACloud(t *testing.T) {
	f := newFixture(t)
	f.stampingToken("cloudy", fleet.ClusterRegistrationTokenSpec{MaxRegistrations: new(int32(1)), Labels: map[string]string{
		fleet.LabelPrefixStamped + "origin": "cloud"}})
	user := "arn:cloud:" + f.workspace
	m := f.install(map[string]string{"clusterNamespace": f.workspace, "tokenName": "cloudy"}, map[string]any{"clientID": "web"})
	m.options = []func(*agent.Options){withKubeconfig}
	m.start()
	m.untilSays("BadInput", "there is no secret "+m.agentNamespace+"/"+loginSecret)
	m.giveKubeconfig(f.cloudPlugin(user), nil)
	m.untilSays("may not register clusters in workspace "+f.workspace,
		"grant create, get, list and watch on clusterregistrations there, and register on clusterregistrationtokens/cloudy")

	requests := rbacv1.PolicyRule{APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusterregistrations"},
		Verbs: []string{"create", "get", "list", "watch"}}
	meta := metav1.ObjectMeta{Namespace: f.workspace, Name: "cloud"}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{requests}}
	f.check(f.Create(context.Background(), role))
	f.check(f.Create(context.Background(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}))
	m.giveKubeconfig(f.cloudPlugin(user), nil) // another version is tried at once
	m.untilSays("names ClusterRegistrationToken cloudy, which is not the one that asks", "grant register on clusterregistrationtokens/cloudy")
	f.change(role, func() {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: requests.APIGroups, Resources: []string{"clusterregistrationtokens"},
			ResourceNames: []string{"cloudy"}, Verbs: []string{"register"}})
	})
	m.giveKubeconfig(f.cloudPlugin(user), nil)
	m.untilSays("joined as " + f.workspace + "/" + naming.Cluster("web"))
	cluster := f.untilReady(naming.Cluster("web"), "Ready")
	if cluster.Labels[fleet.LabelPrefixStamped+"origin"] != "cloud" {
		t.Errorf("the label of the token is missing: %v", cluster.Labels)
	}
	f.eventually("the agent forgets the request for a registration, and not the kubeconfig", func() error {
		if err := f.get(&corev1.Secret{}, m.agentNamespace, naming.AgentBootstrapSecret); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the bootstrap Secret: %v", err)
		}
		return f.get(&corev1.Secret{}, m.agentNamespace, loginSecret)
	})

	// The limit of the token holds for the identity, too.
	second := f.install(map[string]string{"clusterNamespace": f.workspace, "tokenName": "cloudy"}, map[string]any{"clientID": "db"})
	second.options = []func(*agent.Options){withKubeconfig}
	second.giveKubeconfig(f.cloudPlugin(user), nil)
	second.start()
	second.untilSays("Denied", "TokenUsedUp")
}
