package hub_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/backup"
	"github.com/muster-fleet/muster/internal/fleet/decision"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/server"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// besides is the agent of a MemberCluster on the cluster of another agent.
type besides struct {
	*registered
	options agent.Options
	running *agent.Agent
	stop    func()
}

// asMemberCluster adds the agent of a MemberCluster, which delivers, to the cluster of e. Its
// membership can be another one.
func (e *elsewhere) asMemberCluster(prefix string, change ...func(*agent.Membership)) *besides {
	e.t.Helper()
	r := e.register(prefix)
	r.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	b := &besides{registered: r}
	namespace := e.on.namespace("member-agent-")
	b.options = agent.Options{
		Member: e.on.cluster.Config, Namespace: namespace, Hostname: "pod-1", Log: logr.Discard(),
		Membership: &agent.Membership{Name: r.name, SecretNamespace: namespace, SecretName: "hub-kubeconfig-secret"},
	}
	delivers(e.t, e.on.cluster)(&b.options)
	b.given(e.fixture, e.on)
	for _, set := range change {
		set(b.options.Membership)
	}
	b.start()
	return b
}

// given is what the administrator of the member does: set the address of a hub, and its token.
func (b *besides) given(hub, on fixture) {
	b.t.Helper()
	b.registered.fixture = hub
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.options.Namespace, Name: "hub-kubeconfig-secret"},
		StringData: map[string]string{"token": b.bearer(b.name)}}
	b.check(client.IgnoreNotFound(on.Delete(context.Background(), &corev1.Secret{ObjectMeta: *secret.ObjectMeta.DeepCopy()})))
	b.check(on.Create(context.Background(), secret))
	b.options.Membership.Server, b.options.Membership.CA = hub.cluster.Config.Host, string(hub.cluster.Config.CAData)
}

func (b *besides) start() {
	b.t.Helper()
	b.run()
	b.eventually(b.name+" has joined", func() error {
		if state, reason, joined := b.running.Status(); !joined {
			return fmt.Errorf("%s: %s", state, reason)
		}
		return nil
	})
}

// run starts the agent, whether its hub lets it join or not.
func (b *besides) run() (stop func()) {
	b.t.Helper()
	running, err := agent.New(b.options)
	b.check(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		running.Run(ctx)
	}()
	b.running, b.stop = running, func() { cancel(); <-done }
	b.t.Cleanup(b.stop)
	return b.stop
}

// deletions counts what is deleted in some namespaces of a cluster until the test ends.
func (f fixture) deletions(namespaces ...string) (deleted func() []string) {
	f.t.Helper()
	typed, err := kubernetes.NewForConfig(f.cluster.Config)
	f.check(err)
	events := make(chan string, 1000)
	for _, namespace := range namespaces {
		watching, err := typed.CoreV1().ConfigMaps(namespace).Watch(f.t.Context(), metav1.ListOptions{})
		f.check(err)
		go func() {
			for event := range watching.ResultChan() {
				if o, ok := event.Object.(client.Object); ok && event.Type == watch.Deleted {
					events <- o.GetNamespace() + "/" + o.GetName()
				}
			}
		}()
	}
	return func() (all []string) {
		for len(events) > 0 {
			all = append(all, <-events)
		}
		return all
	}
}

// pruned waits until both members show deliveries that the hub does not know, each with a text, or
// none if the text is empty.
func (f fixture) pruned(e *elsewhere, m *besides, ofCluster, ofMember string) {
	f.t.Helper()
	shows := func(o client.Object, c *metav1.Condition, text string) error {
		why := view.Because(o)
		switch {
		case text == "" && c == nil && !strings.Contains(why, "restored hub"):
			return nil
		case text != "" && c != nil && c.Reason == reasons.HubRestored && strings.Contains(c.Message, text) &&
			strings.Contains(c.Message, "create its Bundle, placement or object on the hub again") &&
			strings.Contains(why, "the restored hub does not know"):
			return nil
		}
		if c == nil {
			c = &metav1.Condition{Reason: "nothing"}
		}
		return fmt.Errorf("%s shows %s: %s, because %s", o.GetName(), c.Reason, c.Message, why)
	}
	testkube.Within(f.t, 5*time.Minute, "the members show what the hub does not know", func() error {
		cluster, member := &fleet.Cluster{}, &clusterv1beta1.MemberCluster{}
		if err := errors.Join(f.get(cluster, e.workspace, e.name), f.get(member, "", m.name)); err != nil {
			return err
		}
		var ofFleet *metav1.Condition
		if c := kube.FindCondition(cluster.Status.Conditions, clusterv1beta1.ConditionPruned); c != nil {
			ofFleet = &metav1.Condition{Reason: c.Reason, Message: c.Message}
		}
		return errors.Join(shows(cluster, ofFleet, ofCluster),
			shows(member, meta.FindStatusCondition(member.Status.Conditions, clusterv1beta1.ConditionPruned), ofMember))
	})
}

