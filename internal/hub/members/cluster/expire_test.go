package cluster

import (
	"context"
	"os"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestMain(m *testing.M) { os.Exit(testkube.Main(m)) }

// TestOnlyAClusterThatTheHubMadeAndNobodyEverUsedExpires has a row for each proof that a user or an
// agent wants the Cluster.
func TestOnlyAClusterThatTheHubMadeAndNobodyEverUsedExpires(t *testing.T) {
	control := testkube.Start(t, "expire")
	control.InstallCRDs(t)
	ctx, cl := context.Background(), control.Client(t)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	as := func(who client.FieldOwner) client.Client { return client.WithFieldOwner(cl, string(who)) }
	for _, c := range []struct {
		name string
		// before changes the Cluster that the hub then creates. after changes the Cluster afterwards, as
		// a user or an agent.
		before func(*fleet.Cluster)
		after  func(*fleet.Cluster)
		early  bool
		goes   bool
	}{
		{name: "unused", goes: true},
		{name: "early", early: true},
		{name: "predefined", before: func(c *fleet.Cluster) { c.Annotations = nil }},
		{name: "imported", before: func(c *fleet.Cluster) { c.Spec.KubeConfigSecret = "s" }},
		{name: "edited", after: func(c *fleet.Cluster) { c.Spec.Paused = true; check(as("kubectl").Update(ctx, c)) }},
		{name: "labelled", after: func(c *fleet.Cluster) { c.Labels = map[string]string{"a": "b"}; check(as("kubectl").Update(ctx, c)) }},
		{name: "seen", after: func(c *fleet.Cluster) {
			c.Status.Agent.LastSeen = metav1.Now()
			check(as("agent").Status().Update(ctx, c))
		}},
		{name: "beaten", after: func(c *fleet.Cluster) {
			namespace := membernamespace.OfCluster(c).Namespace
			check(cl.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
			check(cl.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: naming.HeartbeatLease},
				Spec: coordinationv1.LeaseSpec{RenewTime: new(metav1.NowMicro())}}))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: c.name, Annotations: map[string]string{fleet.AnnotationCreatedByToken: "t"},
			},
				Spec: fleet.ClusterSpec{ClientID: c.name}}
			if c.before != nil {
				c.before(cluster)
			}
			check(as(kube.FieldOwner).Create(ctx, cluster))
			cluster.Status.Namespace = "x"
			check(as(kube.FieldOwner).Status().Update(ctx, cluster))
			known := cluster.DeepCopy() // the cache is behind
			if c.after != nil {
				c.after(cluster)
			}
			now := cluster.CreationTimestamp.Add(24 * time.Hour)
			if c.early {
				now = now.Add(-time.Second)
			}
			controller := New(controller.Deps{Client: cl, Live: cl, Clock: clocktesting.NewFakeClock(now), Recorder: events.NewFakeRecorder(9),
				Config: settings.New(cl, events.NewFakeRecorder(9), "default")}, nil, nil, nil, nil)
			again, err := controller.expire(ctx, known, observed{before: known.Status, managed: known.Spec.KubeConfigSecret != ""})
			check(err)
			if c.early != !again.IsZero() {
				t.Errorf("it is reconciled again at %s", again)
			}
			if err := cl.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); apierrors.IsNotFound(err) != c.goes {
				t.Errorf("reading it: %v", err)
			}
		})
	}
}
