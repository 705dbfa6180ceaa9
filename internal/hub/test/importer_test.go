package hub_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// importing is a fixture with a second control plane, which looks like a cluster of
// its own in each test.
type importing struct {
	fixture
	down testkube.Cluster
	// remote is the second control plane seen by its administrator.
	remote client.Client
	token  string
	// agentNamespace keeps the agents of different tests apart.
	agentNamespace string
	clusterID      string
	// visits counts the requests that the hub sent there.
	visits *atomic.Int64
}

func newImporting(t *testing.T, pass func(*http.Request)) importing {
	t.Helper()
	return newFixture(t).importing(pass)
}

func (f fixture) importing(pass func(*http.Request)) importing {
	f.t.Helper()
	t := f.t
	real := testkube.Start(t, "downstream")
	i := importing{
		fixture: f, remote: real.Client(t), token: real.Account(t, "importer", "cluster-admin"), clusterID: string(uuid.NewUUID()),
		visits: &atomic.Int64{},
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "agent-"}}
	f.check(i.remote.Create(context.Background(), namespace))
	i.agentNamespace = namespace.Name
	i.down = real.Disguise(t, i.clusterID, func(r *http.Request) {
		i.visits.Add(1)
		if pass != nil {
			pass(r)
		}
	})
	return i
}

// secret returns a kubeconfig Secret in the form that seed 001 describes for the local cluster:
// with the hub's address beside the kubeconfig.
func (i importing) secret(name string, kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: i.workspace, Name: name}, Data: map[string][]byte{
		"value": kubeconfig, "apiServerURL": []byte(i.cluster.Config.Host), "apiServerCA": i.cluster.Config.CAData,
	}}
}

// cluster creates a Cluster with that kubeconfig.
func (i importing) record(name, secret string, change ...func(*fleet.Cluster)) *fleet.Cluster {
	i.t.Helper()
	cluster := &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: i.workspace, Name: name, Labels: map[string]string{"demo": "true", "env": "dev"}},
		Spec:       fleet.ClusterSpec{KubeConfigSecret: secret, AgentNamespace: i.agentNamespace},
	}
	for _, c := range change {
		c(cluster)
	}
	i.check(i.Create(context.Background(), cluster))
	return cluster
}

// begin creates the Secret and the Cluster my-cluster.
func (i importing) begin(change ...func(*fleet.Cluster)) *fleet.Cluster {
	i.t.Helper()
	i.check(i.Create(context.Background(), i.secret("my-cluster-kubeconfig", i.down.Kubeconfig(i.t, i.token))))
	return i.record("my-cluster", "my-cluster-kubeconfig", change...)
}

// imported waits until the condition Imported of a Cluster is as wanted, and returns it.
func (i importing) imported(name, reason string, also ...func(*fleet.Cluster) error) *fleet.Cluster {
	i.t.Helper()
	var cluster fleet.Cluster
	i.eventually("the import of "+name+" is "+reason, func() error {
		if err := i.get(&cluster, i.workspace, name); err != nil {
			return err
		}
		imported := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionImported)
		if imported == nil || imported.Reason != reason {
			return fmt.Errorf("it is %+v", imported)
		}
		for _, check := range also {
			if err := check(&cluster); err != nil {
				return err
			}
		}
		return nil
	})
	return &cluster
}

// runAgent plays the kubelet of the second cluster: it runs the agent where its Deployment is.
func (i importing) runAgent() (stop func()) {
	i.t.Helper()
	running, err := agent.New(agent.Options{
		Member: testkube.Start(i.t, "downstream").Config, Namespace: i.agentNamespace, Hostname: "pod-1", Log: logr.Discard(),
	})
	i.check(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		running.Run(ctx)
	}()
	stop = func() { cancel(); <-done }
	i.t.Cleanup(stop)
	return stop
}

func (i importing) remoteGet(o client.Object, name string) error {
	return i.remote.Get(context.Background(), types.NamespacedName{Namespace: i.agentNamespace, Name: name}, o)
}

