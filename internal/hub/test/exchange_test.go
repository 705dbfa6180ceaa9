package hub_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// exchanging is a MemberCluster whose agent, one of ours, begins with the token of the how-to,
// which never expires.
type exchanging struct {
	*registered
	*member
	static string
	given  agent.Membership
}

// exchanging registers a member and starts its agent, which has exchanged the token when this
// returns.
func (f fixture) exchanging(prefix string, change ...func(*exchanging)) *exchanging {
	f.t.Helper()
	r := f.register(prefix, every(10)) // an agent notices with its next beat that it is refused
	r.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	f.check(f.Create(context.Background(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: naming.MemberSystemNamespace, Name: r.name, Annotations: map[string]string{corev1.ServiceAccountNameKey: r.name},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}))
	x := &exchanging{registered: r, member: &member{fixture: f, agentNamespace: f.namespace("agent-")}}
	f.eventually("the Secret has a token", func() error {
		var secret corev1.Secret
		if err := f.get(&secret, naming.MemberSystemNamespace, r.name); err != nil || len(secret.Data["token"]) == 0 {
			return fmt.Errorf("it has none: %v", err)
		}
		x.static = string(secret.Data["token"])
		return nil
	})
	f.check(f.Create(context.Background(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.agentNamespace, Name: tokenSecret}, Data: map[string][]byte{"token": []byte(x.static)},
	}))
	x.given = agent.Membership{
		Server: f.cluster.Config.Host, Name: r.name, CA: base64.StdEncoding.EncodeToString(f.cluster.Config.CAData),
		SecretNamespace: x.agentNamespace, SecretName: tokenSecret,
	}
	x.options = []func(*agent.Options){func(o *agent.Options) { given := x.given; o.Membership = &given }}
	for _, set := range change {
		set(x)
	}
	x.start()
	x.until("CredentialExchanged", metav1.ConditionTrue, "Exchanged")
	return x
}

// issued is the credential that the agent has stored.
func (x *exchanging) issued() string {
	x.registered.t.Helper()
	var secret corev1.Secret
	x.registered.check(x.registered.get(&secret, x.agentNamespace, naming.MemberAgentCredentialSecret))
	return string(secret.Data["token"])
}

// reads returns the hub's answer to a client that reads the report with a token.
func (x *exchanging) reads(token, namespace string) error {
	return x.registered.as(token).Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: x.name},
		&clusterv1beta1.InternalMemberCluster{})
}

// untilRefused waits until the hub does not let a token in any more.
func (x *exchanging) untilRefused(what, token, namespace string) {
	x.registered.t.Helper()
	x.registered.eventually(what+" is refused", func() error {
		if err := x.reads(token, namespace); !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) {
			return fmt.Errorf("the hub says %v", err)
		}
		return nil
	})
}

func (x *exchanging) untilJoined() {
	x.registered.t.Helper()
	x.registered.eventually("the agent has joined", func() error {
		if state, reason, joined := x.member.agent.Status(); !joined {
			return fmt.Errorf("it is %s: %s", state, reason)
		}
		return nil
	})
}

func (x *exchanging) report() *clusterv1beta1.InternalMemberCluster {
	x.registered.t.Helper()
	var report clusterv1beta1.InternalMemberCluster
	x.registered.check(x.registered.get(&report, x.namespaceName(), x.name))
	return &report
}

