package uninstall_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
	"github.com/muster-fleet/muster/internal/uninstall"
)

func TestMain(m *testing.M) { os.Exit(testkube.Main(m)) }

var install sync.Once

// site is a cluster with an agent of Helm, and with objects of others.
type site struct {
	client.Client
	t       *testing.T
	cluster uninstall.Cluster
	agent   types.NamespacedName
	// own are the agent's objects, others have other owners.
	own, others []client.Object
}

func newSite(t *testing.T) *site {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	plane := testkube.Turn(t, "uninstall")
	install.Do(func() { plane.InstallCRDs(t) })
	connection, err := kubeclient.Connect(plane.Config)
	check(t, err)
	api, err := connection.REST(corev1.SchemeGroupVersion)
	check(t, err)
	s := &site{Client: plane.Client(t), t: t, cluster: uninstall.New(api)}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("agents-%d", time.Now().UnixNano())}}
	namespace.Labels = map[string]string{"name": namespace.Name}
	s.agent = types.NamespacedName{Namespace: namespace.Name, Name: "fleet-agent"}
	s.own = append(s.own, s.create(namespace))
	elsewhere := s.namespace()
	key, err := credential.NewAgentKey()
	check(t, err)
	for _, object := range []client.Object{
		s.named(s.deployment(), s.agent.Namespace, "fleet-agent"), s.named(&corev1.ServiceAccount{}, s.agent.Namespace, "fleet-agent"),
		s.named(&corev1.ConfigMap{}, s.agent.Namespace, "fleet-agent"), s.named(&rbacv1.Role{}, elsewhere, "agent-hub-token"),
		s.named(&rbacv1.ClusterRole{}, "", s.agent.Namespace+"-a"), s.named(&rbacv1.ClusterRole{}, "", s.agent.Namespace+"-b"),
		s.named(&rbacv1.ClusterRoleBinding{RoleRef: roleRef(s.agent.Namespace + "-a")}, "", s.agent.Namespace),
		s.named(&schedulingv1.PriorityClass{Value: 1}, "", s.agent.Namespace),
	} {
		s.own = append(s.own, s.create(s.marked(object, "fleet-agent", s.agent.Namespace)))
	}
	release := s.named(&corev1.Secret{Type: "helm.sh/release.v1"}, s.agent.Namespace, "sh.helm.release.v1.fleet-agent.v1")
	release.SetLabels(map[string]string{"owner": "helm", "name": "fleet-agent"})
	s.own = append(s.own, s.create(release), s.create(s.named(&corev1.Secret{}, s.agent.Namespace, naming.AgentSecret)),
		s.create(s.named(&corev1.Secret{Data: map[string][]byte{"key": key.Seed()}}, s.agent.Namespace, naming.AgentKeySecret)))
	s.others = []client.Object{
		s.create(s.named(&rbacv1.ClusterRole{}, "", s.agent.Namespace+"-0")), // without marks
		s.create(s.unlabelled(s.marked(s.named(&rbacv1.ClusterRole{}, "", s.agent.Namespace+"-1"), "fleet-agent", elsewhere))),
		s.create(s.unlabelled(s.marked(s.named(&corev1.ConfigMap{}, elsewhere, "fleet-agent"), "web", s.agent.Namespace))),
		s.create(s.named(&corev1.Secret{}, elsewhere, naming.AgentSecret)),
	}
	t.Cleanup(func() { // a later test must find no agent
		for _, o := range append(s.own, s.others...) {
			check(t, client.IgnoreNotFound(s.Delete(context.Background(), o)))
		}
	})
	return s
}

// unlabelled leaves only the label of Helm, without the labels of Muster's charts.
func (*site) unlabelled(o client.Object) client.Object {
	o.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm"})
	return o
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func roleRef(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

func (s *site) namespace() string {
	s.t.Helper()
	return s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "elsewhere-"}}).GetName()
}

func (*site) deployment() *appsv1.Deployment {
	labels := map[string]string{"app": "fleet-agent"}
	return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: "none"}}},
		},
	}}
}

