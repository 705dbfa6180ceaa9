package uninstall_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/standby"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/uninstall"
)

func (s *site) leftovers() *uninstall.Leftovers {
	s.t.Helper()
	found, err := s.cluster.Leftovers(s.t.Context())
	check(s.t, err)
	return found
}

// names returns the kinds and names of the leftovers from a test's own objects.
func (s *site) names(found *uninstall.Leftovers) (names []string) {
	for _, l := range found.Found {
		if slices.ContainsFunc(s.own, func(o client.Object) bool { return o.GetUID() == l.UID }) {
			names = append(names, l.String())
		}
	}
	return names
}

func (s *site) removeLeftovers() {
	s.t.Helper()
	found := s.leftovers()
	for _, l := range found.Found {
		if slices.ContainsFunc(s.others, func(o client.Object) bool { return o.GetUID() == l.UID }) {
			s.t.Errorf("%s of somebody else is found: %s", l, l.Proof)
		}
		check(s.t, s.cluster.RemoveLeftover(s.t.Context(), l))
	}
}

func TestLeftoversOfAnAgentAreOnlyWhatIsProvablyItsOwn(t *testing.T) {
	s := newSite(t)
	if found := s.leftovers(); len(s.names(found)) > 0 || !strings.Contains(strings.Join(found.Stays, "\n"), "is installed") {
		t.Errorf("with an agent it finds %v and says %v", found.Found, found.Stays)
	}
	for _, o := range s.own { // by hand: the Deployment, and Helm's history of the release
		if secret, is := o.(*corev1.Secret); o.GetName() == "fleet-agent" && o.GetNamespace() == s.agent.Namespace &&
			fmt.Sprintf("%T", o) == "*v1.Deployment" || is && secret.Type == "helm.sh/release.v1" {
			check(t, s.Delete(t.Context(), o))
		}
	}
	s.eventually("the Pods are gone", func() error {
		var pods corev1.PodList
		check(t, s.List(context.Background(), &pods, client.InNamespace(s.agent.Namespace)))
		if len(pods.Items) > 0 {
			return fmt.Errorf("%d are left", len(pods.Items))
		}
		return nil
	})
	found := s.leftovers()
	if names := s.names(found); len(names) != len(s.own)-2 || names[len(names)-1] != "Namespace "+s.agent.Namespace {
		t.Errorf("of %d objects it finds %v; stays: %v", len(s.own), names, found.Stays)
	}
	for _, other := range []client.Object{s.others[1], s.others[3]} {
		if !slices.ContainsFunc(found.Unproved, func(o uninstall.Object) bool { return o.UID == other.GetUID() }) {
			t.Errorf("%T %s is not named as unproved", other, other.GetName())
		}
	}
	s.removeLeftovers()
	s.goes(s.own)
	if names := s.names(s.leftovers()); len(names) > 0 {
		t.Errorf("left are %v", names)
	}
}

func TestObjectsOfAReleaseThatHelmKnowsAreNoLeftovers(t *testing.T) {
	s := newSite(t)
	check(t, s.Delete(t.Context(), s.own[1])) // the Deployment alone
	found := s.leftovers()
	for _, name := range s.names(found) {
		if strings.HasPrefix(name, "ClusterRole") || strings.HasPrefix(name, "Namespace") {
			t.Errorf("it finds %s", name)
		}
	}
	if says := strings.Join(found.Stays, "\n"); !strings.Contains(says, "helm -n "+s.agent.Namespace+" uninstall fleet-agent removes them") {
		t.Errorf("it says %s", says)
	}
}

