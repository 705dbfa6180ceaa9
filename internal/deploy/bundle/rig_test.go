package bundle

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/charts"
	contents "github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/deploy/render"
	"github.com/muster-fleet/muster/internal/fleet/agentroles"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestMain(m *testing.M) {
	if render.Asked() {
		os.Exit(render.Main())
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "3") // tests wait more than they compute; the flag exists
	os.Exit(testkube.Main(m))
}

// rig is a hub, played by hand with exactly the rights that hubs give, and a member,
// which are one cluster.
type rig struct {
	t *testing.T
	// alone is set if no other test of the package runs.
	alone   bool
	cluster testkube.Cluster
	kube    client.Client
	// downstream is the member, if it is another cluster.
	downstream testkube.Cluster
	// server is where the deployer reaches the hub, if not directly.
	server string
	ca     []byte
	pauses Pauses
	// onlyAgent makes the next deployer the deployer of a MemberCluster.
	onlyAgent bool
	// suspects are the suspects of the next deployer.
	suspects []protocol.Suspect
	// hookWait is how long an uninstall waits for a hook at a time.
	hookWait time.Duration
	// member is the member namespace, agent the one of the agent downstream, target one for releases.
	member, agent, target string
	report                *clusterv1beta1.InternalMemberCluster
	// lost are the UIDs of reports from before a restore of the hub.
	lost []string
}

var prepared = map[string]bool{}

// newRig is a rig in namespaces of its own on the control plane that the tests share, at the
// same time as others.
func newRig(t *testing.T) *rig {
	t.Helper()
	prepare(t, shared)
	t.Parallel()
	return newRigOn(t, shared)
}

// newRigAlone is a rig on that control plane for a test during which no other one may run.
func newRigAlone(t *testing.T) *rig {
	t.Helper()
	r := newRigOn(t, shared)
	r.alone = true
	return r
}

const shared = "deploy"

var preparing sync.Mutex

// prepare installs on a control plane what members and agents need. A test that removes the agent's
// chart takes its role along.
func prepare(t *testing.T, name string) testkube.Cluster {
	t.Helper()
	preparing.Lock()
	defer preparing.Unlock()
	cluster := testkube.Start(t, name)
	if !prepared[name] {
		prepared[name] = true
		cluster.InstallCRDs(t)
	}
	roles, err := agentroles.ClusterRoles()
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range append(roles, chartRole(t)) {
		if err := cluster.Client(t).Create(t.Context(), role); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	return cluster
}

func newRigOn(t *testing.T, name string) *rig {
	t.Helper()
	cluster := prepare(t, name)
	r := &rig{
		t: t, cluster: cluster, kube: cluster.Client(t), downstream: cluster, server: cluster.Config.Host, ca: cluster.Config.CAData,
		pauses: Pauses{Watched: 100 * time.Millisecond, Missing: 100 * time.Millisecond},
	}
	r.member, r.agent, r.target = r.namespace("cluster-"), r.namespace("agent-"), r.namespace("target-")
	r.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: r.member}})
	r.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "member", Namespace: r.member},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "muster-member"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "agent", Namespace: r.member}},
	})
	r.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: r.member},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "fleet-content"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "agent", Namespace: r.member}},
	})
	r.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: r.agent},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "fleet-agent-delivery"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "fleet-agent", Namespace: r.agent}},
	})
	r.report = &clusterv1beta1.InternalMemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "my-cluster", Namespace: r.member},
		Spec:       clusterv1beta1.InternalMemberClusterSpec{State: clusterv1beta1.ClusterStateJoin, HeartbeatPeriodSeconds: 60},
	}
	r.create(r.report)
	return r
}

// chartRole is what the chart lets the agent do to deploy.
func chartRole(t *testing.T) *rbacv1.ClusterRole {
	t.Helper()
	text, err := charts.FS.ReadFile("fleet-agent/templates/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(string(text), "\n---\n") {
		role := &rbacv1.ClusterRole{}
		if strings.Contains(document, "kind: ClusterRole\n") && strings.Contains(document, "name: fleet-agent-delivery") &&
			!strings.Contains(document, "roleRef") {
			if err := yaml.Unmarshal([]byte(document), role); err != nil {
				t.Fatal(err)
			}
			return role
		}
	}
	t.Fatal("the chart fleet-agent has no ClusterRole fleet-agent-delivery")
	return nil
}

func (r *rig) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) create(object client.Object) {
	r.t.Helper()
	r.check(r.kube.Create(r.t.Context(), object))
}