// TestAHubIsRestoredFromABackupAndNoMemberLosesAnything loses a hub with its cluster, and restores
// it on an empty one. The new cluster signs other tokens and gives other UIDs to all objects. What
// the placements select is not there at first. It takes minutes, because the agents wait that long
// for the restored hub before they report what it does not know.
func TestAHubIsRestoredFromABackupAndNoMemberLosesAnything(t *testing.T) {
	f := newRestorable(t, "{}")
	ctx := context.Background()
	e := f.elsewhere("returns")
	m := e.asMemberCluster("returns")
	e.release()
	shop, later := e.placed(), e.placedOn(m)
	e.annotate("Delete") // the agent leaves no fleet when its hub is lost
	f.eventually("the agent may know the leave policy", func() error {
		var report clusterv1beta1.InternalMemberCluster
		if err := f.get(&report, naming.MemberNamespace(e.workspace, e.name), e.name); err != nil {
			return err
		}
		if report.Spec.LeavePolicy != "Delete" {
			return fmt.Errorf("it is %q", report.Spec.LeavePolicy)
		}
		return nil
	})
	before := e.footprint(shop, later)
	deleted := e.on.deletions(e.target, shop, later)

	settings, front := f.configured(), f.newFront(nil)
	f.moveTo(settings, front.url, front.ca, "strict")
	f.eventually("both agents use the address that is lost later", func() error { return e.at(front.url, m) })
	key, err := age.GenerateX25519Identity()
	f.check(err)
	var file bytes.Buffer
	_, err = backup.Take(ctx, f.cluster.Config, backup.Options{Recipients: []age.Recipient{key.Recipient()}}, &file)
	f.check(err)
	e.bundle("later", "defaultNamespace: "+e.target+strings.ReplaceAll(configMap, "WORKSPACE", "later")+everywhere)
	e.untilBundle("later", fleet.ConditionReady, corev1.ConditionTrue)
	afterBackup := e.uidOf("later")
	f.pruned(e, m, "", "")
	front.close()
	f.hub.Kill()
	t.Cleanup(f.hub.Start)

	lost := time.Now()
	target := turnApart(t, "restored")
	target.InstallHub(t)
	began := time.Now()
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file.Bytes())), nil }
	restored, err := backup.Restore(ctx, target.Config, open, backup.RestoreOptions{Identities: []age.Identity{key}})
	if err != nil {
		t.Fatalf("%v: %v", err, restored.Failed)
	}
	t.Logf("the backup has %d bytes; %d objects were restored in %s", file.Len(), restored.Created, time.Since(began))
	hub := newProcess(t, target, "", "--leader-elect=false")
	hub.workspace = e.workspace
	e.comesBackTo(hub)
	m.stop()
	m.given(hub, e.on)
	m.start()
	hub.untilReady(e.name, "Ready")
	m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	t.Logf("both members are back %s after the loss, of which the new control plane took a part", time.Since(lost).Round(time.Second))

	hub.untilBundle("app", fleet.ConditionReady, corev1.ConditionTrue)
	hub.resumeWithout("crp-" + m.name)
	hub.resume("crp-"+e.workspace, shop)
	hub.pruned(e, m, "release "+e.target+"/later of Bundle "+e.workspace+"/later", "ConfigMap "+later+"/settings of Work ")
	t.Logf("the members show what the hub does not know %s after the loss", time.Since(lost).Round(time.Second))
	back := *e
	back.fixture = hub
	back.bundle("later", "defaultNamespace: "+e.target+strings.ReplaceAll(configMap, "WORKSPACE", "later")+everywhere)
	hub.untilBundle("later", fleet.ConditionReady, corev1.ConditionTrue)
	hub.resume("crp-"+m.name, later)
	hub.pruned(e, m, "know Secret "+shop+"/password of Work ", "know Secret "+later+"/password of Work ")
	for _, namespace := range []string{shop, later} { // a user removes the rest on the member
		e.check(e.on.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "password"}}))
		e.check(e.on.Delete(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}))
	}
	hub.pruned(e, m, "", "")
	if now := e.uidOf("later"); now != afterBackup {
		t.Errorf("the object of the Bundle from after the backup is %q, and was %q", now, afterBackup)
	}
	if after := e.footprint(shop, later); after != before {
		t.Errorf("the cluster has\n%s\nand had\n%s", after, before)
	}
	if says := e.agent.logged.String(); !strings.Contains(says, "The hub is the successor of the previous hub: the deliveries stay") ||
		strings.Contains(says, "Leaving the previous membership") {
		t.Error("the agent has left the fleet of the lost hub")
	}
	if gone := deleted(); len(gone) > 0 {
		t.Errorf("deleted on the member: %v", gone)
	}
	var clusters fleet.ClusterList
	hub.check(hub.List(ctx, &clusters, client.InNamespace(e.workspace)))
	if len(clusters.Items) != 1 || clusters.Items[0].Annotations[backup.AnnotationRestored] != restored.ID {
		t.Errorf("the workspace has %d Clusters", len(clusters.Items))
	}
}

