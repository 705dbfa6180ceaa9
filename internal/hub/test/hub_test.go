package hub_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/server"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestMain(m *testing.M) {
	if by := os.Getenv(clockVariable); by != "" {
		os.Exit(runWithWrongClock(by))
	}
	// Tests take turns on each control plane instead. A test that waits for one control plane does not
	// keep other tests from another.
	if err := flag.Set("test.parallel", "1000"); err != nil {
		panic(err)
	}
	for number := range cap(alone) {
		alone <- fmt.Sprintf("alone-%d", number+1)
	}
	ctrl.SetLogger(logger)
	os.Exit(testkube.Main(m, stopShared))
}

// logged is all that the shared hub has logged with logger.
var (
	logged log
	logger = logr.FromSlogHandler(slog.NewTextHandler(&logged, nil))
)

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

// lines returns the last lines that contain a text.
func (l *log) lines(with string) string {
	var found []string
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, with) {
			found = append(found, line)
		}
	}
	return strings.Join(found[max(0, len(found)-100):], "")
}

// fixture is a hub on a real control plane and a workspace of the test's own.
type fixture struct {
	client.Client
	t         *testing.T
	cluster   testkube.Cluster
	workspace string
	// hub is the process of a hub that no other test uses; nil for the shared hub.
	hub *testkube.Program
}

// beside has a place for each test that runs beside others on the shared hub, apart one for each
// test with a turn on a further control plane. A test waits most of the time, so there are more of
// them than processors. Too many of them would run twenty control planes at once, and none would
// make progress. A test takes its place apart after all its other places.
var beside, apart = make(chan struct{}, 3), make(chan struct{}, 1)

// take waits for a place, and keeps it until the test ends.
func take(t *testing.T, places chan struct{}) {
	t.Helper()
	began := time.Now()
	places <- struct{}{}
	t.Cleanup(func() { <-places })
	testkube.Waited(t, began)
}

// turnApart waits for a turn on a control plane and a place apart.
func turnApart(t *testing.T, name string, flags ...string) testkube.Cluster {
	t.Helper()
	return testkube.TurnAmong(t, apart, name, flags...)
}

// newFixture has the test run in parallel with others on the shared hub. Such a test may neither
// change the hub's settings nor stop the hub, and changes no object of the cluster that other tests
// rely on: newAlone is for those.
func newFixture(t *testing.T) fixture {
	t.Helper()
	t.Parallel()
	take(t, beside)
	cluster := testkube.Start(t, "hub")
	shared.start.Do(func() { startShared(cluster.InstallHub(t)) })
	f := fixture{t: t}.on(cluster)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the hub logged of this workspace:\n%s", logged.lines(f.workspace))
		}
	})
	return f
}

// on is a new workspace on a control plane.
func (f fixture) on(cluster testkube.Cluster) fixture {
	f.t.Helper()
	f.Client, f.cluster = cluster.Client(f.t), cluster
	return f.neighbour()
}

// neighbour is another workspace of the same hub.
func (f fixture) neighbour() fixture {
	f.t.Helper()
	f.workspace = f.namespace("clusters-")
	return f
}

// shared is the hub of most tests. It runs in the process of the tests, where the
// race detector sees it.
var shared struct {
	start sync.Once
	stop  func()
}

func startShared(config *rest.Config) {
	ctx, cancel := context.WithCancel(logr.NewContext(context.Background(), logger))
	done := make(chan error, 1)
	config.Wrap(reads.of)
	go func() {
		err := server.Run(ctx, config, server.Options{Namespace: naming.SystemNamespace, MetricsAddress: "0", ProbeAddress: "0"})
		if err != nil && ctx.Err() == nil {
			panic(fmt.Sprintf("the hub ended: %v", err)) // no test could go on
		}
		done <- err
	}()
	shared.stop = func() {
		cancel()
		if err := <-done; err != nil {
			panic(err)
		}
	}
}

func stopShared() {
	if shared.stop != nil {
		shared.stop()
	}
}

// alone has the names of the control planes on which no test of newAlone runs at the moment. These
// tests take longer together than all others of the package, so there are three of them. With two,
// half a processor of two idled at the end of a run.
var alone = make(chan string, 3)

// newAlone runs the test in parallel with others, on a control plane where it has a hub of its own
// until it ends. The hub is a process with these settings, or with the settings of HubSettings. The
// test must leave nothing there that hinders the next test.
func newAlone(t *testing.T, settings string, flags ...string) fixture {
	t.Helper()
	t.Parallel()
	return newProcess(t, testkube.Start(t, turnAlone(t)), settings, append([]string{"--leader-elect=false"}, flags...)...)
}

