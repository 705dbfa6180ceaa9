package hub_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/naming"
)

// TestRevokingWithdrawsWhatIsInFlight revokes Clusters with unread answers, and a request that
// waits for approval. None of them counts any more when access is restored.
func TestRevokingWithdrawsWhatIsInFlight(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	_, values := f.token("new-token", "")
	sealed := f.granted(values, "native", nil)
	f.eventually("it has an answer", func() error {
		if err := f.get(&sealed, f.workspace, sealed.Name); err != nil {
			return err
		}
		if len(sealed.Status.Answer) == 0 {
			return fmt.Errorf("it has none")
		}
		return nil
	})
	waits := f.mustAsk(values, f.signed(f.keyOf("thief"), values, "native", answerKey(t)))
	f.untilState(&waits, fleet.RegistrationPending, "HolderAlive")
	legacy := f.legacyJoin(values, "legacy")
	var asked fleet.ClusterRegistrationList
	f.check(f.List(ctx, &asked, client.InNamespace(f.workspace)))
	requests := map[string]*fleet.ClusterRegistration{}
	var answer *corev1.Secret
	for i := range asked.Items {
		r := &asked.Items[i]
		if requests[r.Name] = r; r.Spec.ClientID == "legacy" {
			answer = f.legacyAnswer(r)
		}
	}
	for _, id := range []string{"native", "legacy"} {
		f.check(revoke(f.Client, f.clusterRecord(naming.Cluster(id)), `"true"`))
		f.untilRevoked(naming.Cluster(id))
	}
	for _, r := range requests {
		f.untilState(r, fleet.RegistrationDenied, "Revoked")
		if r.Status.Granted || len(r.Status.Answer) > 0 {
			t.Errorf("request %s has the status %+v", r.Name, r.Status)
		}
	}
	f.eventually("the answer is gone", func() error { return gone(f.get(answer, answer.Namespace, answer.Name)) })
	f.eventually("nothing is readable", f.namesAre())
	namespace := legacy.answer["deploymentNamespace"]
	for _, o := range []client.Object{&rbacv1.Role{}, &rbacv1.RoleBinding{}} {
		if err := f.get(o, f.workspace, namespace); !apierrors.IsNotFound(err) {
			t.Errorf("reading the right to beat: %v", err)
		}
	}
	f.refused("the legacy agent beats", legacy.beat(time.Now()))
	f.refused("it lists", legacy.Client.List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(namespace)))
	f.approve(requests[waits.Name])
	for _, id := range []string{"native", "legacy"} {
		f.check(revoke(f.Client, f.clusterRecord(naming.Cluster(id)), "null"))
		f.untilReady(naming.Cluster(id), "WaitCheckIn")
	}
	again := f.granted(values, "native", nil)
	for _, r := range requests {
		f.untilState(r, fleet.RegistrationDenied, "Revoked")
	}
	if err := f.get(&corev1.ServiceAccount{}, naming.MemberNamespaceAt(1, f.workspace, naming.Cluster("legacy")),
		naming.MemberServiceAccount); !apierrors.IsNotFound(err) {
		t.Errorf("an old request got an identity: %v", err)
	}
	f.untilState(&again, fleet.RegistrationGranted, "Granted")
}

// TestNoMemberRevokesOrTakesARevocationBack tries it with the rights of a member, of an agent of
// Rancher Fleet, which may patch the status of its Cluster, and of the holder of a token. Who may
// edit the record may revoke it, but not choose the namespace.
func TestNoMemberRevokesOrTakesARevocationBack(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	_, values := f.token("new-token", "")
	legacy := f.legacyJoin(values, "legacy")
	f.eventually("it beats", func() error { return legacy.beat(time.Now()) })
	native := f.join(values, map[string]any{"clientID": "native"})
	f.untilReady(naming.Cluster("native"), "Ready")
	bearer, _ := native.credential()
	record := f.clusterRecord(naming.Cluster("legacy"))
	for who, c := range map[string]client.Client{
		"a member": f.as(bearer), "a holder": f.as(values["token"]), "a legacy agent": legacy.Client,
	} {
		f.refused(who+" revokes", revoke(c, record.DeepCopy(), `"true"`))
		f.refused(who+" takes back", revoke(c, record.DeepCopy(), "null"))
	}
	smuggled := fmt.Sprintf(`{"metadata":{"annotations":{`+
		`%q:"true",%q:"7"}},"status":{"agent":{"lastSeen":%q,"namespace":"cattle-fleet-system"}}}`,
		clusterv1beta1.AnnotationRevoked, clusterv1beta1.AnnotationMemberEpoch, time.Now().UTC().Format(time.RFC3339))
	f.check(legacy.Client.Status().Patch(ctx, record.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(smuggled))))
	var is fleet.Cluster
	f.check(f.get(&is, f.workspace, record.Name))
	if is.Annotations[clusterv1beta1.AnnotationRevoked] != "" || is.Annotations[clusterv1beta1.AnnotationMemberEpoch] != "" {
		t.Errorf("an agent has annotated its Cluster: %v", is.Annotations)
	}

	tenant, _ := f.userWith(f.workspace, "tenant", rbacv1.PolicyRule{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusters"}, Verbs: []string{"get", "patch"},
	})
	f.check(revoke(tenant, record.DeepCopy(), `"true"`))
	f.untilRevoked(record.Name)
	f.eventually("a tenant cannot choose the namespace", func() error {
		for _, epoch := range []string{"null", `"0"`, `"2"`} {
			err := tenant.Patch(ctx, record.DeepCopy(), client.RawPatch(types.MergePatchType,
				fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, clusterv1beta1.AnnotationMemberEpoch, epoch)))
			if !apierrors.IsForbidden(err) {
				return fmt.Errorf("%s: %w", epoch, err)
			}
		}
		return nil
	})
	f.check(revoke(tenant, record.DeepCopy(), "null"))
	f.untilReady(record.Name, "IdentityMissing")
}

