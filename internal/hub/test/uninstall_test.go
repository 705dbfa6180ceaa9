package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/naming"
)

// installed is what Helm made of an agent on a member.
type installed struct {
	on        fixture
	namespace *corev1.Namespace
	objects   []client.Object
}

// installAgent has the objects of the chart in the namespace of an agent, and starts the agent
// again as their Deployment.
func (f fixture) installAgent(on fixture, m *member, name string, report client.ObjectKey) *installed {
	f.t.Helper()
	ctx := context.Background()
	m.stop()
	namespace := &corev1.Namespace{}
	f.check(on.get(namespace, "", m.agentNamespace))
	on.change(namespace, func() { metav1.SetMetaDataLabel(&namespace.ObjectMeta, "name", namespace.Name) })
	marked := func(namespaced bool, name string) metav1.ObjectMeta {
		o := metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}, Annotations: map[string]string{
				"meta.helm.sh/release-name": "agent", "meta.helm.sh/release-namespace": namespace.Name,
			}}
		if namespaced {
			o.Namespace = namespace.Name
		}
		return o
	}
	labels := map[string]string{"app": name}
	i := &installed{on: on, namespace: namespace, objects: []client.Object{
		&appsv1.Deployment{ObjectMeta: marked(true, name), Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: "none"}}},
			},
		}},
		&rbacv1.ClusterRole{ObjectMeta: marked(false, namespace.Name)},
		&rbacv1.ClusterRoleBinding{ObjectMeta: marked(false, namespace.Name), RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: namespace.Name,
		}},
	}}
	for _, o := range i.objects {
		f.check(on.Create(ctx, o))
	}
	settings := &corev1.ConfigMap{}
	if on.get(settings, namespace.Name, naming.AgentConfigMap) == nil {
		on.change(settings, func() {
			settings.Labels, settings.Annotations = i.objects[0].GetLabels(), i.objects[0].GetAnnotations()
		})
	}
	m.options = append(m.options, func(o *agent.Options) { o.Deployment = name })
	m.start()
	f.eventually("the agent offers to remove itself", func() error {
		var found clusterv1beta1.InternalMemberCluster
		if err := f.get(&found, report.Namespace, report.Name); err != nil {
			return err
		}
		if !slices.Contains(found.Status.Features, clusterv1beta1.FeatureUninstall) {
			return fmt.Errorf("it offers %v", found.Status.Features)
		}
		return nil
	})
	return i
}

// untilGone waits until nothing of the agent is left on the member, its namespace included or not.
func (i *installed) untilGone(namespace ...client.Object) {
	i.on.t.Helper()
	for _, o := range append(i.objects, namespace...) {
		i.on.eventually(fmt.Sprintf("%T %s is gone", o, o.GetName()), func() error {
			current := o.DeepCopyObject().(client.Object)
			return gone(i.on.get(current, o.GetNamespace(), o.GetName()))
		})
	}
}

// uninstallAgent sets the annotation of a record.
func (f fixture) uninstallAgent(record client.Object) {
	f.t.Helper()
	f.check(f.Patch(context.Background(), record, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, clusterv1beta1.AnnotationUninstallAgent))))
}

func TestAClusterThatLeavesTakesItsAgentAlongAfterItsDeliveries(t *testing.T) {
	f := newFixture(t)
	e := f.elsewhere("uninstalled")
	target := e.release()
	i := f.installAgent(e.on, e.agent, "fleet-agent",
		client.ObjectKey{Namespace: naming.MemberNamespace(e.workspace, e.name), Name: e.name})
	e.annotate("Delete")
	f.uninstallAgent(e.record())
	e.hold(target, e.workspace, `["example.com/hold"]`)
	f.check(f.Delete(context.Background(), e.record()))
	f.eventually("the deliveries come first", func() error { return f.saysLeaving(e.name, "1 ", "left", "example.com/hold") })
	for _, o := range i.objects {
		f.check(e.on.get(o, o.GetNamespace(), o.GetName()))
		if len(o.GetOwnerReferences()) > 0 {
			t.Errorf("%T is prepared for removal while deliveries are left", o)
		}
	}
	e.hold(target, e.workspace, "null")
	e.untilGone()
	i.untilGone(i.namespace)
	f.check(gone(e.on.get(&corev1.ConfigMap{}, target, e.workspace)))
}

func TestAClusterThatKeepsItsDeliveriesLosesItsAgentIfAsked(t *testing.T) {
	f := newFixture(t)
	e := f.elsewhere("bare")
	target := e.release()
	i := f.installAgent(e.on, e.agent, "fleet-agent",
		client.ObjectKey{Namespace: naming.MemberNamespace(e.workspace, e.name), Name: e.name})
	f.uninstallAgent(e.record())
	f.check(f.Delete(context.Background(), e.record()))
	e.untilGone()
	i.untilGone(i.namespace)
	f.check(e.on.get(&corev1.ConfigMap{}, target, e.workspace))
}

func TestAMemberClusterThatLeavesTakesItsAgentAlong(t *testing.T) {
	f := newFixture(t)
	m := f.delivering("uninstalled", "env=prod")
	i := f.installAgent(m.on, m.agent, "member-agent", client.ObjectKey{Namespace: m.namespaceName(), Name: m.name})
	record := m.record()
	f.uninstallAgent(&record)
	f.check(f.Delete(context.Background(), &record))
	m.untilGone()
	i.untilGone()
	f.check(m.on.get(&corev1.Namespace{}, "", i.namespace.Name)) // it has a Secret of the user
}

func TestAnAgentThatCannotRemoveItselfIsNamedWhenItsMemberLeaves(t *testing.T) {
	f := newFixture(t)
	m := f.delivering("outside", "env=prod") // an agent that runs outside its cluster
	record := m.record()
	f.uninstallAgent(&record)
	f.check(f.Delete(context.Background(), &record))
	m.untilGone()
	f.eventually("an Event says so", func() error {
		var events eventsv1.EventList
		if err := f.List(context.Background(), &events); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == "AgentStays" && e.Regarding.UID == record.UID && strings.Contains(e.Note, "helm uninstall") {
				return nil
			}
		}
		return fmt.Errorf("there is none")
	})
}

func TestOnlyTrueRemovesAnAgent(t *testing.T) {
	f := newFixture(t)
	m := f.delivering("mistaken", "env=prod")
	record := m.record()
	err := f.Patch(context.Background(), &record, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"yes"}}}`, clusterv1beta1.AnnotationUninstallAgent)))
	if err == nil || !strings.Contains(err.Error(), `annotation muster/uninstall-agent is "true" or "false"`) {
		t.Errorf("another value is accepted: %v", err)
	}
}