// resume restores the objects that a placement selects, and ends its pause.
func (f fixture) resume(name, shop string) {
	f.t.Helper()
	ctx := context.Background()
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "settings"}, Data: map[string]string{"a": "1"}},
	} {
		f.check(f.Create(ctx, o))
	}
	crp := &placement.ClusterResourcePlacement{}
	f.check(f.get(crp, "", name))
	f.check(decision.Resume(ctx, f.Client, crp))
	f.eventually("the placement is available again", func() error {
		if err := f.get(crp, "", name); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(crp.Status.Conditions, "ClusterResourcePlacementAvailable") {
			return fmt.Errorf("its status is %s: %+v", crp.Status.Message, crp.Status.Conditions)
		}
		return nil
	})
}

// resumeWithout ends the pause of a placement although the objects that it selects are not there.
func (f fixture) resumeWithout(name string) {
	f.t.Helper()
	crp := &placement.ClusterResourcePlacement{}
	f.check(f.get(crp, "", name))
	f.check(decision.Resume(context.Background(), f.Client, crp))
	f.eventually("the member has applied a Work without objects", func() error {
		for _, work := range f.works(crp) {
			if len(work.Spec.Workload.Manifests) == 0 && meta.IsStatusConditionTrue(work.Status.Conditions, "Applied") {
				return nil
			}
		}
		return fmt.Errorf("the Works are %+v", f.works(crp))
	})
}

// footprint has the UIDs of what is delivered.
func (e *elsewhere) footprint(shop, later string) string {
	e.t.Helper()
	var text strings.Builder
	for _, at := range [][2]string{{e.target, e.workspace}, {shop, "settings"}, {later, "settings"}} {
		var found corev1.ConfigMap
		e.check(e.on.get(&found, at[0], at[1]))
		fmt.Fprintf(&text, "%s/%s %s\n", at[0], at[1], found.UID)
	}
	return text.String()
}

// at is nil once both agents report an address.
func (e *elsewhere) at(url string, m *besides) error {
	for namespace, name := range map[string]string{naming.MemberNamespace(e.workspace, e.name): e.name, m.namespaceName(): m.name} {
		var report clusterv1beta1.InternalMemberCluster
		e.check(e.get(&report, namespace, name))
		if used := report.Status.Hub; used == nil || used.APIServerURL != url {
			return fmt.Errorf("%s uses %+v", name, used)
		}
	}
	return nil
}

// comesBackTo gives the agent of a Cluster a token of the restored workspace, which needs no
// approval, because the agent has the key of the Cluster.
func (e *elsewhere) comesBackTo(hub fixture) {
	e.t.Helper()
	hub.eventually("the restored token has its Secret", func() error { return hub.get(&corev1.Secret{}, e.workspace, "new-token") })
	data := map[string]string{"apiServerURL": hub.cluster.Config.Host, "apiServerCA": string(hub.cluster.Config.CAData)}
	values := hub.values("new-token")
	for _, key := range []string{"token", "tokenName", "clusterNamespace", "systemRegistrationNamespace"} {
		data[key] = values[key]
	}
	e.check(e.on.Create(context.Background(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: naming.AgentBootstrapSecret, Namespace: e.agent.agentNamespace}, StringData: data,
	}))
}