// TestARevokedClusterKeepsWhatWasDeliveredAndTakesItUpAgain has a real agent, which must take
// neither the refusal nor what it sees go for a reason to remove anything. It takes minutes beside
// other tests: real agents begin, lose and begin again what they deliver.
func TestARevokedClusterKeepsWhatWasDeliveredAndTakesItUpAgain(t *testing.T) {
	f := newFixture(t)
	e := f.elsewhere("kept")
	target, shop := e.release(), e.placed()
	e.annotate("Delete") // is for leaving, which this is not
	objects := map[string]*corev1.ConfigMap{target + "/" + e.workspace: {}, shop + "/settings": {}}
	for key, object := range objects {
		f.check(e.on.get(object, target, e.workspace))
		if key == shop+"/settings" {
			f.check(e.on.get(object, shop, "settings"))
		}
	}
	unharmed := func(when string) {
		t.Helper()
		for key, was := range objects {
			is := &corev1.ConfigMap{}
			f.check(e.on.get(is, was.Namespace, was.Name))
			if is.UID != was.UID || is.DeletionTimestamp != nil {
				t.Errorf("%s %s is %+v", when, key, is.ObjectMeta)
			}
		}
		if len(e.releases()) == 0 {
			t.Errorf("%s the release is gone", when)
		}
	}
	f.check(revoke(f.Client, e.record(), `"true"`))
	f.untilRevoked(e.name)
	e.agent.untilState(agent.Waiting, "refuse")
	f.eventually("the namespace is gone", func() error {
		return gone(f.get(&corev1.Namespace{}, "", naming.MemberNamespace(f.workspace, e.name)))
	})
	unharmed("after the revocation")

	f.check(revoke(f.Client, e.record(), "null"))
	f.untilReady(e.name, "IdentityMissing")
	f.give(e.on, e.agent.agentNamespace, f.values("new-token"))
	after := naming.LongMemberNamespaceAt(1, f.workspace, e.name)
	f.eventually("the Work is applied again", func() error {
		var works placement.WorkList
		if err := f.List(context.Background(), &works, client.InNamespace(after)); err != nil {
			return err
		}
		if len(works.Items) != 1 || !meta.IsStatusConditionTrue(works.Items[0].Status.Conditions, placement.ConditionApplied) {
			return fmt.Errorf("there are %+v", works.Items)
		}
		return nil
	})
	f.untilReady(e.name, "Ready")
	e.untilBundle("app", fleet.ConditionReady, corev1.ConditionTrue)
	unharmed("after it was taken back")
}

// TestATokenThatIsDeletedRefusesJoinsInFlight deletes a token while requests with it wait. Some
// come from agents that do not name their token. A new token of the same name does not revive them.
func TestATokenThatIsDeletedRefusesJoinsInFlight(t *testing.T) {
	f := newFixture(t)
	manual := fleet.ClusterRegistrationTokenSpec{Approval: fleet.ApprovalManual}
	values := f.stampingToken("manual", manual)
	before016 := map[string]string{"token": values["token"]}
	waiting := []fleet.ClusterRegistration{
		f.mustAsk(values, f.signed(f.keyOf("native"), values, "native", answerKey(t))),
		f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: "legacy", ClientRandom: "a"}),
		f.mustAsk(before016, fleet.ClusterRegistrationSpec{ClientID: "older", ClientRandom: "b"}),
	}
	for i := range waiting {
		f.untilState(&waiting[i], fleet.RegistrationPending, "ApprovalRequired")
	}
	time.Sleep(time.Second) // the API server writes down times to the second
	f.check(f.Delete(context.Background(), &fleet.ClusterRegistrationToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "manual"},
	}))
	for i := range waiting {
		f.untilState(&waiting[i], fleet.RegistrationDenied, "TokenNotFound")
	}
	f.eventually("its Secret is gone", func() error { return gone(f.get(&corev1.Secret{}, f.workspace, "manual")) })
	f.stampingToken("manual", manual)
	for i := range waiting {
		f.approve(&waiting[i])
		f.untilState(&waiting[i], fleet.RegistrationDenied, "TokenNotFound")
	}
	if made := f.clusters(); len(made) > 0 {
		t.Errorf("%d Clusters were made", len(made))
	}
}
