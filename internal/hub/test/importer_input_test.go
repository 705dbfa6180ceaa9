package hub_test

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// aKubeconfig is one that leads nowhere.
const aKubeconfig = `
current-context: default
contexts: [{name: default, context: {cluster: cluster, user: user}}]
clusters: [{name: cluster, cluster: {server: "https://example.com:6443"}}]
users: [{name: user, user: {token: s3cret}}]
`

func TestWhatIsWrongWithAKubeconfigIsInTheRecordOfTheCluster(t *testing.T) {
	i := newImporting(t, nil)
	expired := base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"system:serviceaccount:a:b","exp":1767322000}`))
	for reason, c := range map[string]struct{ from, to, says string }{
		"ContextMissing": {"current-context: default", "current-context: gone", `current-context of the kubeconfig of Secret`},
		"KubeconfigRunsCode": {"token: s3cret", "exec: {command: sh, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}",
			"exec"},
		"KubeconfigReadsFiles": {"token: s3cret", "tokenFile: /var/run/secrets/token", "tokenFile"},
		"CredentialMissing":    {"token: s3cret", "", "neither a token nor a client certificate"},
		"CredentialExpired":    {"token: s3cret", "token: e30." + expired + ".c2ln", "expired at 2026-01-02"},
	} {
		name := strings.ToLower(reason)
		i.check(i.Create(context.Background(), i.secret(name, []byte(strings.Replace(aKubeconfig, c.from, c.to, 1)))))
		i.record(name, name)
		cluster := i.imported(name, reason)
		if message := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionImported).Message; !strings.Contains(message, c.says) ||
			strings.Contains(message, "s3cret") {
			t.Errorf("%s: %s", reason, message)
		}
	}

	i.check(i.Create(context.Background(), &fleet.ClusterRegistrationToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: i.workspace, Name: naming.ImportToken("taken")},
	}))
	i.check(i.Create(context.Background(), i.secret("taken", i.down.Kubeconfig(t, i.token))))
	i.record("taken", "taken")
	i.imported("taken", "TokenRefused")
	if visits := i.visits.Load(); visits > 0 {
		var secrets corev1.SecretList
		i.check(i.remote.List(context.Background(), &secrets, client.InNamespace(i.agentNamespace)))
		if len(secrets.Items) > 0 {
			t.Errorf("something was installed with the token of somebody else: %v", secrets.Items)
		}
	}
}