func TestTheSeedsYAMLMakesAMemberAndTheHubNeverDialsInAgain(t *testing.T) {
	i := newAlone(t, "").importing(nil)
	created := i.begin()
	i.imported("my-cluster", "Imported")
	var deployment appsv1.Deployment
	i.check(i.remoteGet(&deployment, "fleet-agent"))
	if account := deployment.Spec.Template.Spec.ServiceAccountName; account != "fleet-agent" {
		t.Errorf("the agent runs as %q", account)
	}
	var bootstrap corev1.Secret
	i.check(i.remoteGet(&bootstrap, naming.AgentBootstrapSecret))
	if got := string(bootstrap.Data["apiServerURL"]); got != i.cluster.Config.Host {
		t.Errorf("the agent is sent to %q, the Secret says %q", got, i.cluster.Config.Host)
	}
	var token fleet.ClusterRegistrationToken
	i.check(i.get(&token, i.workspace, "import-token-my-cluster"))
	if owner := metav1.GetControllerOf(&token); owner == nil || owner.UID != created.UID || token.Spec.TTL.Duration != 12*time.Hour {
		t.Errorf("the import token is %+v", token)
	}
	stop := i.runAgent()
	cluster := i.untilReady("my-cluster", "Ready")
	if cluster.Spec.ClientID != "" || cluster.Labels["env"] != "dev" {
		t.Errorf("the hub wrote into what is the user's: %+v %v", cluster.Spec, cluster.Labels)
	}
	if len(i.clusters()) != 1 {
		t.Errorf("there are %d Clusters", len(i.clusters()))
	}
	i.eventually("the bootstrap Secret is gone", func() error {
		if err := i.remoteGet(&bootstrap, naming.AgentBootstrapSecret); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
	status := cluster.Status
	if status.AgentDeployedGeneration == nil || status.AgentConfigChanged || !status.AgentMigrated || status.Import.ClusterID != i.clusterID ||
		status.Import.APIServerURL != i.cluster.Config.Host || status.GarbageCollectionInterval.Duration != 15*time.Minute {
		t.Errorf("the status is %+v", status)
	}

	visits := i.visits.Load()
	if visits == 0 {
		t.Fatal("the import was not seen")
	}
	stop()
	i.restartHub()
	restarted := time.Now()
	i.runAgent()
	i.eventually("the agent that was restarted beats", func() error {
		lease := leaseOf(cluster.Status.Namespace)
		if err := i.get(lease, lease.Namespace, lease.Name); err != nil {
			return err
		}
		if !lease.Spec.RenewTime.After(restarted) {
			return fmt.Errorf("its last beat was at %s", lease.Spec.RenewTime)
		}
		return nil
	})
	i.untilReady("my-cluster", "Ready")
	i.record("later", "missing")
	i.imported("later", "SecretMissing") // so the restarted hub has reconciled all Clusters that were there before
	var requests fleet.ClusterRegistrationList
	i.check(i.List(context.Background(), &requests, client.InNamespace(i.workspace)))
	if len(requests.Items) != 1 {
		t.Errorf("after its restart the agent has asked again: there are %d requests", len(requests.Items))
	}
	if now := i.visits.Load(); now != visits {
		t.Errorf("the hub sent %d requests to a cluster that was imported already", now-visits)
	}
	for line := range strings.Lines(i.hub.Log()) {
		if strings.Contains(line, i.token) {
			t.Error("the credential of the kubeconfig is in the hub's log")
		}
		if strings.Contains(line, "ERROR") && strings.Contains(line, i.workspace) && !strings.Contains(line, context.Canceled.Error()) {
			t.Errorf("the hub logged an error: %s", line)
		}
	}
}

func TestAClusterThatIsMadeAnewGetsItsAgentBack(t *testing.T) {
	i := newImporting(t, nil)
	first := i.begin()
	i.imported("my-cluster", "Imported")
	i.runAgent()
	i.untilReady("my-cluster", "Ready")
	i.check(i.Delete(context.Background(), first))
	i.eventually("the Cluster is gone", func() error {
		if err := i.get(first, i.workspace, first.Name); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
	i.record("my-cluster", "my-cluster-kubeconfig")
	i.untilReady("my-cluster", "Ready")
}

func TestAnAgentIsInstalledAgainWhenItShould(t *testing.T) {
	i := newImporting(t, nil)
	i.begin()
	i.imported("my-cluster", "Imported")
	stop := i.runAgent()
	i.untilReady("my-cluster", "Ready")
	change := func(how func(*fleet.Cluster)) {
		t.Helper()
		var cluster fleet.Cluster
		i.check(i.get(&cluster, i.workspace, "my-cluster"))
		before := cluster.DeepCopy()
		how(&cluster)
		i.check(i.Patch(context.Background(), &cluster, client.MergeFrom(before)))
	}

	change(func(c *fleet.Cluster) { c.Spec.RedeployAgentGeneration = 7 })
	i.imported("my-cluster", "Imported", func(c *fleet.Cluster) error {
		if *c.Status.AgentDeployedGeneration != 7 {
			return fmt.Errorf("generation %d is deployed", *c.Status.AgentDeployedGeneration)
		}
		return nil
	})

	change(func(c *fleet.Cluster) {
		c.Spec.AgentTolerations = []corev1.Toleration{{Key: "edge", Operator: corev1.TolerationOpExists}}
		c.Spec.AgentEnvVars = []corev1.EnvVar{{Name: "A", Value: "b"}}
		c.Spec.AgentSchedulingCustomization = &fleet.AgentSchedulingCustomization{PriorityClass: &fleet.PriorityClassSpec{Value: 7}}
	})
	var deployment appsv1.Deployment
	i.eventually("the Deployment has the toleration", func() error {
		if err := i.remoteGet(&deployment, "fleet-agent"); err != nil {
			return err
		}
		pod := deployment.Spec.Template.Spec
		if len(pod.Tolerations) != 1 || pod.PriorityClassName != "fleet-agent-priority-class" {
			return fmt.Errorf("it has %+v and the priority %q", pod.Tolerations, pod.PriorityClassName)
		}
		return nil
	})
	change(func(c *fleet.Cluster) { c.Spec.AgentTolerations, c.Spec.AgentSchedulingCustomization = nil, nil })
	i.eventually("the toleration is gone again", func() error {
		if err := i.remoteGet(&deployment, "fleet-agent"); err != nil {
			return err
		}
		if pod := deployment.Spec.Template.Spec; len(pod.Tolerations) != 0 || pod.PriorityClassName != "" {
			return fmt.Errorf("it has %+v and the priority %q", pod.Tolerations, pod.PriorityClassName)
		}
		return nil
	})

	old := i
	i.agentNamespace += "-moved"
	stop()
	change(func(c *fleet.Cluster) { c.Spec.AgentNamespace = i.agentNamespace })
	i.eventually("the agent is in the other namespace", func() error { return i.remoteGet(&deployment, "fleet-agent") })
	if err := old.remoteGet(&deployment, "fleet-agent"); !apierrors.IsNotFound(err) {
		t.Errorf("the Deployment in the namespace before: %v", err)
	}
	if err := old.remoteGet(&corev1.Secret{}, naming.AgentSecret); !apierrors.IsNotFound(err) {
		t.Errorf("the credential in the namespace before: %v", err)
	}
	i.runAgent()
	i.eventually("the agent reports from the other namespace", func() error {
		var cluster fleet.Cluster
		if err := i.get(&cluster, i.workspace, "my-cluster"); err != nil {
			return err
		}
		if got := cluster.Status.Agent.Namespace; got != i.agentNamespace {
			return fmt.Errorf("it reports from %q", got)
		}
		return nil
	})
}

func TestALostCredentialIsHealed(t *testing.T) {
	i := newImporting(t, nil)
	i.begin()
	i.imported("my-cluster", "Imported")
	i.runAgent()
	cluster := i.untilReady("my-cluster", "Ready")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Status.Namespace, Name: naming.MemberServiceAccount}}
	i.check(i.get(account, account.Namespace, account.Name))
	lost := account.UID
	i.check(i.Delete(context.Background(), account))
	i.eventually("the agent has another identity", func() error {
		if err := i.get(account, account.Namespace, account.Name); err != nil {
			return err
		}
		if account.UID == lost {
			return fmt.Errorf("it is still the old one")
		}
		return nil
	})
	i.untilReady("my-cluster", "Ready")
}

func TestANewKubeconfigIsNoticed(t *testing.T) {
	i := newImporting(t, nil)
	i.begin()
	i.imported("my-cluster", "Imported")
	i.runAgent()
	i.untilReady("my-cluster", "Ready")
	// Until its first report, which comes after its first beat, the hub does not know that the agent
	// calls the right address.
	before := i.imported("my-cluster", "Imported", func(c *fleet.Cluster) error {
		if c.Status.APIServerURL == "" {
			return fmt.Errorf("the agent has not reported")
		}
		return nil
	})
	renewed := func(kubeconfig []byte) string {
		t.Helper()
		secret := i.secret("my-cluster-kubeconfig", kubeconfig)
		i.check(i.Update(context.Background(), secret))
		return secret.ResourceVersion
	}
	used := func(version string) func(*fleet.Cluster) error {
		return func(c *fleet.Cluster) error {
			if c.Status.Import.SecretVersion != version {
				return fmt.Errorf("the Secret of %s was used, not that of %s", c.Status.Import.SecretVersion, version)
			}
			return nil
		}
	}
	var deployment appsv1.Deployment
	i.check(i.remoteGet(&deployment, "fleet-agent"))
	after := i.imported("my-cluster", "Imported",
		used(renewed(i.down.Kubeconfig(t, testkube.Start(t, "downstream").Account(t, "importer", "")))))
	if after.Status.Import.ClusterID != i.clusterID || after.Status.Import.SecretHash == before.Status.Import.SecretHash {
		t.Errorf("a new credential for the same cluster led to %+v", after.Status.Import)
	}
	installed := deployment.DeepCopy()
	i.check(i.remoteGet(&deployment, "fleet-agent"))
	if deployment.Generation != installed.Generation {
		t.Errorf("a new credential for the same cluster restarted an agent that is well: %s", cmp.Diff(installed.Spec, deployment.Spec))
	}

	i.check(i.remote.Delete(context.Background(), &deployment))
	another := testkube.Start(t, "downstream").Disguise(t, string(uuid.NewUUID()), nil)
	after = i.imported("my-cluster", "Imported", used(renewed(another.Kubeconfig(t, i.token))))
	if after.Status.Import.ClusterID == i.clusterID {
		t.Error("the cluster that was made anew counts as the one before")
	}
	i.check(i.remoteGet(&deployment, "fleet-agent"))
}

func TestASecretThatIsReplacedWhileImportingIsUsed(t *testing.T) {
	asked, release := make(chan struct{}, 64), make(chan struct{})
	i := newImporting(t, func(r *http.Request) {
		if r.URL.Path == "/version" {
			asked <- struct{}{}
			<-release
		}
	})
	i.begin()
	<-asked
	secret := i.secret("my-cluster-kubeconfig", i.down.Kubeconfig(t, i.token))
	secret.Data["apiServerURL"] = append(secret.Data["apiServerURL"], '/')
	i.check(i.Update(context.Background(), secret))
	close(release)
	cluster := i.imported("my-cluster", "Imported")
	if cluster.Status.Import.SecretVersion != secret.ResourceVersion || cluster.Status.Import.APIServerURL != i.cluster.Config.Host {
		t.Errorf("what was handed over is %+v", cluster.Status.Import)
	}
}

func TestAClusterThatIsDeletedWhileImportingGetsNoAgent(t *testing.T) {
	asked, release := make(chan struct{}, 64), make(chan struct{})
	i := newImporting(t, func(r *http.Request) {
		if r.URL.Path == "/version" {
			asked <- struct{}{}
			<-release
		}
	})
	cluster := i.begin()
	<-asked
	i.check(i.Delete(context.Background(), cluster))
	i.eventually("the Cluster is gone", func() error {
		if err := i.get(cluster, i.workspace, cluster.Name); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
	close(release)
	i.eventually("its token is gone", func() error {
		if err := i.get(&fleet.ClusterRegistrationToken{}, i.workspace, "import-token-my-cluster"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
	if err := i.remoteGet(&appsv1.Deployment{}, "fleet-agent"); !apierrors.IsNotFound(err) {
		t.Errorf("there is an agent: %v", err)
	}
}

func TestAllMissingRightsAreNamedAtOnce(t *testing.T) {
	i := newImporting(t, nil)
	i.token = testkube.Start(t, "downstream").Account(t, "reader", "view")
	i.begin()
	cluster := i.imported("my-cluster", "RightsMissing")
	message := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionImported).Message
	for _, right := range []string{
		"create namespaces", "create deployments.apps in " + i.agentNamespace, "patch secrets in " + i.agentNamespace,
		"create clusterroles.rbac.authorization.k8s.io", "list nodes", "next try at ",
	} {
		if !strings.Contains(message, right) {
			t.Errorf("%q is missing in %q", right, message)
		}
	}
	if given := "get namespaces"; strings.Contains(message, given) {
		t.Errorf("%q is named in %q, and view may do that", given, message)
	}
	if err := i.remoteGet(&corev1.ServiceAccount{}, "fleet-agent"); !apierrors.IsNotFound(err) {
		t.Errorf("something was written before the rights were known to suffice: %v", err)
	}
	i.eventually("the status column says it", func() error { return i.reason("my-cluster", "RightsMissing") })
}

func TestAClusterIsRegisteredOnceAndTheHubIsNotItsOwnMember(t *testing.T) {
	i := newImporting(t, nil)
	first := i.begin()
	i.imported("my-cluster", "Imported")
	second := i.record("twin", "my-cluster-kubeconfig")
	cluster := i.imported("twin", "AlreadyRegistered")
	message := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionImported).Message
	if !strings.Contains(message, "Cluster "+i.workspace+"/my-cluster") {
		t.Errorf("the message does not name the other record: %q", message)
	}
	i.check(i.Delete(context.Background(), first))
	i.imported("twin", "Imported")
	i.check(i.Delete(context.Background(), second))

	byToken := &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: i.workspace, Name: "by-token"}, Spec: fleet.ClusterSpec{ClientID: i.clusterID},
	}
	i.check(i.Create(context.Background(), byToken))
	third := i.record("third", "my-cluster-kubeconfig")
	i.imported("third", "AlreadyRegistered")
	i.check(i.Delete(context.Background(), third))

	i.check(i.Create(context.Background(), i.secret("hub", i.cluster.Kubeconfig(t, i.cluster.Account(t, "importer", "cluster-admin")))))
	i.record("sneaky", "hub")
	i.imported("sneaky", "IsHub")
}

func TestBadInputIsNamed(t *testing.T) {
	i := newImporting(t, nil)
	good := string(i.down.Kubeconfig(t, i.token))
	edit := func(from, to string) []byte {
		t.Helper()
		edited := strings.Replace(good, from, to, 1)
		if edited == good {
			t.Fatalf("%q is not in the kubeconfig", from)
		}
		return []byte(edited)
	}
	for _, c := range []struct {
		name, reason, says string
		secret             func(*corev1.Secret)
		cluster            func(*fleet.Cluster)
	}{
		{
			name: "no-value", reason: "KubeconfigMissing", says: "put one under the key value",
			secret: func(s *corev1.Secret) { delete(s.Data, "value") },
		},
		{
			name: "no-yaml", reason: "InvalidKubeconfig", says: "not a kubeconfig", secret: func(s *corev1.Secret) {
				s.Data["value"] = []byte("a: b: c")
			},
		},
		{
			name: "http", reason: "InsecureEndpoint", says: "over https only", secret: func(s *corev1.Secret) {
				s.Data["value"] = edit("https://", "http://")
			},
		},
		{name: "unknown-ca", reason: "UnknownAuthority", says: "next try at", secret: func(s *corev1.Secret) {
			other := i.down
			other.Config = i.cluster.Config
			s.Data["value"] = []byte(strings.ReplaceAll(string(other.Kubeconfig(t, i.token)), i.cluster.Config.Host, i.down.Config.Host))
		}},
		{
			name: "refused", reason: "Unauthorized", says: "does not accept the credential", secret: func(s *corev1.Secret) {
				s.Data["value"] = i.down.Kubeconfig(t, "nonsense")
			},
		},
		{
			name: "nobody-there", reason: "Unreachable", says: "next try at", secret: func(s *corev1.Secret) {
				s.Data["value"] = edit(i.down.Config.Host, "https://127.0.0.1:1")
			},
		},
		{name: "not-allowed", reason: "SecretNamespaceNotAllowed",
			says:    `kubeConfigSecretNamespace "kube-system" is not an allowed Fleet namespace`,
			cluster: func(c *fleet.Cluster) { c.Spec.KubeConfigSecretNamespace = "kube-system" }},
		{
			name: "no-url", reason: "APIServerURLMissing", says: "missing apiServerURL in fleet config for cluster auto registration",
			secret: func(s *corev1.Secret) { delete(s.Data, "apiServerURL") },
		},
		{
			name: "bad-settings", reason: "InvalidSettings", says: "want https://host", secret: func(s *corev1.Secret) {
				s.Data["apiServerURL"] = []byte("hub")
			},
		},
	} {
		secret := i.secret(c.name, []byte(good))
		if c.secret != nil {
			c.secret(secret)
		}
		i.check(i.Create(context.Background(), secret))
		var change []func(*fleet.Cluster)
		if c.cluster != nil {
			change = append(change, c.cluster)
		}
		i.record(c.name, c.name, change...)
		cluster := i.imported(c.name, c.reason)
		message := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionImported).Message
		if !strings.Contains(message, c.says) {
			t.Errorf("%s: %q does not say %q", c.name, message, c.says)
		}
		i.eventually(c.name+" shows it in the status column", func() error {
			if err := i.get(cluster, i.workspace, c.name); err != nil {
				return err
			}
			ready := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionReady)
			if ready == nil {
				return errors.New("it has no condition Ready yet")
			}
			if diff := cmp.Diff(kube.FindCondition(cluster.Status.Conditions, fleet.ConditionImported).Message, ready.Message); diff != "" {
				return fmt.Errorf("(-Imported +Ready):\n%s", diff)
			}
			return nil
		})
	}

	i.record("early", "late")
	i.imported("early", "SecretMissing")
	i.check(i.Create(context.Background(), i.secret("late", []byte(good))))
	early := i.imported("early", "Imported")
	i.check(i.Delete(context.Background(), early))

	unverified := edit("certificate-authority-data: ", "insecure-skip-tls-verify: true\n    ignored: ")
	i.check(i.Create(context.Background(), i.secret("unverified", unverified)))
	i.record("unverified", "unverified")
	cluster := i.imported("unverified", "Imported")
	if message := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionImported).Message; !strings.Contains(message, "not verified") {
		t.Errorf("nothing is said of a certificate that is not verified: %q", message)
	}
	if strings.Contains(logged.String(), i.token) {
		t.Error("the credential of a kubeconfig is in the hub's log")
	}
}

