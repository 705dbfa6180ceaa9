package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

func TestAMemberClusterThatWasAwayComesBackByItsKey(t *testing.T) {
	f := newFixture(t)
	x := f.exchanging("away-x")
	if said := x.until("CredentialExchanged", metav1.ConditionTrue, "Exchanged").Message; !strings.Contains(said, "comes back by that key") {
		t.Errorf("the condition says %q", said)
	}
	before, namespace, report := x.record(), &corev1.Namespace{}, x.report()
	f.check(f.get(namespace, "", x.namespaceName()))
	work := &placement.Work{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespaceName(), Name: "crp-work"}}
	f.check(f.Create(context.Background(), work))
	token := x.backToken()
	x.withoutStatic()
	x.goAway()
	if sealed := x.report().Spec.Credential.Sealed; len(sealed) > 0 {
		t.Error("the hub has issued a credential before the half of the life of the last one was over")
	}
	x.issuedBefore(5 * time.Minute)
	awaited := x.untilAwaited(1)
	if life := time.Until(awaited.Expires.Time); life < 6*24*time.Hour || awaited.After != 1 {
		t.Errorf("what the hub has issued lives for %s, after credential %d", life, awaited.After)
	}

	// The token alone cannot open the sealed credential.
	var read clusterv1beta1.InternalMemberCluster
	f.check(f.as(token).Get(context.Background(), client.ObjectKeyFromObject(report), &read))
	other := f.keyOf("other")
	if _, err := other.OpenTokens(credential.Renewal{AccountUID: awaited.AccountUID, Sequence: awaited.Sequence},
		read.Spec.Credential.Sealed); err == nil {
		t.Error("another key opens the credential")
	}

	x.start()
	x.untilJoined()
	x.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	f.eventually("the credential is in use, and withdrawn", func() error {
		mc, c := x.record(), x.report().Spec.Credential
		if mc.Status.Credential == nil || mc.Status.Credential.Sequence != awaited.Sequence ||
			mc.Status.Credential.Superseded != nil || len(c.Sealed) > 0 {
			return fmt.Errorf("the record says %+v, the report %+v", mc.Status.Credential, c)
		}
		return nil
	})
	again := &corev1.Namespace{}
	f.check(f.get(again, "", x.namespaceName()))
	if after := x.record(); after.UID != before.UID || again.UID != namespace.UID || x.report().UID != report.UID ||
		after.Status.Credential.AccountUID != before.Status.Credential.AccountUID {
		t.Error("it is another member")
	}
	uid := work.UID
	f.check(f.get(work, work.Namespace, work.Name))
	if work.UID != uid || work.DeletionTimestamp != nil {
		t.Error("what was placed is gone")
	}
	if x.backToken() != token {
		t.Error("the agent has another token to come back with, which nobody has issued")
	}
	for _, line := range strings.Split(x.member.logged.String(), "\n") {
		if strings.Contains(line, token) || strings.Contains(line, "eyJ") {
			t.Errorf("the log holds a token: %s", line)
		}
	}
}

// TestATokenToComeBackWithReadsOneReport plays a thief who has stolen such a token.
func TestATokenToComeBackWithReadsOneReport(t *testing.T) {
	f := newFixture(t)
	x, other := f.exchanging("reads-one"), f.register("reads-none")
	other.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	thief, ctx := f.as(x.backToken()), context.Background()
	f.check(x.reads(x.backToken(), x.namespaceName()))
	report := x.report()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	in := client.InNamespace(x.namespaceName())
	for what, err := range map[string]error{
		"the report of another member": thief.Get(ctx, client.ObjectKey{Namespace: other.namespaceName(), Name: other.name},
			&clusterv1beta1.InternalMemberCluster{}),
		"a list of reports": thief.List(ctx, &clusterv1beta1.InternalMemberClusterList{}, in),
		"a list of its own report": thief.List(ctx, &clusterv1beta1.InternalMemberClusterList{}, in,
			client.MatchingFields{"metadata.name": x.name}),
		"a patch of the report":       thief.Patch(ctx, report.DeepCopy(), patch),
		"a patch of its status":       thief.Status().Patch(ctx, report.DeepCopy(), patch),
		"a heartbeat":                 thief.Patch(ctx, leaseOf(x.namespaceName()), patch),
		"a Secret":                    thief.Get(ctx, client.ObjectKey{Namespace: x.namespaceName(), Name: "any"}, &corev1.Secret{}),
		"a list of Secrets":           thief.List(ctx, &corev1.SecretList{}, in),
		"a list of Works":             thief.List(ctx, &placement.WorkList{}, in),
		"a list of BundleDeployments": thief.List(ctx, &fleet.BundleDeploymentList{}, in),
		"the record":                  thief.Get(ctx, client.ObjectKey{Name: x.name}, &clusterv1beta1.MemberCluster{}),
		"a token of the member":       issue(thief, x.namespaceName(), naming.MemberServiceAccount),
		"another token of its own":    issue(thief, x.namespaceName(), naming.MemberReconnectAccount),
	} {
		f.refused(what, err)
	}
	claims := credential.ClaimsOf(x.backToken())
	if claims.Namespace != x.namespaceName() || claims.Account != naming.MemberReconnectAccount || claims.Life() < 300*24*time.Hour {
		t.Errorf("it is %+v", claims)
	}
	// No other member can be it by naming it.
	f.eventually("the other one names it", func() error {
		mc := other.record()
		f.change(&mc, func() {
			mc.Spec.Identity.Namespace, mc.Spec.Identity.Name = x.namespaceName(), naming.MemberReconnectAccount
		})
		return nil
	})
	other.until("ReadyToJoin", metav1.ConditionFalse, "IdentityInUse")
}

