package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/bench/rig"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// upstream is a member with an agent simulated on the wire.
type upstream struct {
	r      *run
	name   string
	live   func(ctx context.Context, joined func()) error
	has    atomic.Bool
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

func (u *upstream) start() error {
	ctx, cancel := context.WithCancel(context.Background())
	u.cancel = cancel
	u.ended.Go(func() {
		if err := u.live(ctx, func() { u.has.Store(true) }); err != nil && ctx.Err() == nil {
			u.r.deployed.fail(err)
		}
	})
	return nil
}

func (u *upstream) joined() bool { return u.has.Load() }

func (u *upstream) silence() {
	u.cancel()
	u.ended.Wait()
}

func (u *upstream) record() string { return u.name }

// as returns a client with only a bearer token. Clients of one process share connections.
func (r *run) as(bearer string) (client.WithWatch, error) {
	config := rest.AnonymousClientConfig(r.cluster.Config)
	config.BearerToken, config.QPS = bearer, -1
	return client.NewWithWatch(config, client.Options{Scheme: r.Scheme(), Mapper: r.RESTMapper()})
}

// newRancher simulates an agent of Rancher Fleet. It continues with its credential after silence.
func (r *run) newRancher(i int) *upstream {
	id := fmt.Sprintf("member-%d", i)
	u := &upstream{r: r, name: naming.Cluster(id)}
	var agent *rig.RancherAgent
	u.live = func(ctx context.Context, joined func()) error {
		if agent == nil {
			var err error
			if agent, err = rig.JoinRancher(ctx, r.as, r.bootstrap, r.values, id); err != nil {
				return err
			}
			joined()
		}
		return beat(ctx, r.options.rancher, func() error { return agent.Beat(ctx) })
	}
	return u
}

// newKubeFleet simulates a member agent of KubeFleet. It sends a heartbeat every minute, and
// answers the hub's request to leave.
func (r *run) newKubeFleet(i int) *upstream {
	u := &upstream{r: r, name: fmt.Sprintf("member-%d", i)}
	u.live = func(ctx context.Context, joined func()) error {
		own, err := r.registerKubeFleet(ctx, u.name)
		if err != nil {
			return err
		}
		if err := rig.Retry(ctx, func() error { return rig.BeatKubeFleet(ctx, own, u.name, metav1.ConditionTrue) }); err != nil {
			return err
		}
		joined()
		watch, err := own.Watch(ctx, &clusterv1beta1.InternalMemberClusterList{}, client.InNamespace(naming.MemberClusterNamespace(u.name)))
		if err != nil {
			return err
		}
		defer watch.Stop()
		go func() {
			for event := range watch.ResultChan() {
				if report, ok := event.Object.(*clusterv1beta1.InternalMemberCluster); ok && report.Spec.State == clusterv1beta1.ClusterStateLeave {
					_ = rig.BeatKubeFleet(ctx, own, u.name, metav1.ConditionFalse) // the hub ends the access at any moment
				}
			}
		}()
		return beat(ctx, time.Minute, func() error { return rig.BeatKubeFleet(ctx, own, u.name, metav1.ConditionTrue) })
	}
	return u
}

// registerKubeFleet creates the MemberCluster with an identity, as an administrator does, and
// returns a client of the identity.
func (r *run) registerKubeFleet(ctx context.Context, name string) (client.WithWatch, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: naming.MemberSystemNamespace, Name: name}}
	if err := r.Create(ctx, account); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	err := r.Create(ctx, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1beta1.MemberClusterSpec{
		Identity: rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: name}, HeartbeatPeriodSeconds: 60,
	}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	token, err := kube.RequestToken(ctx, r.SubResource("token"), account, 24*time.Hour)
	if err != nil {
		return nil, err
	}
	return r.as(token)
}

// beat sends a heartbeat every period, 5 % more or less. It counts failed heartbeats.
func beat(ctx context.Context, period time.Duration, once func() error) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(period + time.Duration((rand.Float64()-0.5)*0.1*float64(period))):
		}
		if err := once(); err != nil && ctx.Err() == nil {
			upstreamFailed.Add(1)
		} else {
			upstreamAccepted.Add(1)
		}
	}
}

var upstreamAccepted, upstreamFailed atomic.Int64
