package hub_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	muster "github.com/muster-fleet/muster/api/muster/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// tenantWithoutApprove has all rights in a workspace but to approve.
func (f fixture) tenantWithoutApprove() client.Client {
	f.t.Helper()
	tenant, _ := f.userWith(f.workspace, "tenant", rbacv1.PolicyRule{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"*"},
		Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"},
	})
	return tenant
}

func writeStatus(by client.Client, o client.Object, status string) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`))
	return by.Status().Patch(context.Background(), o.DeepCopyObject().(client.Object), patch)
}

// TestATenantWritesNoStatusByWhichTheHubDecides forges with the rights of a tenant, and of an
// agent, what the hub remembers in the statuses of requests, Clusters and tokens.
func TestATenantWritesNoStatusByWhichTheHubDecides(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	f.granted(values, "web", nil)
	counted := f.stampingToken("counted", fleet.ClusterRegistrationTokenSpec{MaxRegistrations: new(int32(5))})
	f.granted(counted, "counted", nil)
	legacy := f.legacyJoin(values, "legacy")
	f.eventually("the legacy agent beats", func() error { return legacy.beat(time.Now()) })
	waits := f.mustAsk(values, f.signed(f.keyOf("thief"), values, "web", answerKey(t)))
	f.untilState(&waits, fleet.RegistrationPending, "HolderAlive")
	revoked := f.mustAsk(values, f.signed(f.keyOf("thief"), values, "web", answerKey(t)))
	cluster := f.clusterRecord(naming.Cluster("web"))
	var token fleet.ClusterRegistrationToken
	f.eventually("the token says who has used it", func() error {
		if err := f.get(&token, f.workspace, "counted"); err != nil {
			return err
		}
		if len(token.Status.Clusters) != 1 {
			return fmt.Errorf("it says %v", token.Status.Clusters)
		}
		return nil
	})
	tenant := f.tenantWithoutApprove()
	f.eventually("the tenant has the rights of one", func() error {
		return tenant.Get(context.Background(), client.ObjectKeyFromObject(&waits), &waits)
	})
	agent := f.as(legacy.answer["token"])
	for _, c := range []struct {
		what   string
		by     client.Client
		of     client.Object
		status string
	}{
		{"an approval", tenant, &waits, `{"approvedReason":"HolderAlive","approvedGeneration":1}`},
		{"a proof of the key", tenant, &waits, `{"approvedReason":"KeyProved","approvedGeneration":1}`},
		{"that the hub has asked for an approval", tenant, &waits, `{"reason":"HolderLost"}`},
		{"a grant", tenant, &waits, `{"granted":true,"state":"Granted"}`},
		{"another age", tenant, &waits, `{"firstSeenVersion":"999999999"}`},
		{"that nobody revoked it", tenant, &revoked, `{"reason":"","state":"Waiting"}`},
		{"the approval of a Cluster", tenant, cluster, `{"conditions":[{"type":"DeliveryApproved","status":"True"}]}`},
		{"where a Cluster is", tenant, cluster, `{"namespace":"default"}`},
		{
			"the approval of its Cluster", agent, f.clusterRecord(naming.Cluster("legacy")),
			`{"conditions":[{"type":"DeliveryApproved","status":"True"}]}`,
		},
		{"the window of its Cluster", agent, f.clusterRecord(naming.Cluster("legacy")), `{"window":{"since":"2026-01-01T00:00:00Z"}}`},
		{"the history of a Cluster", tenant, cluster, `{"history":[{"time":"2026-01-01T00:00:00Z","reason":"Approved"}]}`},
		{
			"the history of its Cluster", agent, f.clusterRecord(naming.Cluster("legacy")),
			`{"history":[{"time":"2026-01-01T00:00:00Z","reason":"Left"}]}`,
		},
		{"the delays of a Cluster", tenant, cluster, `{"heartbeatDelay":{"hour":"2026-01-01T00:00:00Z","seconds":[60]}}`},
		{
			"the delays of its Cluster", agent, f.clusterRecord(naming.Cluster("legacy")),
			`{"heartbeatDelay":{"hour":"2026-01-01T00:00:00Z","seconds":[60]}}`,
		},
		{"how often a token was used", tenant, &token, `{"clusters":[]}`},
		{"that a token was used", tenant, &token, `{"clusters":["another"]}`},
	} {
		if err := writeStatus(c.by, c.of, c.status); !apierrors.IsForbidden(err) {
			t.Errorf("%s is forged: %v", c.what, err)
		}
	}
	f.check(legacy.beat(time.Now()))
	f.check(writeStatus(tenant, cluster, `{"agent":{"lastSeen":"2026-01-01T00:00:00Z"}}`))
	foreign := &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{
		Namespace: f.workspace, Name: "foreign", Labels: map[string]string{fleet.LabelClusterManagement: "another"},
	}}
	f.check(tenant.Create(context.Background(), foreign))
	f.check(writeStatus(tenant, foreign, `{"granted":true,"clusterName":"theirs"}`)) // another manager answers it
	if err := writeStatus(tenant, foreign, `{"approvedReason":"KeyProved","approvedGeneration":1}`); !apierrors.IsForbidden(err) {
		t.Errorf("an approval is forged where another manager answers: %v", err)
	}
}

// TestAStatusAloneApprovesNothing has an administrator forge, whom no policy stops.
func TestAStatusAloneApprovesNothing(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	f.attributed(values)
	f.granted(values, "web", nil)
	waits := f.mustAsk(values, f.signed(f.keyOf("thief"), values, "web", answerKey(t)))
	f.untilState(&waits, fleet.RegistrationPending, "HolderAlive")
	for _, reason := range []string{"KeyProved", "HolderAlive"} {
		f.check(writeStatus(f, &waits, fmt.Sprintf(`{"approvedReason":%q,"approvedGeneration":%d}`, reason, waits.Generation)))
		marker := f.mustAsk(values, f.signed(f.keyOf("marker-"+reason), values, "marker-"+reason, answerKey(t)))
		f.untilState(&marker, fleet.RegistrationGranted, "Granted")
		f.check(f.Get(context.Background(), client.ObjectKeyFromObject(&waits), &waits))
		if waits.Status.Granted {
			t.Fatalf("the status approves it for %s", reason)
		}
	}
	f.approve(&waits)
	f.untilState(&waits, fleet.RegistrationGranted, "Granted")
	if reasons := f.auditedFor(&waits); !slices.Contains(reasons, string(muster.AuditApproved)) {
		t.Errorf("the audit has %v", reasons)
	} else if who := f.auditedAs(&waits, muster.AuditApproved).Who; who == "" {
		t.Error("nobody stands in the audit")
	}
}

// TestASignedRequestCountsOnce plays an attacker who may read requests and has a token of the same
// name.
func TestASignedRequestCountsOnce(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	_, values := f.token("new-token", "")
	f.join(values, map[string]any{"clientID": "web"})
	cluster := f.untilReady(naming.Cluster("web"), "Ready")
	account := func() types.UID {
		var account corev1.ServiceAccount
		f.check(f.get(&account, cluster.Status.Namespace, naming.MemberServiceAccount))
		return account.UID
	}
	was := account()
	var list fleet.ClusterRegistrationList
	f.check(f.List(ctx, &list, client.InNamespace(f.workspace)))
	if len(list.Items) != 1 {
		t.Fatalf("there are %d requests", len(list.Items))
	}
	original := list.Items[0]
	copied := f.mustAsk(values, original.Spec)
	f.untilState(&copied, fleet.RegistrationDenied, "Replayed")
	backdated := *original.Spec.DeepCopy()
	backdated.RequestedAt = new(metav1.NewMicroTime(time.Now().Add(time.Hour)))
	again := f.mustAsk(values, backdated)
	f.untilState(&again, fleet.RegistrationDenied, "Replayed")
	if account() != was {
		t.Error("the identity of the agent was replaced")
	}
}