// TestANamespaceOfAnotherReleaseStays has the namespace of an agent, created by a user's release.
func TestANamespaceOfAnotherReleaseStays(t *testing.T) {
	s := newSite(t)
	namespace := s.own[0]
	before := namespace.DeepCopyObject().(client.Object)
	namespace.SetLabels(map[string]string{"name": namespace.GetName(), "app.kubernetes.io/managed-by": "Helm"})
	namespace.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "umbrella", "meta.helm.sh/release-namespace": "default"})
	check(t, s.Patch(t.Context(), namespace, client.MergeFrom(before)))
	if says := strings.Join(s.find().Stays, "\n"); !strings.Contains(says, namespace.GetName()+": it is of Helm release default/umbrella") {
		t.Errorf("an agent that removes itself says %s", says)
	}
	history := s.named(&corev1.Secret{Type: "helm.sh/release.v1"}, "default", "sh.helm.release.v1.umbrella.v1")
	history.SetLabels(map[string]string{"owner": "helm", "name": "umbrella", "status": "deployed"})
	s.others = append(s.others, s.create(history))
	check(t, s.Delete(t.Context(), s.own[1]))
	found := s.leftovers()
	if names := s.names(found); slices.Contains(names, "Namespace "+namespace.GetName()) {
		t.Errorf("it finds %v", names)
	}
	if says := strings.Join(found.Stays, "\n"); !strings.Contains(says, "helm -n default uninstall umbrella removes them") {
		t.Errorf("it says %s", says)
	}
}

// hubSite has the leftovers of a hub deleted with its namespace while members leave.
func hubSite(t *testing.T) (s *site, live *clusterv1beta1.MemberCluster) {
	t.Helper()
	s = newSite(t)
	for _, o := range append(s.own, s.others...) {
		check(t, s.Delete(t.Context(), o))
	}
	name := s.agent.Namespace
	s.own, s.others = nil, nil
	member := func(name string, manager client.FieldOwner) *clusterv1beta1.MemberCluster {
		mc := &clusterv1beta1.MemberCluster{}
		mc.Name, mc.Finalizers = name, []string{clusterv1beta1.FinalizerMemberCluster}
		mc.Spec.Identity = rbacv1.Subject{Kind: rbacv1.UserKind, Name: name}
		check(t, s.Create(t.Context(), mc, manager))
		return mc
	}
	space := func(of *clusterv1beta1.MemberCluster, name string, manager client.FieldOwner) *corev1.Namespace {
		namespace := &corev1.Namespace{}
		namespace.Name, namespace.Annotations = name, map[string]string{membership.AnnotationRecordUID: string(of.UID)}
		check(t, s.Create(t.Context(), namespace, manager))
		return namespace
	}
	leaving := member(name+"-leaving", kube.FieldOwner)
	held := member(name+"-held", "kubefleet")
	live = member(name+"-live", kube.FieldOwner)
	check(t, s.Delete(t.Context(), leaving))
	check(t, s.Delete(t.Context(), held))
	spaceOfLeaving := space(leaving, naming.MemberClusterNamespace(leaving.Name), kube.FieldOwner)
	work := &placement.Work{}
	work.Namespace, work.Name, work.Finalizers = spaceOfLeaving.Name, "web", []string{placement.FinalizerWork}
	check(t, s.Create(t.Context(), work))
	binding := &rbacv1.ClusterRoleBinding{RoleRef: roleRef("view")}
	binding.Name, binding.Labels = name+"-contents", map[string]string{fleet.LabelManaged: "true"}
	check(t, s.Create(t.Context(), binding, kube.FieldOwner))
	policy := &admissionv1.ValidatingAdmissionPolicy{}
	policy.Spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Delete},
			Rule: admissionv1.Rule{
				APIGroups: []string{fleet.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"schedules"},
			},
		},
	}}}
	policy.Spec.Validations = []admissionv1.Validation{{Expression: "true"}}
	s.marked(s.named(policy, "", "muster-"+name), "fleet", name)
	policy.Labels["app.kubernetes.io/component"] = "hub"
	s.create(policy)
	s.own = []client.Object{leaving, spaceOfLeaving, work, binding, policy}
	access := func(manager client.FieldOwner) []client.Object {
		role, binding := standby.Access(s.namespace(), naming.SystemNamespace)
		check(t, s.Create(t.Context(), role, manager))
		check(t, s.Create(t.Context(), binding, manager))
		return []client.Object{role, binding}
	}
	s.own = append(append(s.own, access(standby.Manager)...), access(kube.FieldOwner)...)
	ofTokens, _ := standby.Access(s.namespace(), naming.SystemNamespace)
	ofTokens.Name, ofTokens.Labels = "token-of-"+name, map[string]string{fleet.LabelManaged: "true"}
	check(t, s.Create(t.Context(), ofTokens, kube.FieldOwner))
	account := standby.ServiceAccount(s.namespace())
	check(t, s.Create(t.Context(), account))
	theirs := binding.DeepCopy()
	theirs.Name, theirs.ResourceVersion, theirs.UID = name+"-theirs", "", ""
	s.others = []client.Object{
		live, held, space(live, naming.MemberClusterNamespace(live.Name), kube.FieldOwner),
		space(leaving, name+"-of-another-name", kube.FieldOwner), space(leaving, naming.MemberClusterNamespace(name+"-forged"), "kubectl"),
		s.create(theirs), ofTokens, account,
	}
	s.others = append(s.others, access("kubectl")...)
	t.Cleanup(func() {
		for _, mc := range []*clusterv1beta1.MemberCluster{live, held} {
			check(t, client.IgnoreNotFound(s.Patch(context.Background(), mc, client.RawPatch("application/merge-patch+json",
				[]byte(`{"metadata":{"finalizers":null}}`)))))
		}
	})
	return s, live
}