// stranger puts an agent there that works for a record somewhere else.
func (i importing) stranger(record types.NamespacedName) {
	i.t.Helper()
	labels := map[string]string{"app": "old"}
	elsewhere := testkube.Cluster{Config: &rest.Config{Host: "https://elsewhere.example.com"}}
	i.check(i.remote.Create(context.Background(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: i.agentNamespace, Name: naming.AgentSecret},
		StringData: map[string]string{
			"clusterNamespace": record.Namespace, "clusterName": record.Name, "kubeconfig": string(elsewhere.Kubeconfig(i.t, "x")),
		},
	}))
	i.check(i.remote.Create(context.Background(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: i.agentNamespace, Name: "fleet-agent"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "old", Image: "old"}}},
			},
		},
	}))
}

func TestAnAgentOfAHubThatHasMovedIsReplaced(t *testing.T) {
	i := newImporting(t, nil)
	i.stranger(types.NamespacedName{Namespace: i.workspace, Name: "my-cluster"})
	i.begin()
	i.imported("my-cluster", "Imported")
	i.runAgent()
	i.untilReady("my-cluster", "Ready")
}

// TestAnAgentOfAnotherHubIsNotTakenForOneOfThisHub: the other hub has a Cluster of the same name in
// a workspace of the same name.
func TestAnAgentOfAnotherHubIsNotTakenForOneOfThisHub(t *testing.T) {
	i := newImporting(t, nil)
	namesake := &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: i.workspace, Name: "namesake"}, Spec: fleet.ClusterSpec{ClientID: "namesake"},
	}
	i.check(i.Create(context.Background(), namesake))
	i.untilReady("namesake", "WaitCheckIn")
	i.stranger(types.NamespacedName{Namespace: i.workspace, Name: "namesake"})
	i.begin()
	i.imported("my-cluster", "Imported")
	i.runAgent()
	i.untilReady("my-cluster", "Ready")
}