func (*site) named(o client.Object, namespace, name string) client.Object {
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func (*site) marked(o client.Object, release, namespace string) client.Object {
	o.SetLabels(map[string]string{
		"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/part-of": "muster", "app.kubernetes.io/component": "agent",
	})
	o.SetAnnotations(map[string]string{"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": namespace})
	return o
}

func (s *site) create(o client.Object) client.Object {
	s.t.Helper()
	check(s.t, s.Create(s.t.Context(), o))
	return o
}

func (s *site) find() *uninstall.Installation {
	s.t.Helper()
	found, err := s.cluster.Find(s.t.Context(), s.agent)
	check(s.t, err)
	return found
}

// exists returns the first object still on the cluster, by its UID.
func (s *site) exists(objects []client.Object) string {
	s.t.Helper()
	for _, o := range objects {
		current := o.DeepCopyObject().(client.Object)
		err := s.Get(context.Background(), client.ObjectKeyFromObject(o), current)
		if err == nil && current.GetUID() == o.GetUID() {
			return fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName())
		} else if err != nil && !apierrors.IsNotFound(err) {
			s.t.Fatal(err)
		}
	}
	return ""
}

// eventually waits for a step of Kubernetes itself.
func (s *site) eventually(what string, is func() error) {
	s.t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(s.t.Context(), 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = is()
		return last == nil, nil
	}); err != nil {
		s.t.Fatalf("%s: %v", what, last)
	}
}

// goes waits until Kubernetes has deleted objects, and checks that all others stay.
func (s *site) goes(objects []client.Object) {
	s.t.Helper()
	s.eventually("nothing is left", func() error {
		if left := s.exists(objects); left != "" {
			return fmt.Errorf("%s stays", left)
		}
		return nil
	})
	for _, other := range s.others {
		if s.exists([]client.Object{other}) == "" {
			s.t.Errorf("%T %s of somebody else is gone", other, other.GetName())
		}
	}
}

func TestAnAgentGoesWithEverythingThatIsProvablyItsOwn(t *testing.T) {
	s := newSite(t)
	found := s.find()
	if len(found.Objects) != len(s.own) || found.Anchor.Name != s.agent.Namespace+"-a" || found.Prepared() {
		t.Errorf("found %v with the anchor %s, prepared: %t", found.Objects, found.Anchor, found.Prepared())
	}
	if !slices.ContainsFunc(found.Stays, func(says string) bool { return strings.Contains(says, "appliedworks.placement") }) {
		t.Errorf("of the definition that another program created, it says %q", found.Stays)
	}
	if resumed, err := s.cluster.Resume(t.Context(), s.agent); resumed != nil || err != nil {
		t.Errorf("a removal that was never prepared goes on: %v, %v", resumed, err)
	}
	half := *found
	half.Objects = found.Objects[:4]
	check(t, s.cluster.Prepare(t.Context(), &half)) // killed in the middle
	check(t, s.cluster.Prepare(t.Context(), s.find()))
	for _, o := range s.own {
		check(t, s.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		if owners := o.GetOwnerReferences(); len(owners) != 1 && o.GetName() != found.Anchor.Name {
			t.Errorf("%T %s has the owners %v", o, o.GetName(), owners)
		}
	}
	if again := s.find(); !again.Prepared() {
		t.Error("the prepared removal is not found again")
	}
	resumed, err := s.cluster.Resume(t.Context(), s.agent)
	check(t, err)
	if resumed == nil {
		t.Error("the prepared removal does not go on")
	}
	s.goes(s.own)
}

func TestTheNamespaceOfAnAgentStaysWithAnythingOfSomebodyElse(t *testing.T) {
	s := newSite(t)
	users := s.create(s.named(&corev1.ConfigMap{}, s.agent.Namespace, "of-a-user"))
	found := s.find()
	check(t, s.cluster.Prepare(t.Context(), found))
	check(t, s.cluster.Remove(t.Context(), found))
	s.others = append(s.others, users, s.own[0])
	s.goes(s.own[1:])
	if says := strings.Join(found.Stays, "\n"); !strings.Contains(says, "it also contains ConfigMap "+s.agent.Namespace+"/of-a-user") {
		t.Errorf("it says %s", says)
	}
}

func TestTheDefinitionOfAppliedWorksGoesOnlyWithTheLastOne(t *testing.T) {
	s := newSite(t)
	definition := definitionOf("appliedworks.placement.kubernetes-fleet.io")
	check(t, s.Get(t.Context(), client.ObjectKeyFromObject(definition), definition))
	before := definition.DeepCopy()
	s.marked(definition, "fleet-agent", s.agent.Namespace)
	check(t, s.Patch(t.Context(), definition, client.MergeFrom(before)))
	applied := &placement.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: s.agent.Namespace}}
	applied.Spec.WorkName, applied.Spec.WorkNamespace = "web", "fleet-member-edge"
	check(t, s.Create(t.Context(), applied))
	if says := strings.Join(s.find().Stays, "\n"); !strings.Contains(says, "AppliedWork "+applied.Name+" owns some of them") {
		t.Errorf("with an AppliedWork it says %s", says)
	}
	check(t, s.Delete(t.Context(), applied))
	other := s.named(s.deployment(), s.namespace(), "member-agent")
	s.create(other)
	if says := strings.Join(s.find().Stays, "\n"); !strings.Contains(says, "member-agent may use it") {
		t.Errorf("with another agent it says %s", says)
	}
	check(t, s.Delete(t.Context(), other))
	if found := s.find(); len(found.Stays) > 0 || len(found.Objects) != len(s.own)+1 {
		t.Errorf("the definition stays: %v, %v", found.Stays, found.Objects)
	}
	check(t, s.Get(t.Context(), client.ObjectKeyFromObject(definition), definition))
	marked := definition.DeepCopy()
	definition.SetLabels(nil)
	check(t, s.Patch(t.Context(), definition, client.MergeFrom(marked)))
}