// TestTheJobForBackupsReadsWhatItsChartAllows runs the program with the rights of the chart, and
// without a key that opens its files.
func TestTheJobForBackupsReadsWhatItsChartAllows(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.cluster.InstallTemplate(t, "fleet/templates/backup-rbac.yaml")
	const account = "system:serviceaccount:" + naming.SystemNamespace + ":fleet-backup"
	f.token("new-token", "")
	f.check(f.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "git"}}))
	key, err := age.GenerateX25519Identity()
	f.check(err)
	directory, kubeconfig := t.TempDir(), f.kubeconfigOf(account)
	run := func(more ...string) (string, error) {
		command, out := server.NewCommand(), &bytes.Buffer{}
		command.SetOut(out)
		command.SetErr(io.Discard)
		command.SetArgs(append([]string{"backup", "--kubeconfig", kubeconfig, "--directory", directory, "--keep", "1",
			"--recipient", key.Recipient().String()}, more...))
		err := command.ExecuteContext(ctx)
		return out.String(), err
	}
	kindsIn := func() map[string]int {
		files, err := filepath.Glob(filepath.Join(directory, "*"))
		f.check(err)
		if len(files) != 1 {
			t.Fatalf("the directory has %v", files)
		}
		file, err := os.Open(files[0])
		f.check(err)
		defer file.Close()
		kinds := map[string]int{}
		_, err = backup.Read(file, []age.Identity{key}, func(_ backup.Header, o *unstructured.Unstructured) error {
			if o.GetNamespace() == f.workspace {
				kinds[o.GetKind()]++
			}
			return nil
		})
		f.check(err)
		return kinds
	}
	if out, err := run(); err != nil || !strings.Contains(out, "bytes as a file, written in") {
		t.Fatalf("a backup: %v\n%s", err, out)
	}
	if kinds := kindsIn(); kinds["ClusterRegistrationToken"] != 1 || kinds["Secret"] != 0 {
		t.Errorf("a backup without Secrets has %v", kinds)
	}
	time.Sleep(time.Second) // another file has another time
	refused := "you may not list secrets in namespace " + f.workspace
	if _, err := run("--secrets-from", f.workspace); err == nil || !strings.Contains(err.Error(), refused) {
		t.Errorf("Secrets without the right: %v", err)
	}
	if _, err := run("--secrets-from", "no-such"); err == nil || !strings.Contains(err.Error(), "has no namespace no-such") {
		t.Errorf("Secrets of a missing namespace: %v", err)
	}
	meta := metav1.ObjectMeta{Namespace: f.workspace, Name: "fleet-backup"}
	f.check(f.Create(ctx, &rbacv1.Role{ObjectMeta: meta,
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}}}}))
	f.check(f.Create(ctx, kube.RoleBinding(meta, "Role", "fleet-backup", kube.AccountSubject(naming.SystemNamespace, "fleet-backup"))))
	f.eventually("the right is in effect", func() error { _, err := run("--secrets-from", f.workspace); return err })
	if kinds := kindsIn(); kinds["Secret"] != 1 {
		t.Errorf("a backup with Secrets has %v", kinds)
	}

	config := rest.CopyConfig(f.cluster.Config)
	config.Impersonate.UserName = account
	as, err := client.New(config, client.Options{Scheme: f.Scheme(), Mapper: f.RESTMapper()})
	f.check(err)
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "any"}}
	for what, err := range map[string]error{
		"it reads a Secret":           as.Get(ctx, client.ObjectKey{Namespace: f.workspace, Name: "git"}, &corev1.Secret{}),
		"it lists Secrets of the hub": as.List(ctx, &corev1.SecretList{}, client.InNamespace(naming.SystemNamespace)),
		"it lists all Secrets":        as.List(ctx, &corev1.SecretList{}),
		"it creates a Cluster":        as.Create(ctx, cluster),
		"it deletes a Cluster":        as.Delete(ctx, cluster),
		"it requests a token":         issue(as, naming.SystemNamespace, naming.HubServiceAccount),
		"it lists BundleDeployments":  as.List(ctx, &fleet.BundleDeploymentList{}),
		"it lists Works":              as.List(ctx, &placement.WorkList{}),
	} {
		f.refused(what, err)
	}
}
