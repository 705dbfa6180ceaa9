package hub_test

import (
	"context"
	"fmt"
	"reflect"
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
	"github.com/muster-fleet/muster/charts"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// userWith returns a client of a new ServiceAccount, and its Role. The ServiceAccount has only the
// given rules, in its own namespace.
func (f fixture) userWith(namespace, name string, rules ...rbacv1.PolicyRule) (client.Client, *rbacv1.Role) {
	f.t.Helper()
	ctx, meta := context.Background(), metav1.ObjectMeta{Namespace: namespace, Name: name}
	account, role := &corev1.ServiceAccount{ObjectMeta: meta}, &rbacv1.Role{ObjectMeta: meta, Rules: rules}
	f.check(f.Create(ctx, account))
	f.check(f.Create(ctx, role))
	f.check(f.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}))
	bearer, err := kube.RequestToken(ctx, f.SubResource("token"), account, time.Hour)
	f.check(err)
	return f.as(bearer), role
}

// team makes a Role and a RoleBinding as a team has them in its workspace.
func (f fixture) team(name string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	f.t.Helper()
	meta := metav1.ObjectMeta{Namespace: f.workspace, Name: name}
	role := &rbacv1.Role{
		ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "team"}},
	}
	f.check(f.Create(context.Background(), role))
	f.check(f.Create(context.Background(), binding))
	return role, binding
}

// untouched fails if an object is another than it was.
func (f fixture) untouched(was client.Object) {
	f.t.Helper()
	is := was.DeepCopyObject().(client.Object)
	if err := f.get(is, was.GetNamespace(), was.GetName()); err != nil || is.GetResourceVersion() != was.GetResourceVersion() {
		f.t.Errorf("%T %s was changed: %v, %+v", was, was.GetName(), err, is)
	}
}

func TestARequestNamedLikeATeamsRoleChangesNothing(t *testing.T) {
	f := newFixture(t)
	role, binding := f.team("team")
	_, values := f.token("new-token", "")
	key := answerKey(t)
	asking := f.as(values["token"])
	r := fleet.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{Name: "team", Namespace: f.workspace, Labels: map[string]string{fleet.LabelRegistrationToken: "new-token"}},
		Spec:       fleet.ClusterRegistrationSpec{ClientID: "a", AnswerKey: key.Public(), RequestedAt: new(metav1.NowMicro())},
	}
	f.check(asking.Create(context.Background(), &r))
	f.eventually("the request is readable", func() error { return asking.Get(context.Background(), client.ObjectKeyFromObject(&r), &r) })
	f.untilState(&r, fleet.RegistrationGranted, "Granted")
	f.untouched(role)
	f.untouched(binding)
	answer, err := key.Open(string(r.UID), r.Status.Answer)
	f.check(err)
	f.eventually("the agent beats", func() error { return beat(f.as(answer.Token), answer) })
	f.eventually("the right to read the answer is gone", func() error {
		if err := asking.Get(context.Background(), client.ObjectKeyFromObject(&r), &r); !apierrors.IsForbidden(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
	f.check(f.Delete(context.Background(), &r))
	f.eventually("the request is gone", func() error {
		if err := f.get(&r, r.Namespace, r.Name); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
	f.untouched(role)
	f.untouched(binding)
}

func TestATemplateThatWouldEatTheHubIsNamedAndHurtsNobodyElse(t *testing.T) {
	f := newFixture(t)
	p := f.place("a", nil)
	for name, template := range map[string]string{
		"repeat": `${ repeat 2000000000 \"xx\" }`,
		"range":  "${ range until 60000 }${ range until 60000 }${ range until 60000 }${ end }${ end }${ end }",
	} {
		b := f.bundle(name, configMap+`targets: [{clusterName: a}]
helm: {values: {x: "`+template+`"}}
`)
		f.untilBundle(name, "Processed", corev1.ConditionFalse, "Cluster a: helm.values.x: ")
		f.check(f.Delete(context.Background(), b))
		f.eventually("Bundle "+name+" is gone", func() error { return gone(f.get(b, f.workspace, name)) })
	}
	f.bundle("good", configMap+"targets: [{clusterName: a}]")
	p.deployment("good", there)
}

// TestNothingIsDeliveredWhereAnAgentSaysItsClusterIs plays an agent of Rancher Fleet that points
// its Cluster's status to another member's namespace. The agent tries once against the chart's
// admission policy, and once on a hub cluster without one.
func TestNothingIsDeliveredWhereAnAgentSaysItsClusterIs(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	legacy := f.legacyJoin(values, "legacy")
	f.eventually("the agent beats", func() error { return legacy.beat(time.Now()) })
	cluster := f.untilReady(naming.Cluster("legacy"), "Ready")
	victim := f.place("victim", nil)
	forged := func(as client.Client) error {
		patch := fmt.Sprintf(`[{"op":"add","path":"/status/namespace","value":%q}]`, victim.namespace)
		return as.Status().Patch(context.Background(), &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: cluster.Name}},
			client.RawPatch(types.JSONPatchType, []byte(patch)))
	}
	f.eventually("the agent may not write where its Cluster is", func() error {
		if err := forged(f.as(legacy.answer["token"])); !apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), "nothing but status.agent") {
			return fmt.Errorf("it says %v", err)
		}
		return nil
	})
	f.check(legacy.beat(time.Now()))

	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			if err := forged(f); err != nil {
				stopped <- err
				return
			}
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
		}
	}()
	for i := range 5 {
		name := fmt.Sprintf("app-%d", i)
		f.bundle(name, configMap+"targets: [{clusterName: "+cluster.Name+"}]")
		place{f, cluster.Name, naming.MemberNamespace(f.workspace, cluster.Name)}.deployment(name, there)
	}
	close(stop)
	f.check(<-stopped)
	var elsewhere fleet.BundleDeploymentList
	f.check(f.List(context.Background(), &elsewhere, client.InNamespace(victim.namespace)))
	if len(elsewhere.Items) > 0 {
		t.Errorf("%d Bundles were delivered to the other Cluster", len(elsewhere.Items))
	}
}

// TestThePolicyNamesAllOfAClustersStatus keeps the chart's admission policy in step with the type.
func TestThePolicyNamesAllOfAClustersStatus(t *testing.T) {
	policy, err := charts.FS.ReadFile("fleet/templates/admission.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ofClusters, _, _ := strings.Cut(string(policy), "\n---\n")
	for field := range reflect.TypeFor[fleet.ClusterStatus]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		compared := fmt.Sprintf("object.?status.?%s == oldObject.?status.?%[1]s", name)
		if name == "conditions" { // agents and users may write some
			compared = "variables.hubsConditions == variables.hubsConditionsBefore"
		}
		if strings.Contains(ofClusters, compared) == (name == "agent") {
			t.Errorf("status.%s: an agent writes status.agent and nothing else", name)
		}
	}
}
