package agent

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// TestAnIdentityOfAKubeconfigEndsWithTheFirstCredentialOfTheHub takes all rights of the identity
// away after the exchange. A client certificate would otherwise win over the hub's token.
func TestAnIdentityOfAKubeconfigEndsWithTheFirstCredentialOfTheHub(t *testing.T) {
	config := startCluster(t)
	hub := newMemberHub(t, config, "cloudy")
	hub.period = 1
	member := newKeyedMember(t, hub)
	hub.apply()
	user := "arn:cloud:" + member.namespace
	certificate, key := testkube.ClientCertificate(t, config, user)
	kube, meta := hub.kube.RbacV1().RoleBindings(hub.namespace), metav1.ObjectMeta{Name: "cloud"}
	_, err := kube.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "role"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	check(t, err)
	encoded := base64.StdEncoding.EncodeToString
	member.put("hub-token", map[string][]byte{"kubeconfig": []byte(fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: hub\n"+
		"clusters: [{name: hub, cluster: {server: %q, certificate-authority-data: %s}}]\n"+
		"contexts: [{name: hub, context: {cluster: hub, user: u}}]\n"+
		"users: [{name: u, user: {client-certificate-data: %s, client-key-data: %s}}]\n",
		config.Host, encoded(config.CAData), encoded(certificate), encoded(key)))})
	agent := member.start(member.membership(hub, func(m *Membership) { m.CA, m.SecretName = "", "unused" }), func(o *Options) {
		o.HubKubeconfig.Secret = "hub-token"
	})
	agent.untilJoined()
	uid := hub.exchange()
	hub.issue(agent, uid, 1, hub.token(hub.namespace, naming.MemberServiceAccount, time.Hour))
	hub.untilUsed(agent, uid, 1)
	for _, binding := range []string{"cloud", "binding"} {
		check(t, kube.Delete(t.Context(), binding, metav1.DeleteOptions{}))
	}
	time.Sleep(2 * time.Second) // the API server notices
	before := hub.lease().RenewTime
	agent.until("two more heartbeats arrive", func() error {
		if after := hub.lease().RenewTime; after.Sub(before.Time) < 2*time.Second {
			return fmt.Errorf("the last one was at %s", after)
		}
		return nil
	})
	if lines := agent.lines(); strings.Contains(lines, "PRIVATE") || strings.Contains(lines, encoded(key)[:40]) {
		t.Errorf("the log holds the key:\n%s", lines)
	}
	agent.stop()

	// The CA in the kubeconfig outlives it.
	member.remove("hub-token")
	agent = member.start(member.membership(hub, func(m *Membership) { m.CA, m.SecretName = "", "unused" }), func(o *Options) {
		o.HubKubeconfig.Secret = "hub-token"
	})
	agent.untilJoined()
}

// TestWithoutAKeyAKubeconfigIsOfNoUse takes the right to a key away, as the chart of an earlier
// version does.
func TestWithoutAKeyAKubeconfigIsOfNoUse(t *testing.T) {
	config := startCluster(t)
	hub, member := newMemberHub(t, config, "keyless"), newGivenMember(t, config)
	hub.apply()
	member.put("hub-token", map[string][]byte{"kubeconfig": []byte(fmt.Sprintf("apiVersion: v1\nkind: Config\n"+
		"clusters: [{name: hub, cluster: {server: %q}}]\ncontexts: [{name: hub, context: {cluster: hub, user: u}}]\n"+
		"users: [{name: u, user: {token: %s}}]\n", config.Host, hub.own()))})
	agent := member.start(member.membership(hub), func(o *Options) { o.HubKubeconfig.Secret = "hub-token" })
	agent.untilState(Waiting, "the agent cannot keep a key", "upgrade the agent's chart")
}

func TestAKubeconfigThatAHubDeliveredIsRefused(t *testing.T) {
	kubeconfig := map[string][]byte{"kubeconfig": []byte("apiVersion: v1\nkind: Config\n" +
		"clusters: [{name: a, cluster: {server: 'https://hub'}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n" +
		"users: [{name: a, user: {token: t}}]\n")}
	owned := func(version string) metav1.ObjectMeta {
		return metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: version, Kind: "AppliedWork", Name: "w", UID: "1"}}}
	}
	for name, c := range map[string]struct {
		meta    metav1.ObjectMeta
		refused bool
	}{
		"an administrator's":                {metav1.ObjectMeta{}, false},
		"a Helm release's of the cluster":   {metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}}, false},
		"another owner's":                   {owned("external-secrets.io/v1"), false},
		"a Bundle's":                        {metav1.ObjectMeta{Labels: map[string]string{naming.LabelObjectSet: "x"}}, true},
		"a Work's":                          {owned("placement.kubernetes-fleet.io/v1"), true},
		"a Work's of another API's version": {owned("placement.kubernetes-fleet.io/v1beta1"), true},
	} {
		_, err := HubKubeconfig{Secret: "s"}.login(&corev1.Secret{ObjectMeta: c.meta, Data: kubeconfig})
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "a hub has delivered it") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
