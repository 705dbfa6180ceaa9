package hub_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// kept is the Secret of what the hub has issued to the agent.
func (x *exchanging) kept() *corev1.Secret {
	x.registered.t.Helper()
	var secret corev1.Secret
	x.registered.check(x.registered.get(&secret, x.agentNamespace, naming.MemberAgentCredentialSecret))
	return &secret
}

// backToken is the token with which the agent may come back.
func (x *exchanging) backToken() string {
	x.registered.t.Helper()
	token := string(x.kept().Data["reconnectToken"])
	if token == "" {
		x.registered.t.Fatal("the agent has no token to come back with")
	}
	return token
}

// withoutStatic deletes the static token on both sides, as the condition says.
func (x *exchanging) withoutStatic() {
	x.registered.t.Helper()
	ctx := context.Background()
	x.registered.check(x.registered.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: x.agentNamespace, Name: tokenSecret}}))
	x.registered.check(x.registered.Delete(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: naming.MemberSystemNamespace, Name: x.name},
	}))
}

// goAway stops the agent, and makes its credential one that has run out, for the agent and the hub.
func (x *exchanging) goAway() {
	x.registered.t.Helper()
	x.stop()
	secret := x.kept()
	claims := credential.ClaimsOf(string(secret.Data["token"]))
	payload := fmt.Sprintf(`{"sub":%q,"iat":1,"exp":601,"kubernetes.io":{"serviceaccount":{"uid":%q}}}`, claims.Subject, claims.AccountUID)
	secret.Data["token"] = []byte("e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln")
	x.registered.check(x.registered.Update(context.Background(), secret))
	x.until("Healthy", metav1.ConditionFalse, "AgentLost")
}

// issuedBefore has the hub believe that it issued the credential earlier, to live for ten minutes.
// Of a silent member another one is due in the middle of that, and of one that is alive after a
// seventh.
func (x *exchanging) issuedBefore(age time.Duration) {
	x.registered.t.Helper()
	issued := time.Now().Add(-age).UTC()
	x.registered.check(merge(x.registered, x.report(), fmt.Sprintf(`{"spec":{"credential":{"issued":%q,"expires":%q}}}`,
		issued.Format(time.RFC3339), issued.Add(10*time.Minute).Format(time.RFC3339))))
}

// untilAwaited waits until the report holds a credential after the one given, and returns it.
func (x *exchanging) untilAwaited(after int64) *clusterv1beta1.IssuedCredential {
	x.registered.t.Helper()
	var found *clusterv1beta1.IssuedCredential
	x.registered.eventually("the report holds a credential for the agent", func() error {
		if found = x.report().Spec.Credential; found == nil || len(found.Sealed) == 0 || found.Sequence <= after {
			return fmt.Errorf("it has %+v", found)
		}
		return nil
	})
	return found
}

// untilAsks waits until the agent says that it needs a token of the user's, and why else.
func (x *exchanging) untilAsks(parts ...string) {
	x.registered.t.Helper()
	x.registered.eventually("the agent says what it needs", func() error {
		state, reason, joined := x.member.agent.Status()
		for _, part := range append(parts, "put a token of the identity of the MemberCluster into secret") {
			if joined || !strings.Contains(reason, part) {
				return fmt.Errorf("it is %s and says %q, not %q", state, reason, part)
			}
		}
		return nil
	})
}

// untilEnded waits until nothing lets the agent come back any more.
func (x *exchanging) untilEnded(token, namespace string) {
	x.registered.t.Helper()
	x.untilRefused("the token to come back with", token, namespace)
	for _, name := range []string{naming.MemberReconnectAccount, naming.MemberServiceAccount} {
		x.registered.eventually("account "+name+" is gone", func() error {
			return gone(x.registered.get(kube.CoreMetadata("ServiceAccount"), namespace, name))
		})
	}
}