func TestAnAgentThatIsThereAlready(t *testing.T) {
	i := newImporting(t, nil)
	i.stranger(types.NamespacedName{Namespace: "fleet-default", Name: "somewhere"})
	i.begin()
	i.imported("my-cluster", "Imported")
	if err := i.remoteGet(&corev1.Secret{}, naming.AgentSecret); !apierrors.IsNotFound(err) {
		t.Errorf("the credential for another hub: %v", err)
	}
	var deployment appsv1.Deployment
	i.check(i.remoteGet(&deployment, "fleet-agent"))
	if name := deployment.Spec.Template.Spec.Containers[0].Name; name != "fleet-agent" {
		t.Errorf("the agent is %s", name)
	}
	i.runAgent()
	i.untilReady("my-cluster", "Ready")

	// The same agent seen through another address, as the cluster of another record.
	another := i
	another.down = testkube.Start(t, "downstream").Disguise(t, string(uuid.NewUUID()), nil)
	i.check(i.Create(context.Background(), another.secret("twin", another.down.Kubeconfig(t, i.token))))
	another.record("twin", "twin")
	twin := i.imported("twin", "AlreadyRegistered")
	if message := kube.FindCondition(twin.Status.Conditions, fleet.ConditionImported).Message; !strings.Contains(message,
		i.workspace+"/my-cluster") {
		t.Errorf("the message does not name the other record: %q", message)
	}
}