func TestTheTokenOfAMemberIsExchangedAndThenDeleted(t *testing.T) {
	f := newFixture(t)
	x := f.exchanging("exchange")
	said := x.until("CredentialExchanged", metav1.ConditionTrue, "Exchanged").Message
	mc, issued := x.record(), x.issued()
	status, key := mc.Status.Credential, mc.Annotations[fleet.AnnotationAgentKey]
	if status == nil || status.Sequence != 1 || status.Kind != "native" || key == "" || status.Key != key[:12] || status.Superseded != nil {
		t.Fatalf("the status says %+v, and the key is %q", status, key)
	}
	for _, part := range []string{
		key[:12], status.Expires.UTC().Format(time.RFC3339), "ServiceAccount fleet-system/" + x.name + " is no longer used",
		"delete its Secret on the hub",
	} {
		if !strings.Contains(said, part) {
			t.Errorf("the condition does not say %q: %s", part, said)
		}
	}
	claims := credential.ClaimsOf(issued)
	want := credential.Claims{
		Subject: "system:serviceaccount:" + x.namespaceName() + ":agent", Namespace: x.namespaceName(),
		Account: "agent", AccountUID: status.AccountUID,
	}
	if got := (credential.Claims{Subject: claims.Subject, Namespace: claims.Namespace, Account: claims.Account,
		AccountUID: claims.AccountUID}); !cmp.Equal(got, want) || claims.Life() > 8*24*time.Hour || claims.Expires.IsZero() {
		t.Errorf("the credential is %+v", claims)
	}
	f.eventually("the sealed token is withdrawn", func() error {
		if c := x.report().Spec.Credential; c == nil || c.Sequence != 1 || len(c.Sealed) > 0 {
			return fmt.Errorf("the report has %+v", c)
		}
		return nil
	})
	var given corev1.Secret
	f.check(f.get(&given, x.agentNamespace, tokenSecret))
	if string(given.Data["token"]) != x.static || len(given.Data) != 1 {
		t.Error("the agent has written to the admin's Secret")
	}

	f.check(f.Delete(context.Background(), &given))
	f.check(f.Delete(context.Background(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: naming.MemberSystemNamespace, Name: x.name},
	}))
	x.untilRefused("a copy of the static token", x.static, x.namespaceName())
	x.stop()
	x.start()
	x.untilJoined()
	lease := leaseOf(x.namespaceName())
	before := time.Now()
	x.stop()
	x.start()
	f.eventually("it beats", func() error {
		if err := f.get(lease, lease.Namespace, lease.Name); err != nil || !lease.Spec.RenewTime.After(before) {
			return fmt.Errorf("%v, or the last beat is of %v", err, lease.Spec.RenewTime)
		}
		return nil
	})
	x.until("Joined", metav1.ConditionTrue, "MemberClusterJoined")
	x.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	x.until("CredentialExchanged", metav1.ConditionTrue, "Exchanged")
	if after := x.record(); after.Status.Credential.AccountUID != status.AccountUID {
		t.Error("the agent has another credential")
	}

	// It leaves with that credential, which is worth nothing then.
	record := x.record()
	f.check(f.Delete(context.Background(), &record))
	x.untilGone()
	f.refused("the credential of a member that has left", x.reads(issued, x.namespaceName()))
	f.check(f.get(&corev1.ServiceAccount{}, naming.MemberSystemNamespace, x.name))
}

// TestTheRightsOfAnExchangedAccountPrecedeIt compares the RoleBinding of a member before and after
// the exchange. Then an administrator declines the exchange.
func TestTheRightsOfAnExchangedAccountPrecedeIt(t *testing.T) {
	f := newFixture(t)
	var before, after rbacv1.RoleBinding
	x := f.exchanging("precede", func(x *exchanging) {
		f.check(f.get(&before, x.namespaceName(), naming.MemberClusterRoleBinding(x.name)))
		if err := f.get(&corev1.ServiceAccount{}, x.namespaceName(), naming.MemberServiceAccount); !apierrors.IsNotFound(err) {
			t.Errorf("reading the account before an agent has come: %v", err)
		}
	})
	f.check(f.get(&after, before.Namespace, before.Name))
	if diff := cmp.Diff(before, after); diff != "" || len(after.Subjects) != 2 {
		t.Errorf("the exchange has changed the RoleBinding (-before +after):\n%s", diff)
	}
	issued, record := x.issued(), x.record()
	f.change(&record, func() { record.Annotations[fleet.AnnotationAgentKey] = "" })
	x.untilRefused("the credential of a member that declines it", issued, x.namespaceName())
	f.eventually("only the identity has rights", func() error {
		if err := f.get(&after, before.Namespace, before.Name); err != nil || !cmp.Equal(after.Subjects, before.Subjects[:1]) {
			return fmt.Errorf("%v, or the RoleBinding names %v", err, after.Subjects)
		}
		return nil
	})
}

