package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// approveCluster annotates a Cluster.
func approveCluster(by client.Client, cluster *fleet.Cluster, says string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, fleet.AnnotationApproved, says)
	return by.Patch(context.Background(), cluster.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
}

// nothingDelivered fails if a member has anything but the Bundle of its own agent.
func (f fixture) nothingDelivered(namespace string) {
	f.t.Helper()
	var deployments fleet.BundleDeploymentList
	f.check(f.List(context.Background(), &deployments, client.InNamespace(namespace)))
	for _, d := range deployments.Items {
		if d.Labels[fleet.LabelAgent] == "" {
			f.t.Errorf("BundleDeployment %s was delivered", d.Name)
		}
	}
	var works placement.WorkList
	f.check(f.List(context.Background(), &works, client.InNamespace(namespace)))
	var secrets corev1.SecretList
	f.check(f.List(context.Background(), &secrets, client.InNamespace(namespace)))
	for _, s := range secrets.Items {
		if s.Type == fleet.SecretTypeDeployment && s.Name != "fleet-agent-"+naming.Cluster("late") {
			f.t.Errorf("Secret %s was delivered", s.Name)
		}
	}
	if len(works.Items) > 0 {
		f.t.Errorf("%d Works were delivered", len(works.Items))
	}
}

// TestNothingIsDeliveredToAMemberBeforeSomebodyApprovesIt has a workspace ask for approval after
// one Cluster has got something and before another comes. Everybody who must not approve the
// second one tries to.
func TestNothingIsDeliveredToAMemberBeforeSomebodyApprovesIt(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.label(f.workspace, "muster/placement", "true")
	first := f.place("first", nil)
	f.bundle("app", "defaultNamespace: default\nhelm: {values: {password: s3cret}}"+configMap+everywhere)
	was := first.deployment("app", func(fleet.BundleDeployment) error { return nil })
	f.label(f.workspace, fleet.LabelApproveMembers, "true")
	f.eventually("what has something already is taken for approved", func() error {
		var cluster fleet.Cluster
		if err := f.get(&cluster, f.workspace, "first"); err != nil {
			return err
		}
		if cluster.Annotations[fleet.AnnotationApproved] != "true" {
			return fmt.Errorf("its annotations are %v", cluster.Annotations)
		}
		return nil
	})

	_, values := f.token("new-token", "")
	late := f.join(values, map[string]any{"clientID": "late", "labels": map[string]string{fleet.AnnotationApproved: "true"}})
	name := naming.Cluster("late")
	command := fmt.Sprintf("kubectl -n %s annotate --overwrite cluster.fleet.cattle.io %s muster/approved=true", f.workspace, name)
	f.saysReady(name, "Ready", "the agent is healthy", command)
	f.eventually("an event says so", func() error { return f.event("ApprovalRequired", name, command) })
	bearer, namespace := late.credential()
	crp := f.crp("resourceSelectors: [{group: '', version: v1, kind: Namespace, name: " + f.shop() +
		"}]\npolicy: {placementType: PickFixed, clusterNames: [$TEST/" + name + "]}")
	f.bundle("later", "defaultNamespace: default"+configMap+everywhere)
	first.deployment("later", func(fleet.BundleDeployment) error { return nil })
	f.untilSays(crp, "Scheduled", metav1.ConditionFalse, "waits for an approval of deliveries")
	f.nothingDelivered(namespace)

	record := f.clusterRecord(name)
	rules := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusters"}, Verbs: verbs}
	}
	tenant, _ := f.userWith(f.workspace, "tenant", rules("get", "create", "update", "patch"))
	for who, by := range map[string]client.Client{"a holder": f.as(values["token"]), "the member": f.as(bearer), "a tenant": tenant} {
		f.eventually(who+" may not approve", func() error {
			if err := approveCluster(by, record, "true"); !apierrors.IsForbidden(err) {
				return fmt.Errorf("approving: %w", err)
			}
			return nil
		})
	}
	made := f.clusterRecord("made")
	made.Annotations = map[string]string{fleet.AnnotationApproved: "true"}
	if err := tenant.Create(ctx, made); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "verb approve on clusters") {
		t.Errorf("a tenant creates a Cluster that is approved: %v", err)
	}
	legacy := f.legacyJoin(values, "legacy")
	f.eventually("the legacy agent beats", func() error { return legacy.beat(time.Now()) })
	forged := []byte(
		`{"metadata":{"annotations":{"muster/approved":"true"}},"status":{"conditions":[{"type":"DeliveryApproved","status":"True"}]}}`,
	)
	f.refused("an agent of Rancher Fleet approves itself",
		legacy.Client.Status().Patch(ctx, f.clusterRecord(naming.Cluster("legacy")), client.RawPatch(types.MergePatchType, forged)))
	f.nothingDelivered(legacy.answer["deploymentNamespace"])
	f.nothingDelivered(namespace)

	approver, _ := f.userWith(f.workspace, "approver", rules("get", "patch", "approve"))
	f.eventually("an approver approves", func() error { return approveCluster(approver, record, "true") })
	f.eventually("all is delivered", func() error {
		for _, bundle := range []string{"app", "later"} {
			if err := f.get(&fleet.BundleDeployment{}, namespace, bundle); err != nil {
				return err
			}
		}
		return f.get(&placement.Work{}, namespace, crp.Name+"-work")
	})
	says := func(want corev1.ConditionStatus) {
		t.Helper()
		f.eventually("the record says so", func() error {
			var cluster fleet.Cluster
			if err := f.get(&cluster, f.workspace, name); err != nil {
				return err
			}
			if said := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionDeliveryApproved); said == nil || said.Status != want {
				return fmt.Errorf("it says %+v", said)
			}
			return nil
		})
	}
	says(corev1.ConditionTrue)
	f.check(approveCluster(approver, record, "false"))
	says(corev1.ConditionFalse)
	f.bundle("last", "defaultNamespace: default"+configMap+everywhere)
	first.deployment("last", func(fleet.BundleDeployment) error { return nil })
	if err := f.get(&fleet.BundleDeployment{}, namespace, "last"); !apierrors.IsNotFound(err) {
		t.Errorf("a Cluster that gets nothing new got it: %v", err)
	}
	f.check(f.get(&fleet.BundleDeployment{}, namespace, "app"))
	is := first.deployment("app", func(fleet.BundleDeployment) error { return nil })
	if is.UID != was.UID {
		t.Error("what was there before was made anew")
	}
}