// TestNothingIsRemovedWithoutHelmsMarks includes a Deployment with a foreign ClusterRole as its
// owner.
func TestNothingIsRemovedWithoutHelmsMarks(t *testing.T) {
	s := newSite(t)
	deployment := s.own[1].(*appsv1.Deployment)
	victim := s.others[0]
	before := deployment.DeepCopy()
	deployment.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: victim.GetName(), UID: victim.GetUID()},
	}
	check(t, s.Patch(t.Context(), deployment, client.MergeFrom(before)))
	if resumed, err := s.cluster.Resume(t.Context(), s.agent); resumed != nil || err != nil {
		t.Errorf("a removal goes on that nobody prepared: %v, %v", resumed, err)
	}
	before = deployment.DeepCopy()
	deployment.Annotations = nil
	check(t, s.Patch(t.Context(), deployment, client.MergeFrom(before)))
	if _, err := s.cluster.Find(t.Context(), s.agent); !errors.Is(err, uninstall.ErrNotProved) {
		t.Errorf("an agent without Helm: %v", err)
	}
	none := types.NamespacedName{Namespace: "default", Name: "none"}
	if _, err := s.cluster.Find(t.Context(), none); !errors.Is(err, uninstall.ErrNotProved) {
		t.Errorf("no agent: %v", err)
	}
	for _, o := range append(s.own, s.others...) {
		if s.exists([]client.Object{o}) == "" {
			t.Errorf("%T %s is gone", o, o.GetName())
		}
	}
}

// failing fails the writes of all objects but Deployments.
type failing struct{ http.RoundTripper }

func (f failing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch && !strings.Contains(r.URL.Path, "/deployments/") {
		return nil, errors.New("the network is down")
	}
	return f.RoundTripper.RoundTrip(r)
}

// TestAnIncompletePreparationRemovesNoAgent has a user keep the agent after a failure.
func TestAnIncompletePreparationRemovesNoAgent(t *testing.T) {
	s := newSite(t)
	config := rest.CopyConfig(testkube.Start(t, "uninstall").Config)
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return failing{rt} })
	connection, err := kubeclient.Connect(config)
	check(t, err)
	api, err := connection.REST(corev1.SchemeGroupVersion)
	check(t, err)
	if err := uninstall.New(api).Prepare(t.Context(), s.find()); err == nil {
		t.Error("a preparation without writes succeeds")
	}
	if found, err := s.cluster.Resume(t.Context(), s.agent); found != nil || err != nil {
		t.Errorf("it removes %v, %v", found, err)
	}
}

func TestAnotherObjectOfTheSameNameStays(t *testing.T) {
	s := newSite(t)
	found := s.find()
	check(t, s.cluster.Prepare(t.Context(), found))
	anchor := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: found.Anchor.Name}}
	check(t, s.Delete(t.Context(), anchor))
	later := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: found.Anchor.Name}}
	s.others = append(s.others, s.create(later))
	if err := s.cluster.Remove(t.Context(), found); !apierrors.IsConflict(err) {
		t.Errorf("removing by the name alone: %v", err)
	}
	s.goes(s.own[1:])
}

func definitionOf(name string) *metav1.PartialObjectMetadata {
	definition := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	definition.APIVersion, definition.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	return definition
}
