package crash

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testgit"
	"github.com/muster-fleet/muster/internal/testkube"
)

// credentialLife is longer than all points take.
const credentialLife = 24 * time.Hour

// rig is a hub and a member cluster, each a control plane of its own, and the wire between them and
// the programs. All scenarios run on it, one after the other, under names of their own.
type rig struct {
	wire *wire
	// hub and member are the control planes as their administrators reach them.
	hub, member testkube.Cluster
	// hubFront is the hub as agents reach it, otherFront another address of it, memberKubeconfig the
	// member as they reach it.
	hubFront         testkube.Cluster
	otherFront       testkube.Cluster
	memberKubeconfig string
	// source is a repository at an address, with a branch for each run that follows it.
	source        *testgit.Repository
	sourceAddress string
	sourceCA      []byte
	// spare is a cluster for a restored hub; nil until a run needs it. whole is the test of the rig.
	spare *spare
	whole testing.TB
	// kinds are what each of the two serves.
	kinds [2][]schema.GroupVersionKind

	mu       sync.Mutex
	programs map[string][]*process
	runs     int
}

// process is a program that runs.
type process struct {
	*testkube.Program
	// ending: it was asked to end, so that it is not started again.
	ending bool
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{whole: t, wire: &wire{watches: map[string]map[*http.Request]context.CancelFunc{}}, programs: map[string][]*process{}}
	r.wire.restart = r.restart
	r.hub, r.member = testkube.Start(t, "hub"), testkube.Start(t, "member")
	r.hub.InstallHub(t)
	r.member.ServeFleet(t)
	for _, program := range []string{"muster-agent", "muster-deployer"} {
		testkube.Build(t, program)
	}
	r.member.Account(t, "agent", "cluster-admin")
	r.hubFront, r.otherFront = r.wire.front(t, r.hub, atHub), r.wire.front(t, r.hub, atHub)
	r.memberKubeconfig = r.kubeconfig(t, r.wire.front(t, r.member, atMember), bearer(t, r.member.Client(t), metav1.NamespaceDefault, "agent"))
	r.source = testgit.New(t, "web.git")
	_, r.sourceAddress, r.sourceCA = r.source.Web("", "")
	reach := r.wire.front(t, r.hub, func(*http.Request) string { return hub })
	r.run(t, hub, "muster-hub", nil, "--kubeconfig",
		r.kubeconfig(t, reach, bearer(t, r.hub.Client(t), naming.SystemNamespace, naming.HubServiceAccount)),
		"--namespace", naming.SystemNamespace, "--leader-elect=false", "--metrics-bind-address", "0", "--health-probe-bind-address", "0")
	testkube.Eventually(t, "the hub works", func() error {
		return r.hub.Client(t).Get(context.Background(), client.ObjectKey{Name: naming.MemberSystemNamespace}, &corev1.Namespace{})
	})
	return r
}

// atHub distinguishes the agent's calls from the calls of its deployer, which has the same name
// there. Only the deployer reads the objects to deploy.
func atHub(r *http.Request) string {
	metadata := strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata")
	for _, kind := range []string{"/bundledeployments", "/works", "/contents", "/secrets"} {
		if !metadata && strings.Contains(r.URL.Path, kind) {
			return deployer
		}
	}
	return agent
}

func atMember(r *http.Request) string {
	if strings.HasPrefix(r.UserAgent(), "muster-deployer/") {
		return deployer
	}
	return agent
}

