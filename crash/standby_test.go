package crash

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/standby"
	"github.com/muster-fleet/muster/internal/fleet/term"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/naming"
)

// memberOfLostHub gives a cluster the credential, the key and the term of a lost hub. The hub of
// the run has the key of the lost one, and a higher term.
func (in *run) memberOfLostHub() {
	in.t.Helper()
	ctx := context.Background()
	in.identity()
	account := standby.ServiceAccount(naming.SystemNamespace)
	role, binding := standby.ReadingPublished(naming.SystemNamespace)
	for _, earlier := range []client.Object{binding, role, account.DeepCopy()} { // of an earlier run
		in.check(client.IgnoreNotFound(in.Delete(ctx, earlier)))
	}
	in.create(in.Client, account)
	token := bearer(in.t, in.Client, account.Namespace, account.Name)
	in.create(in.Client, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: in.id, Name: "lost"}})
	refused := bearer(in.t, in.Client, in.id, "lost")
	in.check(in.Delete(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: in.id, Name: "lost"}}))

	key, err := credential.NewAgentKey()
	in.check(err)
	var secret corev1.Secret
	in.check(in.get(&secret, naming.SystemNamespace, naming.HubIdentitySecret))
	own, err := term.FromSecret(&secret)
	in.check(err)
	own.Term--
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	in.lost = loss{key: key, server: "https://" + gone.Listener.Addr().String()}
	ca := in.hubFront.Config.CAData
	addresses := hubclient.Addresses{AfterSeconds: 1, Report: "lost", List: []hubclient.Address{
		{Server: in.lost.server, CA: ca}, {Server: in.hubFront.Config.Host, CA: ca, Token: token},
	}}
	at := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: in.agentNamespace(), Name: name}
	}
	for _, o := range []client.Object{
		&corev1.Secret{ObjectMeta: at(naming.AgentKeySecret), Data: map[string][]byte{"key": key.Seed()}},
		&corev1.ConfigMap{ObjectMeta: at(naming.ObeyedTermConfigMap), Data: map[string]string{term.ConfigMapKey: term.Encode(own.On("lost"))}},
		&corev1.Secret{ObjectMeta: at(naming.MemberAgentCredentialSecret), Type: "muster/member-credential", StringData: map[string]string{
			"token": refused, "sequence": "7", "memberClusterName": in.id, "memberNamespace": naming.MemberClusterNamespace(in.id),
			"servers": in.lost.server, "ca.crt": string(ca), "hubAddresses": string(addresses.Encode()),
		}},
	} {
		in.create(in.on, o)
	}
}

// comeToStandby restores the MemberCluster at its successor, and starts the agent.
func (in *run) comeToStandby() {
	in.t.Helper()
	public := in.lost.key.Public()
	in.create(in.Client, &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: in.id, Annotations: map[string]string{
			fleet.AnnotationAgentKey: credential.Fingerprint(public), fleet.AnnotationRestoredKey: base64.StdEncoding.EncodeToString(public),
		}},
		Spec: clusterv1beta1.MemberClusterSpec{HeartbeatPeriodSeconds: 60, Identity: rbacv1.Subject{
			Kind: rbacv1.ServiceAccountKind, Name: in.id, Namespace: naming.MemberSystemNamespace,
		}},
	})
	in.startAgent("--delivery=false", "--hub-server-url", in.lost.server, "--member-cluster-name", in.id,
		"--hub-certificate-authority", base64.StdEncoding.EncodeToString(in.hubFront.Config.CAData),
		"--hub-token-secret", in.agentNamespace()+"/hub-kubeconfig-secret")
	in.untilMemberHealthy()
	at := standby.PublishedAt(naming.SystemNamespace, credential.Fingerprint(public))
	in.eventually("nothing is published for the agent", func() error {
		if err := in.Get(context.Background(), at, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}