// namespace creates a namespace that stays as long as the control plane. To delete a namespace,
// Kubernetes needs two requests for each kind, more than most tests send. Only its Secrets go with
// the test, because deployers list the releases of all namespaces.
func (r *rig) namespace(prefix string) string {
	r.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}
	r.create(namespace)
	r.t.Cleanup(func() {
		_ = r.kube.DeleteAllOf(context.Background(), &corev1.Secret{}, client.InNamespace(namespace.Name))
	})
	return namespace.Name
}

func (r *rig) eventually(what string, check func() error) {
	r.t.Helper()
	testkube.Eventually(r.t, what, check)
}

// token is one of the member's agent.
func (r *rig) token() string {
	r.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: r.member}}
	token := &authenticationv1.TokenRequest{}
	r.check(r.kube.SubResource("token").Create(r.t.Context(), account, token))
	return token.Status.Token
}

// order is what the agent sends the program, for a hub at this address.
func (r *rig) order(server string) protocol.Order {
	r.t.Helper()
	return protocol.Order{
		Hub:   hubclient.Target{Server: server, CA: r.ca, Trust: hubclient.Trust{Mode: hubclient.TLSStrict}},
		Token: r.token(), Namespace: r.member, Name: r.report.Name, Member: string(r.report.UID), Kinds: []protocol.Kind{protocol.Bundles},
	}
}

// hub is the member namespace as the deployer reaches it.
func (r *rig) hub() *hubclient.Member {
	r.t.Helper()
	order := r.order(r.server)
	hub, err := hubclient.Dial(order.Hub, order.Token, clock.RealClock{})
	r.check(err)
	member, err := hub.Member(r.member, r.report.Name)
	r.check(err)
	return member
}

// running is a deployer at work.
type running struct {
	cancel context.CancelFunc
	ended  chan struct{}
	// ends counts how often the deployer ended because there was nothing to do.
	ends atomic.Int32
	log  *strings.Builder
	mu   sync.Mutex
	// said is what cannot be removed, as it was reported last.
	said protocol.Blocked
}

func (r *rig) start() *running {
	r.t.Helper()
	return r.startOn(r.reach(nil))
}

// startOn starts a deployer that reaches the member so.
func (r *rig) startOn(cluster *release.Cluster) *running {
	r.t.Helper()
	run := &running{ended: make(chan struct{}), log: &strings.Builder{}}
	d := &Deployer{
		Cluster: cluster, Hub: r.hub(), Member: string(r.report.UID), Log: run.logger(), Clock: clock.RealClock{}, Pauses: &r.pauses,
		AgentIdle: func(map[string]int64) {}, OnlyAgent: r.onlyAgent, Lost: r.lost,
	}
	d.Renderer = render.New(render.LeastMemory, RenderTimeout)
	d.Attempts = &Attempts{Reply: func(protocol.Reply) {}}
	d.Attempts.SetSuspects(r.suspects)
	d.Blocked = func(b protocol.Blocked, kept []applied.Kept) {
		run.mu.Lock()
		defer run.mu.Unlock()
		if run.said = b; len(kept) > 0 && b == (protocol.Blocked{}) {
			run.said = protocol.Blocked{Reason: reasons.HubRestored, Message: applied.DescribeKept(kept)}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	run.cancel = cancel
	go func() {
		defer close(run.ended)
		for ctx.Err() == nil {
			running, end := context.WithCancel(ctx)
			d.Idle = func(idle bool) {
				if idle {
					end()
				}
			}
			if err := d.Run(running); err != nil && ctx.Err() == nil {
				r.t.Errorf("the deployer ended: %v", err)
			}
			end()
			run.ends.Add(1)
			r.awaitDeployment(ctx)
		}
	}()
	r.t.Cleanup(func() {
		run.stop()
		if r.t.Failed() {
			r.t.Logf("the deployer logged:\n%s", run.lines())
		}
	})
	return run
}

// awaitDeployment returns when there is something to deploy, which is when an agent
// starts the deployer.
func (r *rig) awaitDeployment(ctx context.Context) {
	for ctx.Err() == nil {
		all := &fleet.BundleDeploymentList{}
		if err := r.kube.List(ctx, all, client.InNamespace(r.member)); err == nil && len(all.Items) > 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (run *running) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		run.mu.Lock()
		defer run.mu.Unlock()
		fmt.Fprintf(run.log, "%s %s %s\n", time.Now().Format("05.000"), prefix, args)
	}, funcr.Options{})
}

func (run *running) lines() string {
	run.mu.Lock()
	defer run.mu.Unlock()
	return run.log.String()
}

// blocked waits until it is reported why something cannot be removed, or with no reason, that
// nothing is blocked.
func (r *rig) blocked(run *running, reason string, parts ...string) {
	r.t.Helper()
	r.eventually("the agent is told "+reason, func() error {
		run.mu.Lock()
		defer run.mu.Unlock()
		if run.said.Reason != reason {
			return fmt.Errorf("it was told %+v", run.said)
		}
		for _, part := range parts {
			if !strings.Contains(run.said.Message, part) {
				return fmt.Errorf("the message %q does not say %q", run.said.Message, part)
			}
		}
		return nil
	})
}

func (run *running) stop() {
	run.cancel()
	<-run.ended
}

// file is one resource of a Bundle.
func file(name, content string) fleet.BundleResource {
	return fleet.BundleResource{Name: name, Content: content}
}

func configMap(name, value string) fleet.BundleResource {
	return file(name+".yaml", fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  key: %s\n", name, value))
}

// place makes or changes a BundleDeployment, and its Content.
func (r *rig) place(name string, options fleet.BundleDeploymentOptions, resources ...fleet.BundleResource) *fleet.BundleDeployment {
	r.t.Helper()
	return r.placeWith(name, func(*fleet.BundleDeploymentSpec) {}, options, resources...)
}

// placeWith does so with a change of the specification.
func (r *rig) placeWith(name string, change func(*fleet.BundleDeploymentSpec), options fleet.BundleDeploymentOptions,
	resources ...fleet.BundleResource,
) *fleet.BundleDeployment {
	r.t.Helper()
	ctx := r.t.Context()
	content, err := contents.Pack(resources)
	r.check(err)
	r.check(client.IgnoreAlreadyExists(r.kube.Create(ctx, content)))
	if options.DefaultNamespace == "" && options.TargetNamespace == "" {
		options.DefaultNamespace = r.target
	}
	id, err := contents.DeploymentID(content.Name, options)
	r.check(err)
	made := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: r.member, Labels: map[string]string{fleet.LabelBundleName: name, fleet.LabelBundleNamespace: "clusters"},
	}}
	err = client.IgnoreNotFound(r.kube.Get(ctx, client.ObjectKeyFromObject(made), made))
	r.check(err)
	made.Spec.DeploymentID, made.Spec.StagedDeploymentID, made.Spec.Options = id, id, options
	change(&made.Spec)
	if made.ResourceVersion == "" {
		r.create(made)
		return made
	}
	if err = r.kube.Update(ctx, made); apierrors.IsConflict(err) { // its status was written meanwhile
		return r.placeWith(name, change, options, resources...)
	}
	r.check(err)
	return made
}