func TestLeftoversOfAHubAreOnlyWhatIsProvablyItsOwn(t *testing.T) {
	s, live := hubSite(t)
	hub := s.create(s.named(s.deployment(), s.namespace(), "fleet-controller"))
	if found := s.leftovers(); len(s.names(found)) > 0 || !strings.Contains(strings.Join(found.Stays, "\n"), "fleet-controller is installed") {
		t.Errorf("beside a hub in another namespace it finds %v, and says %v", s.names(found), found.Stays)
	}
	check(t, s.Delete(t.Context(), hub))
	found := s.leftovers()
	if names := s.names(found); len(names) != len(s.own) {
		t.Errorf("of %d objects it finds %v; stays: %v", len(s.own), names, found.Stays)
	}
	says := strings.Join(found.Stays, "\n")
	for _, want := range []string{
		"MemberCluster " + s.agent.Namespace + "-held: it is being deleted and waits for finalizers of another program",
		"Namespace " + naming.MemberClusterNamespace(live.Name) + ": its member exists",
	} {
		if !strings.Contains(says, want) {
			t.Errorf("it does not say %q, but %s", want, says)
		}
	}
	s.removeLeftovers()
	s.goes(s.own)
	check(t, s.Get(t.Context(), client.ObjectKeyFromObject(live), live))
	if len(live.Finalizers) != 1 {
		t.Errorf("the member that stays has the finalizers %v", live.Finalizers)
	}
}

func TestADefinitionIsALeftoverOnlyWithoutObjects(t *testing.T) {
	s := newSite(t)
	check(t, s.Delete(t.Context(), s.own[1]))
	definition := definitionOf("schedules.fleet.cattle.io")
	check(t, s.Get(t.Context(), client.ObjectKeyFromObject(definition), definition))
	before := definition.DeepCopy()
	annotations := definition.Annotations
	s.marked(definition, "fleet-crd", s.agent.Namespace)
	definition.Annotations["helm.sh/resource-policy"] = "keep"
	check(t, s.Patch(t.Context(), definition, client.MergeFrom(before)))
	t.Cleanup(func() {
		before := definition.DeepCopy()
		definition.Labels, definition.Annotations = nil, annotations
		check(t, s.Patch(context.Background(), definition, client.MergeFrom(before)))
	})
	listed := func() bool {
		return slices.ContainsFunc(s.leftovers().Found, func(l uninstall.Leftover) bool { return l.UID == definition.UID })
	}
	if !listed() {
		t.Error("without objects it is no leftover")
	}
	schedule := &fleet.Schedule{}
	schedule.Namespace, schedule.Name = s.agent.Namespace, "nightly"
	schedule.Spec.Schedule = "0 0 * * *"
	s.create(schedule)
	says := strings.Join(s.leftovers().Stays, "\n")
	if listed() || !strings.Contains(says, "the number of its objects is 1, such as Schedule") {
		t.Errorf("with an object it is a leftover, or it says %s", says)
	}
}