// TestTheRightToComeBackIsSetBack gives the right of the account to another one, and then deletes
// the right.
func TestTheRightToComeBackIsSetBack(t *testing.T) {
	f := newFixture(t)
	x := f.exchanging("set-back")
	token := x.backToken()
	record := x.record()
	f.change(&record, func() { metav1.SetMetaDataLabel(&record.ObjectMeta, "looked", "at") })
	binding, _ := membernamespace.OfMemberCluster(&record).Reconnect(membernamespace.Exchange{})
	subjects := binding.Subjects
	f.check(merge(f, binding.DeepCopy(), `{"subjects":[{"kind":"ServiceAccount","namespace":"default","name":"default"}]}`))
	f.eventually("the RoleBinding is as it was", func() error {
		if err := f.get(binding, binding.Namespace, binding.Name); err != nil || !slices.Equal(binding.Subjects, subjects) {
			return fmt.Errorf("%v, or it names %v", err, binding.Subjects)
		}
		return x.reads(token, x.namespaceName())
	})
	f.check(f.Delete(context.Background(), binding))
	f.eventually("the RoleBinding is back", func() error { return x.reads(token, x.namespaceName()) })
}

// TestTheRightToComeBackOfAnEarlierHubIsReplaced adds the Role and the RoleBinding that a hub of an
// earlier version created for each member. They go with the next credential, and with the loss of
// the RoleBinding of this version.
func TestTheRightToComeBackOfAnEarlierHubIsReplaced(t *testing.T) {
	f := newFixture(t)
	x := f.exchanging("earlier")
	record, ctx := x.record(), context.Background()
	member := membernamespace.OfMemberCluster(&record)
	own, _ := member.Reconnect(membernamespace.Exchange{})
	for what, change := range map[string]func(){
		"the next credential": func() { x.issuedBefore(5 * time.Minute) },
		"the loss":            func() { f.check(f.Delete(ctx, own.DeepCopy())) },
	} {
		earlier := member.EarlierReconnect()
		binding, role := earlier[0].(*rbacv1.RoleBinding), earlier[1].(*rbacv1.Role)
		role.Rules = []rbacv1.PolicyRule{{
			APIGroups: []string{clusterv1beta1.GroupVersion.Group}, Resources: []string{"internalmemberclusters"},
			ResourceNames: []string{x.name}, Verbs: []string{"get"},
		}}
		binding.RoleRef, binding.Subjects = to("Role", role.Name), own.Subjects
		f.check(f.Create(ctx, role))
		f.check(f.Create(ctx, binding))
		change()
		f.eventually("after "+what+" the right is that of this version", func() error {
			if err := f.get(&rbacv1.RoleBinding{}, own.Namespace, own.Name); err != nil {
				return err
			}
			for _, object := range earlier {
				if err := gone(f.get(object, object.GetNamespace(), object.GetName())); err != nil {
					return err
				}
			}
			return x.reads(x.backToken(), x.namespaceName())
		})
	}
}

func TestWhatEndsAMembershipEndsThatItComesBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, end := range map[string]func(f fixture, x *exchanging){
		"the identity is made anew": func(f fixture, x *exchanging) {
			f.check(f.Delete(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: naming.MemberSystemNamespace, Name: x.name}}))
			x.account(x.name)
		},
		"the identity is another one": func(f fixture, x *exchanging) {
			x.account(x.name + "-b")
			record := x.record()
			f.change(&record, func() { record.Spec.Identity.Name += "-b" })
		},
		"the key is another one": func(f fixture, x *exchanging) {
			record, other := x.record(), f.keyOf("other")
			f.change(&record, func() { record.Annotations[fleet.AnnotationAgentKey] = credential.Fingerprint(other.Public()) })
		},
		"nothing is to be exchanged": func(f fixture, x *exchanging) {
			record := x.record()
			f.change(&record, func() { record.Annotations[fleet.AnnotationAgentKey] = "" })
		},
		"the account is deleted": func(f fixture, x *exchanging) {
			f.check(f.Delete(ctx, &corev1.ServiceAccount{
				ObjectMeta: metav1.ObjectMeta{Namespace: x.namespaceName(), Name: naming.MemberServiceAccount},
			}))
		},
		"it is revoked": func(f fixture, x *exchanging) {
			f.check(revoke(f.Client, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: x.name}}, `"true"`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			x := f.exchanging("ends")
			token, namespace := x.backToken(), x.namespaceName()
			x.withoutStatic()
			x.goAway()
			x.issuedBefore(5 * time.Minute)
			x.untilAwaited(1)
			end(f, x)
			x.untilEnded(token, namespace)
			x.start()
			x.untilAsks("this cluster cannot rejoin with its key: the hub refuses")
		})
	}
}

