package hub_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// stored is the Secret with the credential of an agent.
func (m *member) stored() *corev1.Secret {
	m.t.Helper()
	var secret corev1.Secret
	m.check(m.get(&secret, m.agentNamespace, naming.AgentSecret))
	return &secret
}

// TestTheHubRenewsACredentialAndNoticesACopyOfTheOlderOne waits for a renewal of a credential that lives as short as Kubernetes allows.
func TestTheHubRenewsACredentialAndNoticesACopyOfTheOlderOne(t *testing.T) {
	f := newAlone(t, `{"importLoopback":true,"agentTokenLifetime":"10m"}`)
	_, values := f.token("new-token", "")
	m := f.install(values, map[string]any{"clientID": "renewed"})
	m.start()
	name := naming.Cluster("renewed")
	f.untilReady(name, "Ready")
	copied := m.stored()
	bearer, namespace := m.credential()
	f.refused("an agent whose credential the hub renews requests a token", issue(f.as(bearer), namespace, naming.MemberServiceAccount))

	var cluster fleet.Cluster
	f.eventually("another credential is in use", func() error {
		if err := f.get(&cluster, f.workspace, name); err != nil {
			return err
		}
		if c := cluster.Status.Credential; c == nil || c.Sequence != 1 || c.Kind != "native" || c.Expires.IsZero() || c.Key != cluster.Annotations[fleet.AnnotationAgentKey][:12] {
			return fmt.Errorf("the status says %+v", c)
		}
		return nil
	})
	renewed := m.stored()
	if string(renewed.Data["sequence"]) != "1" || bytes.Equal(renewed.Data["token"], copied.Data["token"]) {
		t.Errorf("the agent has stored credential %q", renewed.Data["sequence"])
	}
	f.eventually("the sealed token is withdrawn", func() error {
		var report clusterv1beta1.InternalMemberCluster
		if err := f.get(&report, namespace, name); err != nil {
			return err
		}
		if c := report.Spec.Credential; c == nil || c.Sequence != 1 || len(c.Sealed) > 0 {
			return fmt.Errorf("the report has %+v", c)
		}
		return nil
	})

	m.stop()
	before := renewed.DeepCopy()
	before.Data = copied.Data
	f.check(f.Update(context.Background(), before))
	m.start()
	f.eventually("the copy is noticed", func() error { return f.cloned(name, true) })
	f.eventually("the agent says so", func() error {
		if _, reason, _ := m.agent.Status(); !bytes.Contains([]byte(reason), []byte("restored from a backup")) {
			return fmt.Errorf("it says %q", reason)
		}
		return nil
	})
	f.check(f.get(&cluster, f.workspace, name))
	accepted := cluster.DeepCopy()
	accepted.Annotations[fleet.AnnotationAcceptCredential] = strconv.FormatInt(*cluster.Status.Credential.Superseded, 10)
	f.check(f.Patch(context.Background(), accepted, client.MergeFrom(&cluster)))
	f.eventually("an admin has decided", func() error { return f.cloned(name, false) })
	f.untilReady(name, "Ready")
}

// cloned says whether a Cluster has the condition of that name.
func (f fixture) cloned(name string, want bool) error {
	var cluster fleet.Cluster
	if err := f.get(&cluster, f.workspace, name); err != nil {
		return err
	}
	if found := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionCloned); (found != nil) != want {
		return fmt.Errorf("condition %+v, credential %+v", found, cluster.Status.Credential)
	}
	return nil
}

// TestAnAgentWithoutAKeyRenewsItsCredentialItself is how agents of earlier versions live with this hub, until they report a key.
func TestAnAgentWithoutAKeyRenewsItsCredentialItself(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	opener := answerKey(t)
	request := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: "older", AnswerKey: opener.Public()})
	f.untilState(&request, fleet.RegistrationGranted, "Granted")
	namespace := naming.MemberNamespace(f.workspace, naming.Cluster("older"))
	answer, err := opener.Open(string(request.UID), request.Status.Answer)
	f.check(err)
	own := f.as(answer.Token)
	f.eventually("it requests a token", func() error { return issue(own, namespace, naming.MemberServiceAccount) })

	var report clusterv1beta1.InternalMemberCluster
	f.check(f.get(&report, namespace, naming.Cluster("older")))
	key := f.keyOf("older")
	patch := fmt.Appendf(nil, `{"status":{"agentVersion":"v1","agentKey":%q}}`, base64.StdEncoding.EncodeToString(key.Public()))
	f.check(own.Status().Patch(context.Background(), &report, client.RawPatch("application/merge-patch+json", patch)))
	f.eventually("the right ends", func() error {
		if issue(own, namespace, naming.MemberServiceAccount) == nil {
			return fmt.Errorf("it still requests tokens")
		}
		return nil
	})
}
