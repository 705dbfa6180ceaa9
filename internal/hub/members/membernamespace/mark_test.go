package membernamespace

import (
	"context"
	"errors"
	"math"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
)

func TestANamespaceIsMadeForOneRecord(t *testing.T) {
	born := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cluster := &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web", UID: "u", CreationTimestamp: metav1.NewTime(born)},
	}
	used := cluster.DeepCopy()
	used.Status.Namespace = OfCluster(cluster).Namespace
	prepared := cluster.DeepCopy()
	prepared.Status.Conditions = []fleet.Condition{{Type: conditionProcessed, Status: corev1.ConditionTrue}}
	revoked := used.DeepCopy()
	revoked.Annotations = map[string]string{clusterv1beta1.AnnotationMemberEpoch: "1"} // its status shows the namespace of before
	for _, c := range []struct {
		name   string
		record *fleet.Cluster
		uid    string
		age    time.Duration
		want   bool
	}{
		{"the hub made it", cluster, "u", 0, true},
		{"the hub made it for another one", used, "other", 0, false},
		{"an earlier hub made it, and the status shows it", used, "", 0, true},
		{"an earlier hub made it, and no agent has registered since a revocation", prepared, "", 0, true},
		{"no status shows it", cluster, "", 0, false},
		{"it is older than the Cluster", used, "", time.Second, false},
		{"the status shows the namespace of another epoch", revoked, "", 0, false},
	} {
		m := OfCluster(c.record)
		namespace := &corev1.Namespace{ObjectMeta: m.meta("", m.Namespace)}
		namespace.CreationTimestamp = metav1.NewTime(born.Add(-c.age))
		if c.uid != "" {
			namespace.Annotations[membership.AnnotationRecordUID] = c.uid
		}
		if got := m.MadeFor(namespace); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	former, ok := Former(revoked)
	namespace := &corev1.Namespace{ObjectMeta: former.meta("", former.Namespace)}
	if !ok || !former.MadeFor(namespace) {
		t.Error("the namespace of a former epoch that an earlier hub made is not deleted")
	}
}

func TestAnEpochIsCountedOrBegunAnew(t *testing.T) {
	for given, want := range map[string]string{
		"": "1", "0": "1", "7": "8", "-3": "1", "x": "1", "99999999999999999999": "1",
		strconv.Itoa(membership.MaxEpoch - 1): strconv.Itoa(membership.MaxEpoch),
		strconv.Itoa(membership.MaxEpoch):     "1", strconv.Itoa(math.MaxInt64): "1",
	} {
		record := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{clusterv1beta1.AnnotationMemberEpoch: given}}}
		if BeginEpoch(record, nil); record.Annotations[clusterv1beta1.AnnotationMemberEpoch] != want {
			t.Errorf("after %q comes %q, want %q", given, record.Annotations[clusterv1beta1.AnnotationMemberEpoch], want)
		}
	}
}

func TestOnlyTheAnswerNotFoundSaysThatARecordIsGone(t *testing.T) {
	scheme := fake.NewClientBuilder().Build().Scheme()
	if err := fleet.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	resource := schema.GroupResource{Group: fleet.GroupVersion.Group, Resource: "clusters"}
	there := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web", UID: "u"}}
	for _, c := range []struct {
		name string
		uid  string
		err  error
		has  bool
		ok   bool
	}{
		{"it is there", "u", nil, true, true},
		{"it is there, and an earlier hub made the namespace", "", nil, true, true},
		{"another one has its name", "other", nil, false, true},
		{"it is gone", "u", apierrors.NewNotFound(resource, "web"), false, true},
		{"the hub may not read it", "u", apierrors.NewForbidden(resource, "web", errors.New("no")), false, false},
		{
			"its kind is not served", "u", apierrors.NewGenericServerResponse(404, "get", resource, "web", "404 page not found", 0, true), false,
			false,
		},
	} {
		api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(there.DeepCopy()).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, next client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				if c.err != nil {
					return c.err
				}
				return next.Get(ctx, key, o, options...)
			},
		}).Build()
		m := OfCluster(there)
		namespace := &corev1.Namespace{ObjectMeta: m.meta("", m.Namespace)}
		if c.uid != "" {
			namespace.Annotations[membership.AnnotationRecordUID] = c.uid
		}
		stray, ok := StrayOf(namespace)
		if !ok {
			t.Fatal("it is no member namespace")
		}
		if has, err := stray.HasRecord(t.Context(), api); has != c.has || (err == nil) != c.ok {
			t.Errorf("%s: %t, %v", c.name, has, err)
		}
	}
}