// newRestorable is newAlone on a new control plane. A restore creates all objects of a backup, with
// the rights of their authors, and would fail on what earlier tests have left.
func newRestorable(t *testing.T, settings string) fixture {
	t.Helper()
	t.Parallel()
	name := turnAlone(t)
	testkube.Discard(name)
	return newProcess(t, testkube.Start(t, name), settings, "--leader-elect=false")
}

// turnAlone waits for a turn on a control plane for one test at a time, and returns its name.
func turnAlone(t *testing.T) (name string) {
	t.Helper()
	began := time.Now()
	name = <-alone
	t.Cleanup(func() { alone <- name })
	testkube.Waited(t, began)
	t.Cleanup(func() { discardCrowded(t, name) })
	t.Cleanup(func() { removeLocal(t, name) })
	return name
}

// removeLocal removes the Clusters for the hub itself, after their hub has ended. The hub of the
// next test can be one Cluster only.
func removeLocal(t *testing.T, name string) {
	t.Helper()
	c, all := testkube.Start(t, name).Client(t), &fleet.ClusterList{}
	if err := c.List(context.Background(), all, client.MatchingFields{"metadata.name": "local"}); err != nil {
		return // discardCrowded reports it
	}
	for i := range all.Items {
		local := &all.Items[i]
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		err := errors.Join(c.Patch(context.Background(), local, patch), client.IgnoreNotFound(c.Delete(context.Background(), local)))
		if err != nil {
			t.Errorf("removing Cluster %s/%s: %v", local.Namespace, local.Name, err)
		}
	}
}

// discardCrowded ends a control plane that does not answer. It also ends one on which so much was
// left that each further hub would have more work with that than with its own test.
func discardCrowded(t *testing.T, name string) {
	t.Helper()
	const many = 100
	cluster := testkube.Start(t, name)
	for _, list := range []client.ObjectList{&fleet.ClusterList{}, &fleet.ClusterRegistrationList{}, &clusterv1beta1.MemberClusterList{}} {
		if err := cluster.Client(t).List(context.Background(), list, client.Limit(1)); err != nil {
			t.Errorf("looking at what the test left: %v", err)
			testkube.Discard(name)
			return
		}
		if left := list.GetRemainingItemCount(); left != nil && *left > many {
			testkube.Discard(name)
			return
		}
	}
}

// newUndefining is newAlone on the control plane of those tests that delete definitions, with all
// objects of these kinds. It has an audit log.
func newUndefining(t *testing.T) fixture {
	t.Helper()
	t.Parallel()
	return newProcess(t, turnApart(t, "definitions", "--audit"), "", "--leader-elect=false")
}

// newProcess runs a hub as a process with the rights that its chart gives it.
func newProcess(t *testing.T, cluster testkube.Cluster, settings string, flags ...string) fixture {
	t.Helper()
	rights := cluster.InstallHub(t)
	f := fixture{t: t}.on(cluster)
	f.configure(cmp.Or(settings, testkube.HubSettings))
	f.hub = testkube.Run(t, "muster-hub", append([]string{"--kubeconfig", f.kubeconfigOf(rights.Impersonate.UserName),
		"--namespace", naming.SystemNamespace, "--metrics-bind-address", "0", "--health-probe-bind-address", "0"}, flags...)...)
	return f
}

// kubeconfigOf writes a kubeconfig that acts as a user, and returns its path.
func (f fixture) kubeconfigOf(user string) string {
	f.t.Helper()
	kubeconfig, err := clientcmd.LoadFromFile(filepath.Join(f.cluster.Dir, "kubeconfig"))
	f.check(err)
	for _, info := range kubeconfig.AuthInfos {
		info.Impersonate = user
	}
	path := filepath.Join(f.t.TempDir(), "kubeconfig")
	f.check(clientcmd.WriteToFile(*kubeconfig, path))
	return path
}

func (f fixture) restartHub() {
	f.hub.Kill()
	f.hub.Start()
}

// configured returns the hub's settings.
func (f fixture) configured() *corev1.ConfigMap {
	f.t.Helper()
	settings := &corev1.ConfigMap{}
	f.check(f.get(settings, naming.SystemNamespace, naming.HubConfigMap))
	return settings
}

// configure writes the hub's settings, whether there are some or not.
func (f fixture) configure(text string) *corev1.ConfigMap {
	f.t.Helper()
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.HubConfigMap}}
	_, err := controllerutil.CreateOrUpdate(context.Background(), f.Client, settings, func() error {
		settings.Data = map[string]string{"config": text}
		return nil
	})
	f.check(err)
	return settings
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
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(&token), &token); err != nil {
			return err
		}
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
	made, err := client.New(config, client.Options{Scheme: f.Scheme(), Mapper: f.RESTMapper()})
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

// reason returns an error unless the Ready condition of a Cluster has the reason.
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
