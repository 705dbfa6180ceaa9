package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// Resources that a member watches.
var (
	deploymentResource = fleet.GroupVersion.WithResource("bundledeployments")
	workResource       = placement.GroupVersion.WithResource("works")
)

// spy is a watch of client-go's that nothing but its bearer token began, and all that it was sent.
type spy struct {
	watch watch.Interface
	mu    sync.Mutex
	seen  []string
	ended bool
}

// spy watches a resource of a namespace and goes on for as long as the API server lets it.
func (f fixture) spy(bearer, namespace string, resource schema.GroupVersionResource) *spy {
	f.t.Helper()
	config := rest.AnonymousClientConfig(f.cluster.Config)
	config.BearerToken = bearer
	member, err := dynamic.NewForConfig(config)
	f.check(err)
	opened, err := member.Resource(resource).Namespace(namespace).Watch(context.Background(), metav1.ListOptions{
		TimeoutSeconds: new(int64(3600)),
	})
	f.check(err)
	f.t.Cleanup(opened.Stop)
	s := &spy{watch: opened}
	go func() {
		for e := range opened.ResultChan() {
			s.mu.Lock()
			if o, ok := e.Object.(*unstructured.Unstructured); ok {
				s.seen = append(s.seen, fmt.Sprintf("%s %s", e.Type, o.GetName()))
			}
			s.mu.Unlock()
		}
		s.mu.Lock()
		s.ended = true
		s.mu.Unlock()
	}()
	return s
}

func (s *spy) events() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// saw returns an error unless the watch received the addition of an object.
func (s *spy) saw(name string) error {
	if !slices.Contains(s.events(), "ADDED "+name) {
		return fmt.Errorf("it saw %v", s.events())
	}
	return nil
}

// survives is nil if the watch still stands.
func (s *spy) survives() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return fmt.Errorf("the watch ended after %v", s.seen)
	}
	return nil
}

// revoke sets the annotation that revokes a record, or removes it (null).
func revoke(c client.Client, record client.Object, value string) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, clusterv1beta1.AnnotationRevoked, value)
	return c.Patch(context.Background(), record, client.RawPatch(types.MergePatchType, []byte(patch)))
}

func (f fixture) clusterRecord(name string) *fleet.Cluster {
	return &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name}}
}

// untilRevoked waits until a Cluster says that it is revoked, and how to take that back.
func (f fixture) untilRevoked(name string) {
	f.t.Helper()
	cluster := f.untilReady(name, "Revoked")
	said := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionReady).Message
	for _, text := range []string{"deliveries on the cluster stay",
		"kubectl -n " + f.workspace + " annotate cluster.fleet.cattle.io " + name + " muster/revoked-"} {
		if !strings.Contains(said, text) {
			f.t.Errorf("it does not say %q: %s", text, said)
		}
	}
}

// TestARevokedMemberSeesNothingMore watches with the credential of a member, begins that before the
// member is revoked, and keeps the watch through all that follows. The watch is none of the
// agent's, and the API server never ends it.
func TestARevokedMemberSeesNothingMore(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "web"})
	name := naming.Cluster("web")
	f.untilReady(name, "Ready")
	f.bundle("app", "defaultNamespace: default\nhelm: {values: {secret: before}}"+configMap+everywhere)
	bearer, before := m.credential()
	f.eventually("the Bundle is delivered", func() error { return f.get(&fleet.BundleDeployment{}, before, "app") })
	watched := f.spy(bearer, before, deploymentResource)
	f.eventually("the watch sees what is there", func() error { return watched.saw("app") })
	m.stop()

	f.check(revoke(f.Client, f.clusterRecord(name), `"true"`))
	f.untilRevoked(name)
	f.eventually("an event says so", func() error { return f.event("Revoked", name, "its agent has no access") })
	as := f.as(bearer)
	f.refused("it lists", as.List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(before)))
	f.refused("it reads the values", as.Get(ctx, types.NamespacedName{Namespace: before, Name: "app"}, &corev1.Secret{}))
	f.refused("it takes a new credential", issue(as, before, naming.MemberServiceAccount))
	f.eventually("the namespace is gone", func() error { return gone(f.get(&corev1.Namespace{}, "", before)) })
	f.eventually("the right to read Contents is gone", func() error { return gone(f.readsContents(before)) })
	f.bundle("during", "defaultNamespace: default"+configMap+everywhere)
	asked := f.mustAsk(values, f.signed(f.keyOf("web"), values, "web", answerKey(t)))
	f.untilState(&asked, fleet.RegistrationDenied, "Revoked")

	f.check(revoke(f.Client, f.clusterRecord(name), "null"))
	cluster := f.untilReady(name, "IdentityMissing")
	if cluster.Status.Namespace != "" {
		t.Errorf("before an agent is registered again it shows namespace %s", cluster.Status.Namespace)
	}
	f.bundle("between", "defaultNamespace: default"+configMap+everywhere)
	again := f.mustAsk(values, f.signed(f.keyOf("web"), values, "web", answerKey(t)))
	f.untilState(&again, fleet.RegistrationPending, "HolderLost") // it has another key
	f.approve(&again)
	f.untilState(&again, fleet.RegistrationGranted, "Granted")
	var now fleet.Cluster
	f.eventually("all is delivered into another namespace", func() error {
		if err := f.get(&now, f.workspace, name); err != nil {
			return err
		}
		if now.Status.Namespace == "" || now.Status.Namespace == before {
			return fmt.Errorf("its namespace is %q", now.Status.Namespace)
		}
		for _, bundle := range []string{"app", "during", "between"} {
			if err := f.get(&fleet.BundleDeployment{}, now.Status.Namespace, bundle); err != nil {
				return err
			}
		}
		return nil
	})
	if err := f.get(&corev1.Namespace{}, "", before); !apierrors.IsNotFound(err) {
		t.Errorf("reading the namespace of before: %v", err)
	}
	f.refused("it reads the new namespace", as.List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(now.Status.Namespace)))
	f.check(watched.survives())
	seen := watched.events()
	for _, bundle := range []string{"during", "between"} {
		if slices.ContainsFunc(seen, func(e string) bool { return strings.HasSuffix(e, " "+bundle) }) {
			t.Errorf("the watch of before saw %v", seen)
		}
	}
	if last := slices.Index(seen, "DELETED app"); last < 0 || last != len(seen)-1 {
		t.Errorf("the watch of before saw %v: want nothing after app is deleted", seen)
	}
}