// TestAnAgentThatIsAliveIsCutOffWhenItsIdentityIsMadeAnew: the key that it has is trusted again
// when an agent with a token of the new identity shows it.
func TestAnAgentThatIsAliveIsCutOffWhenItsIdentityIsMadeAnew(t *testing.T) {
	f := newFixture(t)
	x := f.exchanging("anew")
	token, issued, before := x.backToken(), x.issued(), x.record().Status.Credential.AccountUID
	f.check(f.Delete(context.Background(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: naming.MemberSystemNamespace, Name: x.name},
	}))
	x.account(x.name)
	x.untilEnded(token, x.namespaceName())
	x.untilRefused("the credential", issued, x.namespaceName())
	f.eventually("the agent has not joined", func() error {
		if state, reason, joined := x.member.agent.Status(); joined {
			return fmt.Errorf("it is %s: %s", state, reason)
		}
		return nil
	})
	if err := f.get(kube.CoreMetadata("ServiceAccount"), x.namespaceName(), naming.MemberServiceAccount); !apierrors.IsNotFound(err) {
		t.Errorf("reading the account of the agent: %v", err)
	}
	var given corev1.Secret
	f.check(f.get(&given, x.agentNamespace, tokenSecret))
	given.Data["token"] = []byte(x.bearer(x.name))
	f.check(f.Update(context.Background(), &given))
	x.untilJoined()
	f.eventually("it has another credential", func() error {
		if c := x.record().Status.Credential; c == nil || c.AccountUID == before {
			return fmt.Errorf("it has %+v", c)
		}
		return nil
	})
	x.until("CredentialExchanged", metav1.ConditionTrue, "Exchanged")
}

// TestAKeyThatAnAgentShowedBeforeIsForgottenWithTheIdentity plays an agent that does not say with
// which credential it reports, and watches the report when its identity is made anew.
func TestAKeyThatAnAgentShowedBeforeIsForgottenWithTheIdentity(t *testing.T) {
	f := newFixture(t)
	x := f.exchanging("forgotten")
	issued := x.issued()
	x.stop()
	f.check(f.as(issued).Status().Patch(context.Background(), x.report(),
		client.RawPatch(types.MergePatchType, []byte(`{"status":{"credential":null}}`))))
	f.check(f.Delete(context.Background(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: naming.MemberSystemNamespace, Name: x.name},
	}))
	x.account(x.name)
	x.untilRefused("the credential", issued, x.namespaceName())
	x.until("CredentialExchanged", metav1.ConditionFalse, "AgentHasNoKey")
	if account := x.report().Spec.Credential; account != nil {
		t.Errorf("the report has credential %+v", account)
	}
	if err := f.get(kube.CoreMetadata("ServiceAccount"), x.namespaceName(), naming.MemberServiceAccount); !apierrors.IsNotFound(err) {
		t.Errorf("reading the account of the agent: %v", err)
	}
}

// TestACopyOfAMemberClusterDoesNotComeBackByItsKey has a cluster restored from a backup that is
// older than the credential which was in use last.
func TestACopyOfAMemberClusterDoesNotComeBackByItsKey(t *testing.T) {
	f := newFixture(t)
	x := f.exchanging("copy")
	copied := x.kept()
	x.issuedBefore(90 * time.Second)
	f.eventually("a second credential is in use", func() error {
		if c := x.record().Status.Credential; c == nil || c.Sequence != 2 {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	})
	x.withoutStatic()
	x.goAway()
	restored := x.kept()
	restored.Data["sequence"] = copied.Data["sequence"]
	f.check(f.Update(context.Background(), restored))
	x.issuedBefore(5 * time.Minute)
	x.untilAwaited(2)
	x.start()
	x.untilAsks("it has credential 1, and credential 2 was in use after that: the cluster was copied, or restored from a backup")
	if c := x.record().Status.Credential; c.Sequence != 2 {
		t.Errorf("the record says %+v", c)
	}
}