func (r *rig) kubeconfig(t *testing.T, cluster testkube.Cluster, bearer string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, cluster.Kubeconfig(t, bearer), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// bearer is a token of an account.
func bearer(t *testing.T, on client.Client, namespace, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	token, err := kube.RequestToken(context.Background(), on.SubResource("token"), account, credentialLife)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// run starts a program for as long as the test lasts.
func (r *rig) run(t *testing.T, name, program string, env []string, args ...string) *process {
	t.Helper()
	running := &process{Program: testkube.RunWith(t, program, env, args...), ending: name == restore} // its user repeats it
	r.mu.Lock()
	defer r.mu.Unlock()
	r.programs[name] = append(r.programs[name], running)
	return running
}

// restart kills a program and starts it again; a deployer is started by its agent. Of agents
// there are two while one takes over from the other, which cannot be told apart by their
// calls: both are killed.
func (r *rig) restart(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if name == deployer {
		for _, p := range r.programs[agent] {
			for _, child := range p.Children() {
				_ = child.Kill() // it may have ended by itself
			}
		}
		return
	}
	for _, p := range r.programs[name] {
		if p.Kill(); !p.ending {
			p.Start()
		}
	}
}

// end asks a program to end, as a node does.
func (r *rig) end(p *process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.ending = true; !p.Ended() {
		p.Signal(syscall.SIGTERM)
	}
}

// run is one run of a scenario: its own workspace, member and names, which all have its ID.
type run struct {
	client.Client
	*rig
	t *testing.T
	// on is the client of the member cluster.
	on client.Client
	id string
	// at is the hub of the run, hubFront the way of its agents to it.
	at, hubFront testkube.Cluster
	// lost is set once the hub is lost.
	lost loss
	// known are the objects that were there before.
	known known
	// node runs the Pods of the run's agent; nil if the rig itself starts the agent.
	node *node
}

// begin gives a run its names and its workspace.
func (r *rig) begin(t *testing.T) *run {
	t.Helper()
	r.runs++
	for _, name := range []string{agent, gitops, restore, restored} {
		r.programs[name] = nil // the programs of earlier runs have ended with them
	}
	in := &run{rig: r, t: t, Client: r.hub.Client(t), on: r.member.Client(t), id: fmt.Sprintf("crash-%04d", r.runs),
		at: r.hub, hubFront: r.hubFront}
	in.configure(testkube.HubSettings)
	in.known = in.rememberObjects()
	in.create(in.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in.id}})
	in.create(in.on, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in.agentNamespace()}})
	return in
}

func (in *run) agentNamespace() string { return "agent-" + in.id }

func (in *run) check(err error) {
	in.t.Helper()
	if err != nil {
		in.t.Fatal(err)
	}
}

func (in *run) create(on client.Client, o client.Object) {
	in.t.Helper()
	in.check(on.Create(context.Background(), o))
}

func (in *run) get(o client.Object, namespace, name string) error {
	return in.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, o)
}

func (in *run) eventually(what string, check func() error) {
	in.t.Helper()
	testkube.Eventually(in.t, what, func() error {
		in.runPods()
		return check()
	})
}

// change edits an object of the hub until the edit is not in conflict.
func (in *run) change(o client.Object, edit func()) {
	in.t.Helper()
	in.eventually("changing "+o.GetName(), func() error {
		if err := in.Get(context.Background(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		edit()
		return in.Update(context.Background(), o)
	})
}

// startAgent starts muster-agent as it runs in a pod, but for the kubeconfig.
func (in *run) startAgent(args ...string) {
	in.t.Helper()
	in.run(in.t, agent, "muster-agent", nil, append([]string{
		"--kubeconfig", in.memberKubeconfig, "--namespace", in.agentNamespace(),
		"--health-probe-bind-address", "0", "--metrics-bind-address", "0",
	}, args...)...)
}

// startMemberAgent starts an agent for a MemberCluster with the token of its identity.
func (in *run) startMemberAgent() {
	in.t.Helper()
	const secret = "hub-kubeconfig-secret"
	in.create(in.on, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: in.agentNamespace(), Name: secret}, StringData: map[string]string{
		"token": bearer(in.t, in.Client, naming.MemberSystemNamespace, in.id),
	}})
	in.startAgent("--hub-server-url", in.hubFront.Config.Host, "--member-cluster-name", in.id,
		"--hub-certificate-authority", base64.StdEncoding.EncodeToString(in.hubFront.Config.CAData),
		"--hub-token-secret", in.agentNamespace()+"/"+secret)
}

// own reports whether a call may belong to this run. Such a call names no other run, and no object
// from before the run.
func (in *run) own(text string) bool {
	for _, id := range runID.FindAllString(text, -1) {
		if id != in.id {
			return false
		}
	}
	return !slices.ContainsFunc(in.known.contents, func(name string) bool { return strings.Contains(text, name) })
}