// change edits an object until the edit is not in conflict.
func (r *rig) change(o client.Object, edit func()) {
	r.t.Helper()
	r.eventually("changing "+o.GetName(), func() error {
		if err := r.kube.Get(r.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		edit()
		return r.kube.Update(r.t.Context(), o)
	})
}

// deploy places and waits until that is ready.
func (r *rig) deploy(name string, options fleet.BundleDeploymentOptions, resources ...fleet.BundleResource) *fleet.BundleDeployment {
	r.t.Helper()
	r.place(name, options, resources...)
	return r.until(name, fleet.StateReady)
}

func (r *rig) get(name string) *fleet.BundleDeployment {
	r.t.Helper()
	found := &fleet.BundleDeployment{}
	r.check(r.kube.Get(r.t.Context(), client.ObjectKey{Namespace: r.member, Name: name}, found))
	return found
}

// until waits for a state of a deployment and returns it.
func (r *rig) until(name string, state fleet.BundleState, parts ...string) *fleet.BundleDeployment {
	r.t.Helper()
	var found *fleet.BundleDeployment
	r.eventually(fmt.Sprintf("%s is %s", name, state), func() error {
		found = r.get(name)
		if got := contents.StateOf(found); got != state {
			return fmt.Errorf("it is %s: %+v", got, found.Status)
		}
		for _, part := range parts {
			if message := readyMessage(found); !strings.Contains(message, part) {
				return fmt.Errorf("the message %q does not say %q", message, part)
			}
		}
		return nil
	})
	return found
}

// readyMessage is the message of the condition Ready.
func readyMessage(deployment *fleet.BundleDeployment) string {
	if ready := kube.FindCondition(deployment.Status.Conditions, fleet.ConditionReady); ready != nil {
		return ready.Message
	}
	return ""
}

// configMap is one in the target namespace.
func (r *rig) configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.target}}
}

// renewReport makes the report anew, with another UID.
func (r *rig) renewReport() {
	r.t.Helper()
	r.check(r.kube.Delete(r.t.Context(), r.report))
	r.report.ResourceVersion, r.report.UID = "", ""
	r.create(r.report)
}

// data is the key of a ConfigMap in the target namespace.
func (r *rig) data(name string) (string, error) {
	found := &corev1.ConfigMap{}
	err := r.kube.Get(context.Background(), client.ObjectKey{Namespace: r.target, Name: name}, found)
	return found.Data["key"], err
}