func TestAnAgentOfKubeFleetIsIssuedNothing(t *testing.T) {
	f := newFixture(t)
	m := f.register("unexchanged")
	m.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	for range 2 {
		m.eventually("the agent answers", func() error { return m.answer(metav1.ConditionTrue, "") })
		m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	}
	said := m.until("CredentialExchanged", metav1.ConditionFalse, "AgentHasNoKey").Message
	if !strings.Contains(said, "keeps the token of ServiceAccount fleet-system/"+m.name) {
		t.Errorf("it says %q", said)
	}
	mc := m.record()
	var report clusterv1beta1.InternalMemberCluster
	f.check(f.get(&report, m.namespaceName(), m.name))
	if _, pinned := mc.Annotations[fleet.AnnotationAgentKey]; pinned || mc.Status.Credential != nil || report.Spec.Credential != nil {
		t.Errorf("annotations %v, status %+v, credential %+v", mc.Annotations, mc.Status.Credential, report.Spec.Credential)
	}
	if err := f.get(&corev1.ServiceAccount{}, m.namespaceName(), naming.MemberServiceAccount); !apierrors.IsNotFound(err) {
		t.Errorf("reading an account for it: %v", err)
	}
	if err := f.get(&corev1.ServiceAccount{}, m.namespaceName(), naming.MemberReconnectAccount); !apierrors.IsNotFound(err) {
		t.Errorf("reading an account with which it comes back: %v", err)
	}
}

// TestAnotherKeyGetsNoCredentialOfAMember plays a thief with a copy of the static token. An
// administrator then decides that the thief's key is the right one.
func TestAnotherKeyGetsNoCredentialOfAMember(t *testing.T) {
	f := newFixture(t)
	x := f.exchanging("another")
	issued, before := x.issued(), x.record()
	x.stop()
	other := f.keyOf("other")
	thief := f.as(x.static)
	fingerprint := credential.Fingerprint(other.Public())
	asks := func() error {
		patch := fmt.Appendf(nil, `{"status":{"agentKey":%q,"credential":null}}`, base64.StdEncoding.EncodeToString(other.Public()))
		return thief.Status().Patch(context.Background(), x.report(), client.RawPatch("application/merge-patch+json", patch))
	}
	f.check(asks())
	said := x.until("CredentialExchanged", metav1.ConditionFalse, "AnotherKey").Message
	command := fmt.Sprintf("kubectl annotate membercluster %s muster/agent-key=%s --overwrite", x.name, fingerprint)
	if !strings.Contains(said, command) || !strings.Contains(said, before.Status.Credential.Key) {
		t.Errorf("it says %q", said)
	}
	f.refused("it pins its key itself", thief.Patch(context.Background(), before.DeepCopy(), client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, fleet.AnnotationAgentKey, fingerprint))))
	f.refused("it requests a token", issue(thief, x.namespaceName(), naming.MemberServiceAccount))
	if c := x.report().Spec.Credential; c != nil && len(c.Sealed) > 0 {
		t.Errorf("the hub has issued credential %d", c.Sequence)
	}
	f.check(x.reads(issued, x.namespaceName()))

	record := x.record()
	f.change(&record, func() { record.Annotations[fleet.AnnotationAgentKey] = fingerprint })
	x.untilRefused("the credential of the other key", issued, x.namespaceName())
	f.eventually("a credential is issued to the key", func() error {
		c := x.report().Spec.Credential
		if c == nil || len(c.Sealed) == 0 || c.AccountUID == before.Status.Credential.AccountUID {
			return fmt.Errorf("the report has %+v", c)
		}
		tokens, err := other.OpenTokens(credential.Renewal{AccountUID: c.AccountUID, Sequence: c.Sequence}, c.Sealed)
		if err != nil {
			return err
		}
		return x.reads(tokens.Token, x.namespaceName())
	})
}

