package hub_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestMain(m *testing.M) {
	// Tests that run in parallel wait for silence most of the time, so there may be more of them than processors.
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(&logged, nil)))
	os.Exit(testkube.Main(m, func() {
		if running.stop != nil {
			running.stop()
		}
	}))
}

// logged is all that hubs of this package have logged.
var logged log

type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// fixture is a hub on a real control plane and one workspace of its own.
type fixture struct {
	client.Client
	t         *testing.T
	cluster   testkube.Cluster
	workspace string
}

// running is the one hub of this package, which tests share and may restart.
var running struct {
	config *rest.Config
	stop   func()
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	cluster := testkube.Start(t, "hub")
	if running.config == nil {
		running.config = cluster.InstallHub(t)
	}
	startHub()
	f := fixture{Client: cluster.Client(t), t: t, cluster: cluster}
	f.workspace = f.namespace("clusters-")
	return f
}

// startHub runs the hub unless it runs.
func startHub() {
	if running.stop != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		err := hub.Run(ctx, running.config, hub.Options{Namespace: naming.SystemNamespace, MetricsAddress: "0", ProbeAddress: "0"})
		if err != nil && ctx.Err() == nil {
			panic(fmt.Sprintf("the hub ended: %v", err)) // no test could go on
		}
		done <- err
	}()
	running.stop = func() {
		cancel()
		if err := <-done; err != nil {
			panic(err)
		}
		running.stop = nil
	}
}

func (f fixture) restartHub() {
	running.stop()
	startHub()
}

func (f fixture) check(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f fixture) namespace(prefix string) string {
	f.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}
	f.check(f.Create(context.Background(), namespace))
	return namespace.Name
}

// token creates a ClusterRegistrationToken and returns it with its values once they are there.
func (f fixture) token(name, ttl string) (fleet.ClusterRegistrationToken, map[string]string) {
	f.t.Helper()
	token := fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.workspace}}
	if ttl != "" {
		f.check(yaml.Unmarshal([]byte(ttl), &token.Spec.TTL))
	}
	f.check(f.Create(context.Background(), &token))
	testkube.Eventually(f.t, "token "+name+" has its Secret", func() error {
		f.check(f.Get(context.Background(), client.ObjectKeyFromObject(&token), &token))
		if token.Status.SecretName != name {
			return fmt.Errorf("status is %+v", token.Status)
		}
		return nil
	})
	return token, f.values(name)
}

// values reads values.yaml as the seed's one-liner does.
func (f fixture) values(token string) map[string]string {
	f.t.Helper()
	var secret corev1.Secret
	f.check(f.Get(context.Background(), types.NamespacedName{Namespace: f.workspace, Name: token}, &secret))
	values := map[string]string{}
	f.check(yaml.Unmarshal(secret.Data["values"], &values))
	return values
}

// as returns a client that has nothing but a bearer token.
func (f fixture) as(bearer string) client.Client {
	f.t.Helper()
	config := rest.AnonymousClientConfig(f.cluster.Config)
	config.BearerToken, config.QPS = bearer, -1
	made, err := client.New(config, client.Options{Scheme: f.Scheme()})
	f.check(err)
	return made
}

func (f fixture) get(o client.Object, namespace, name string) error {
	return f.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: name}, o)
}

// eventually waits until check returns no error.
func (f fixture) eventually(what string, check func() error) {
	f.t.Helper()
	testkube.Eventually(f.t, what, check)
}

// untilState waits until a request is in a state for a reason.
func (f fixture) untilState(r *fleet.ClusterRegistration, state fleet.RegistrationState, reason string) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("request %s is %s for %s", r.Name, state, reason), func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(r), r); err != nil {
			return err
		}
		if r.Status.State != state || r.Status.Reason != reason {
			return fmt.Errorf("it is %s for %s: %s", r.Status.State, r.Status.Reason, r.Status.Message)
		}
		return nil
	})
}

// untilReady waits until the Ready condition of a Cluster has a reason, and returns the Cluster.
func (f fixture) untilReady(name, reason string) fleet.Cluster {
	f.t.Helper()
	f.eventually("Cluster "+name+" is "+reason, func() error { return f.reason(name, reason) })
	var cluster fleet.Cluster
	f.check(f.get(&cluster, f.workspace, name))
	return cluster
}

// reason says whether the Ready condition of a Cluster has a reason.
func (f fixture) reason(name, reason string) error {
	var cluster fleet.Cluster
	if err := f.get(&cluster, f.workspace, name); err != nil {
		return err
	}
	ready := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionReady)
	if ready == nil || ready.Reason != reason {
		return fmt.Errorf("its condition Ready is %+v", ready)
	}
	return nil
}

func (f fixture) clusters() []fleet.Cluster {
	f.t.Helper()
	var list fleet.ClusterList
	f.check(f.List(context.Background(), &list, client.InNamespace(f.workspace)))
	slices.SortFunc(list.Items, func(a, b fleet.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}
