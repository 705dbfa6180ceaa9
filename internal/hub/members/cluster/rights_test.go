package cluster

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
)

// reads counts what is read, which is as it should be.
type reads struct {
	client.Reader
	binding *rbacv1.RoleBinding
	count   int
}

func (r *reads) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	r.count++
	r.binding.DeepCopyInto(into.(*rbacv1.RoleBinding))
	return nil
}

// requested is a queue that counts what is added to it.
type requested struct {
	controller.Queue
	count int
}

func (r *requested) Add(reconcile.Request) { r.count++ }

func TestRightsAreReadOnlyAfterSomebodyHasWrittenThem(t *testing.T) {
	member := membernamespace.OfCluster(&fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web"}})
	binding := member.SelfRenewal()
	live, queue := &reads{binding: binding}, &requested{}
	scheme := runtime.NewScheme()
	if err := fleet.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&fleet.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "clusters", Name: "confined", Annotations: map[string]string{fleet.AnnotationQuarantined: "true"},
	}}).Build()
	c := New(controller.Deps{Client: cached, Live: live, Clock: clocktesting.NewFakeClock(now)}, nil, nil, nil, nil)
	version := func(version string) client.Object {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: binding.Annotations, ResourceVersion: version}}
	}
	for _, row := range []struct {
		name            string
		before, after   client.Object
		requests, reads int
	}{
		{"a member that joins", nil, version("1"), 0, 0},
		{"a right of a quarantined member, granted a moment ago", nil, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{fleet.AnnotationClusterNamespace: "clusters", fleet.LabelCluster: "confined"},
		}}, 1, 0},
		{"a cache that lists anew", version("1"), version("1"), 0, 0},
		{"an edit", version("1"), version("2"), 1, 1},
		{"a deletion, which the cache shows", version("2"), nil, 1, 0},
		{"what is no member's", &metav1.PartialObjectMetadata{}, version("2"), 0, 0},
	} {
		live.count, queue.count = 0, 0
		c.onRights(context.Background(), row.before, row.after, queue)
		for range 2 {
			if err := c.restoreEdited(context.Background(), member, []client.Object{binding, &rbacv1.ClusterRole{}}); err != nil {
				t.Fatal(err)
			}
		}
		if queue.count != row.requests || live.count != row.reads {
			t.Errorf("%s: %d requests and %d reads, want %d and %d", row.name, queue.count, live.count, row.requests, row.reads)
		}
	}
}