func TestARevokedMemberHasNoExchangedCredentialAndGetsAnotherOne(t *testing.T) {
	f := newFixture(t)
	x := f.exchanging("revoked-x")
	issued, former := x.issued(), x.namespaceName()
	record := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: x.name}}
	f.check(revoke(f.Client, record, `"true"`))
	x.until("Joined", metav1.ConditionFalse, "Revoked")
	f.refused("the credential of a revoked member", x.reads(issued, former))
	f.eventually("nothing is said of a credential", func() error {
		mc := x.record()
		if c := meta.FindStatusCondition(mc.Status.Conditions, "CredentialExchanged"); c != nil || mc.Status.Credential != nil {
			return fmt.Errorf("condition %+v, status %+v", c, mc.Status.Credential)
		}
		return nil
	})
	f.eventually("the namespace is gone", func() error { return gone(f.get(&corev1.Namespace{}, "", former)) })

	f.check(revoke(f.Client, record, "null"))
	x.stop()
	x.given.Namespace = naming.MemberClusterNamespaceAt(1, x.name)
	x.start()
	x.until("CredentialExchanged", metav1.ConditionTrue, "Exchanged")
	if claims := credential.ClaimsOf(x.issued()); claims.Namespace != x.given.Namespace {
		t.Errorf("the credential is of %s", claims.Subject)
	}
	f.refused("the credential of before", x.reads(issued, x.given.Namespace))
}

// TestAnExchangedCredentialEndsWithTheIdentity plays an administrator who revokes access in the
// same way as before credentials were exchanged.
func TestAnExchangedCredentialEndsWithTheIdentity(t *testing.T) {
	f := newFixture(t)
	x := f.exchanging("identity-x")
	issued := x.issued()
	thief := f.register("thief")
	thiefs := thief.record()
	f.change(&thiefs, func() {
		thiefs.Spec.Identity.Namespace, thiefs.Spec.Identity.Name = x.namespaceName(), naming.MemberServiceAccount
	})
	if said := thief.until("ReadyToJoin", metav1.ConditionFalse, "IdentityInUse").Message; !strings.Contains(said,
		"is already the identity of MemberCluster "+x.name) {
		t.Errorf("it says %q", said)
	}
	f.refused("the account of another member", x.reads(issued, thief.namespaceName()))

	// The account is lost by mistake: the agent goes back to the static token, and gets
	// another credential.
	before := x.record().Status.Credential.AccountUID
	f.check(f.Delete(context.Background(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespaceName(), Name: naming.MemberServiceAccount},
	}))
	f.eventually("it has another credential", func() error {
		if c := x.record().Status.Credential; c == nil || c.AccountUID == before {
			return fmt.Errorf("it has %+v", c)
		}
		return nil
	})
	x.until("CredentialExchanged", metav1.ConditionTrue, "Exchanged")
	issued = x.issued()

	f.check(f.Delete(context.Background(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: naming.MemberSystemNamespace, Name: x.name},
	}))
	record := x.record()
	f.change(&record, func() { metav1.SetMetaDataLabel(&record.ObjectMeta, "looked", "at") })
	x.until("ReadyToJoin", metav1.ConditionFalse, "IdentityMissing")
	x.untilRefused("the exchanged credential", issued, x.namespaceName())
	f.eventually("its account is gone", func() error {
		return gone(f.get(kube.CoreMetadata("ServiceAccount"), x.namespaceName(), naming.MemberServiceAccount))
	})
	f.eventually("the agent says what it needs", func() error {
		if _, reason, joined := x.member.agent.Status(); joined || !strings.Contains(reason, tokenSecret) {
			return errors.New(reason)
		}
		return nil
	})
}

func TestAForcedLeaveEndsAnExchangedCredential(t *testing.T) {
	f := newAlone(t, `{"forceDeleteWaitTime":"30s"}`)
	x := f.exchanging("forced-x")
	issued := x.issued()
	x.stop()
	record := x.record()
	f.check(f.Delete(context.Background(), &record))
	f.check(x.reads(issued, x.namespaceName())) // the agent could still answer
	x.untilGone()
	f.refused("the credential of a member that never answered", x.reads(issued, x.namespaceName()))
	f.check(f.get(&corev1.ConfigMap{}, naming.SystemNamespace, "left-"+x.name))
}