// TestTheSameWatchSeesAllThatIsDeliveredIntoTheSameNamespace shows that the test above would see a
// namespace that is used again: a watch survives the removal of its rights, and that its namespace
// is deleted and made anew.
func TestTheSameWatchSeesAllThatIsDeliveredIntoTheSameNamespace(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "web"})
	f.untilReady(naming.Cluster("web"), "Ready")
	bearer, namespace := m.credential()
	m.stop()
	watched := f.spy(bearer, namespace, deploymentResource)
	var was corev1.Namespace
	f.check(f.get(&was, "", namespace))
	f.check(f.Delete(context.Background(), was.DeepCopy()))
	f.eventually("the namespace is made anew", func() error {
		var is corev1.Namespace
		if err := f.get(&is, "", namespace); err != nil || is.UID == was.UID {
			return fmt.Errorf("it is not: %w", err)
		}
		return nil
	})
	f.refused("it lists", f.as(bearer).List(context.Background(), &fleet.BundleDeploymentList{}, client.InNamespace(namespace)))
	f.bundle("later", "defaultNamespace: default"+configMap+everywhere)
	f.eventually("the watch sees it all the same", func() error { return watched.saw("later") })
}

// TestARevokedMemberClusterSeesNothingMore does the same by the other registration mode, where the
// identity is the admin's and stays.
func TestARevokedMemberClusterSeesNothingMore(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	m := f.joined("revoked")
	before, bearer := m.namespaceName(), m.bearer(m.name)
	shop := f.shop()
	crp := f.crp("resourceSelectors: [{group: '', version: v1, kind: Namespace, name: " + shop +
		"}]\npolicy: {placementType: PickFixed, clusterNames: [" + m.name + "]}")
	watched := f.spy(bearer, before, workResource)
	work := crp.Name + "-work"
	f.eventually("the watch sees the Work", func() error { return watched.saw(work) })

	record := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: m.name}}
	f.check(revoke(f.Client, record, `"true"`))
	for kind, status := range map[string]metav1.ConditionStatus{
		clusterv1beta1.ConditionReadyToJoin: metav1.ConditionFalse, clusterv1beta1.ConditionJoined: metav1.ConditionFalse,
		clusterv1beta1.ConditionHealthy: metav1.ConditionUnknown,
	} {
		if said := m.until(kind, status, "Revoked"); !strings.Contains(said.Message,
			"kubectl annotate membercluster "+m.name+" muster/revoked-") {
			t.Errorf("%s says %q", kind, said.Message)
		}
	}
	as := f.as(bearer)
	f.refused("it lists", as.List(ctx, &placement.WorkList{}, client.InNamespace(before)))
	f.refused("it reports", as.Status().Patch(ctx, &clusterv1beta1.InternalMemberCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: before, Name: m.name},
	},
		client.RawPatch(types.MergePatchType, []byte(`{"status":{"agentVersion":"evil"}}`))))
	f.eventually("the namespace is gone", func() error { return gone(f.get(&corev1.Namespace{}, "", before)) })
	f.check(f.get(&corev1.ServiceAccount{}, naming.MemberSystemNamespace, m.name))
	known := len(watched.events())

	f.check(revoke(f.Client, record, "null"))
	m.until(clusterv1beta1.ConditionReadyToJoin, metav1.ConditionTrue, "MemberClusterReadyToJoin")
	after := naming.MemberClusterNamespaceAt(1, m.name)
	said := m.until(clusterv1beta1.ConditionJoined, metav1.ConditionUnknown, "MemberClusterJoinStateUnknown")
	if !strings.Contains(said.Message, "config.memberNamespace="+after) {
		t.Errorf("it says %q", said.Message)
	}
	f.eventually("the identity has the new namespace", func() error { return as.List(ctx, &placement.WorkList{}, client.InNamespace(after)) })
	f.check(f.Create(ctx, &placement.Work{ObjectMeta: metav1.ObjectMeta{Namespace: after, Name: "later"}}))
	fresh := f.spy(bearer, after, workResource)
	f.eventually("a new watch sees what is delivered there", func() error { return fresh.saw("later") })
	f.check(watched.survives())
	if seen := watched.events(); len(seen) != known {
		t.Errorf("the watch of before saw %v", seen[known:])
	}
}
