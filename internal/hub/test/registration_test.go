package hub_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/naming"
)

func TestNewClusterJoinsWithItsLabels(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "240h")
	m := f.join(values, map[string]any{"clientID": "first", "labels": map[string]string{"env": "dev", "management.cattle.io/x": "y"}})
	cluster := f.untilReady(naming.Cluster("first"), "Ready")
	want := map[string]string{"env": "dev", fleet.LabelCluster: cluster.Name, fleet.LabelCreatedByAgentPod: "pod-1"}
	if diff := cmp.Diff(want, cluster.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if cluster.Status.Agent.LastSeen.IsZero() || cluster.Status.Display.ReadyBundles != "0/0" || cluster.Status.Display.State != "Ready" {
		t.Errorf("status is %+v", cluster.Status)
	}
	f.eventually("an event names the dropped label", func() error {
		return f.event("LabelsDropped", cluster.Name, "management.cattle.io/x")
	})
	f.eventually("the registration token is forgotten", func() error {
		if err := f.get(&corev1.Secret{}, m.agentNamespace, naming.AgentBootstrapSecret); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
	f.eventually("the report is shown", func() error {
		if err := f.get(&cluster, f.workspace, cluster.Name); err != nil {
			return err
		}
		if cluster.Status.Display.ReadyNodes != "0/0" || cluster.Status.Agent.Namespace != m.agentNamespace {
			return fmt.Errorf("display is %+v, agent %+v", cluster.Status.Display, cluster.Status.Agent)
		}
		return nil
	})
}

// event looks for an event of a reason on an object of the workspace.
func (f fixture) event(reason, name, text string) error {
	var list eventsv1.EventList
	if err := f.List(context.Background(), &list, client.InNamespace(f.workspace)); err != nil {
		return err
	}
	for _, e := range list.Items {
		if e.Reason == reason && e.Regarding.Name == name && strings.Contains(e.Note, text) {
			return nil
		}
	}
	return fmt.Errorf("no event %s on %s with %q", reason, name, text)
}

func TestPredefinedClusterIsJoinedByItsClientIDAndKeepsItsLabels(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	predefined := &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "my-cluster", Namespace: f.workspace, Labels: map[string]string{"mine": "true"}},
		Spec:       fleet.ClusterSpec{ClientID: "really-random"},
	}
	f.check(f.Create(context.Background(), predefined))
	waiting := f.untilReady("my-cluster", "WaitCheckIn")
	if waiting.Status.Display.State != "WaitCheckIn" || waiting.Status.Namespace != naming.MemberNamespace(f.workspace, "my-cluster") {
		t.Errorf("before the agent: %+v", waiting.Status)
	}
	f.join(values, map[string]any{"clientID": "really-random", "labels": map[string]string{"env": "dev"}})
	joined := f.untilReady("my-cluster", "Ready")
	if diff := cmp.Diff(map[string]string{"mine": "true"}, joined.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if n := len(f.clusters()); n != 1 {
		t.Errorf("there are %d Clusters, want 1", n)
	}
}

func TestWithoutAClientIDTheClusterIsKnownByItsKubeSystemUID(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	f.join(values, nil)
	var kubeSystem corev1.Namespace
	f.check(f.get(&kubeSystem, "", "kube-system"))
	cluster := f.untilReady(naming.Cluster(string(kubeSystem.UID)), "Ready")
	if cluster.Spec.ClientID != string(kubeSystem.UID) {
		t.Errorf("clientID is %q, want %q", cluster.Spec.ClientID, kubeSystem.UID)
	}
}

func TestTwoWorkspacesMayHaveClustersOfOneName(t *testing.T) {
	one := newFixture(t)
	two := one.neighbour()
	for _, f := range []fixture{one, two} {
		_, values := f.token("new-token", "")
		f.join(values, map[string]any{"clientID": "same"})
	}
	a, b := one.untilReady(naming.Cluster("same"), "Ready"), two.untilReady(naming.Cluster("same"), "Ready")
	if a.Status.Namespace == b.Status.Namespace {
		t.Errorf("both have member namespace %s", a.Status.Namespace)
	}
}

func TestOneTokenRegistersSeveralClustersAndCountsThem(t *testing.T) {
	f := newFixture(t)
	token, values := f.token("new-token", "240h")
	for _, id := range []string{"a", "b", "c"} {
		r := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: id, AnswerKey: answerKey(t).Public()})
		f.untilState(&r, fleet.RegistrationGranted, "Granted")
	}
	f.eventually("the token counts 3", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(&token), &token); err != nil {
			return err
		}
		if token.Status.Registrations != 3 {
			return fmt.Errorf("it counts %d", token.Status.Registrations)
		}
		return nil
	})
}

func TestAnswerIsReadableByItsTokenOnlyAndOnlyUntilTheAgentHasProvedItself(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	_, others := f.token("other-token", "")
	key := answerKey(t)
	r := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: "a", AnswerKey: key.Public()})
	asking := f.as(values["token"])
	f.eventually("the request is readable", func() error { return asking.Get(context.Background(), client.ObjectKeyFromObject(&r), &r) })
	f.untilState(&r, fleet.RegistrationGranted, "Granted")
	answer, err := key.Open(string(r.UID), r.Status.Answer)
	f.check(err)
	if answer.ClusterName != naming.Cluster("a") || answer.ClusterNamespace != f.workspace ||
		answer.SystemNamespace != naming.SystemNamespace {
		t.Errorf("answer is %+v", answer)
	}
	if left := time.Until(answer.Expires); left < 6*24*time.Hour || left > 8*24*time.Hour {
		t.Errorf("the credential lives %s, want 7 days", left)
	}
	if err := f.as(others["token"]).Get(context.Background(), client.ObjectKeyFromObject(&r), &r); !apierrors.IsForbidden(err) {
		t.Errorf("another token reads the request: %v", err)
	}
	if strings.Contains(logged.String(), answer.Token) || strings.Contains(logged.String(), values["token"]) {
		t.Error("the hub logged a credential")
	}
	agent := f.as(answer.Token)
	f.eventually("the agent beats", func() error { return beat(agent, answer) })
	f.untilReady(answer.ClusterName, "Ready")
	f.eventually("the right to read the answer is gone", func() error {
		if err := asking.Get(context.Background(), client.ObjectKeyFromObject(&r), &r); !apierrors.IsForbidden(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
	f.eventually("the answer itself is gone", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(&r), &r); err != nil {
			return err
		}
		if len(r.Status.Answer) > 0 {
			return fmt.Errorf("it has %d bytes", len(r.Status.Answer))
		}
		return nil
	})
}

func TestRefusals(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	key := answerKey(t)
	unnamed := maps.Clone(values)
	delete(unnamed, "tokenName")
	long := strings.Repeat("x", 100)
	taken := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: long + "1", AnswerKey: key.Public()})
	f.untilState(&taken, fleet.RegistrationGranted, "Granted")
	for _, name := range []string{"one", "two"} {
		f.check(f.Create(context.Background(), &fleet.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.workspace}, Spec: fleet.ClusterSpec{ClientID: "twice"},
		}))
	}
	for _, c := range []struct {
		name   string
		values map[string]string
		spec   fleet.ClusterRegistrationSpec
		state  fleet.RegistrationState
		reason string
	}{
		{"an empty client ID", values, fleet.ClusterRegistrationSpec{AnswerKey: key.Public()}, fleet.RegistrationDenied, "ClientIDMissing"},
		{
			"a client ID of 5 kB", values, fleet.ClusterRegistrationSpec{ClientID: strings.Repeat("x", 5000), AnswerKey: key.Public()},
			fleet.RegistrationDenied, "ClientIDTooLong",
		},
		{
			"a client ID with odd characters", values, fleet.ClusterRegistrationSpec{ClientID: "a\n\x00/ü'\"", AnswerKey: key.Public()},
			fleet.RegistrationGranted, "Granted",
		},
		{
			"a label that Kubernetes refuses", values, fleet.ClusterRegistrationSpec{ClientID: "l",
				ClusterLabels: map[string]string{"env": "not a label"}, AnswerKey: key.Public()}, fleet.RegistrationDenied, "InvalidLabels",
		},
		{
			"a key that is none", values, fleet.ClusterRegistrationSpec{ClientID: "k", AnswerKey: []byte("short")},
			fleet.RegistrationDenied, "InvalidAnswerKey",
		},
		{
			"no token named: the API server writes down who asks", unnamed, fleet.ClusterRegistrationSpec{ClientID: "u", AnswerKey: key.Public()},
			fleet.RegistrationGranted, "Granted",
		},
		{
			"a client ID whose derived name is taken", values, fleet.ClusterRegistrationSpec{ClientID: long + "2", AnswerKey: key.Public()},
			fleet.RegistrationConflict, "NameTaken",
		},
		{
			"a client ID that two Clusters have", values, fleet.ClusterRegistrationSpec{ClientID: "twice", AnswerKey: key.Public()},
			fleet.RegistrationConflict, "AmbiguousClientID",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := f
			f.t = t
			r := f.mustAsk(c.values, c.spec)
			f.untilState(&r, c.state, c.reason)
			if c.state != fleet.RegistrationGranted {
				f.eventually("an event says so", func() error { return f.event(c.reason, r.Name, r.Status.Message) })
			}
		})
	}
}

func TestConflictEndsWhenItsCauseIsGone(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	for _, name := range []string{"one", "two"} {
		f.check(f.Create(context.Background(), &fleet.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.workspace}, Spec: fleet.ClusterSpec{ClientID: "twice"},
		}))
	}
	r := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: "twice", AnswerKey: answerKey(t).Public()})
	f.untilState(&r, fleet.RegistrationConflict, "AmbiguousClientID")
	f.check(f.Delete(context.Background(), &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "two", Namespace: f.workspace}}))
	f.untilState(&r, fleet.RegistrationGranted, "Granted")
	if r.Status.ClusterName != "one" {
		t.Errorf("granted for %s, want one", r.Status.ClusterName)
	}
}

func TestNewerRequestReplacesTheIdentityAndTheOlderRequest(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	register := func() (fleet.ClusterRegistration, credential.Answer) {
		key := answerKey(t)
		r := f.mustAsk(values, f.signed(f.keyOf("again"), values, "again", key))
		f.untilState(&r, fleet.RegistrationGranted, "Granted")
		answer, err := key.Open(string(r.UID), r.Status.Answer)
		f.check(err)
		f.eventually("the credential works", func() error { return beat(f.as(answer.Token), answer) })
		return r, answer
	}
	first, old := register()
	_, current := register()
	f.eventually("the old credential is refused", func() error {
		if err := beat(f.as(old.Token), old); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("beating with it: %v", err)
		}
		return nil
	})
	f.eventually("the old request is gone", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(&first), &first); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
	f.check(beat(f.as(current.Token), current))
}

func TestNamespaceOfSomebodyElseIsNeverAdopted(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	name := naming.MemberNamespace(f.workspace, naming.Cluster("taken"))
	foreign := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	f.check(f.Create(context.Background(), foreign))
	r := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: "taken", AnswerKey: answerKey(t).Public()})
	cluster := f.untilReady(naming.Cluster("taken"), "NamespaceTaken")
	f.untilState(&r, fleet.RegistrationWaiting, "NamespaceTaken")
	f.check(f.get(foreign, "", name))
	if len(foreign.Annotations) > 0 || foreign.Labels[fleet.LabelManaged] != "" {
		t.Errorf("the namespace was changed: %+v", foreign.ObjectMeta)
	}
	if err := f.get(&corev1.ServiceAccount{}, name, naming.MemberServiceAccount); !apierrors.IsNotFound(err) {
		t.Errorf("an identity was made in it: %v", err)
	}
	f.check(f.Delete(context.Background(), &r)) // as long as it waits, it wants its Cluster
	f.check(f.Delete(context.Background(), &cluster))
	f.eventually("the Cluster is gone and the namespace stays", func() error {
		if err := f.get(&cluster, f.workspace, cluster.Name); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading the Cluster: %v", err)
		}
		return f.get(foreign, "", name)
	})
	if foreign.DeletionTimestamp != nil {
		t.Error("the namespace was deleted with the Cluster")
	}
}

func TestHubRestartDuringAJoinLosesNothing(t *testing.T) {
	f := newAlone(t, "")
	_, values := f.token("new-token", "")
	key := answerKey(t)
	r := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: "restart", AnswerKey: key.Public()})
	f.restartHub()
	f.untilState(&r, fleet.RegistrationGranted, "Granted")
	answer, err := key.Open(string(r.UID), r.Status.Answer)
	f.check(err)
	f.restartHub()
	f.eventually("the agent beats and is seen", func() error {
		if err := beat(f.as(answer.Token), answer); err != nil {
			return err
		}
		return f.reason(answer.ClusterName, "Ready")
	})
}

func TestAgentKilledAnywhereInItsJoinConvergesToOneCluster(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ method, path string }{
		"before it asks":                      {http.MethodPost, "/clusterregistrations"},
		"before it reads the answer":          {http.MethodGet, "/clusterregistrations"},
		"before it has stored the credential": {http.MethodPost, "/secrets"},
		"before its first beat":               {http.MethodPatch, "/leases/" + naming.HeartbeatLease},
		"before it has forgotten the token":   {http.MethodDelete, "/secrets/" + naming.AgentBootstrapSecret},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			_, values := f.token("new-token", "")
			trap := f.trap(func(r *http.Request) bool { return r.Method == row.method && strings.Contains(r.URL.Path, row.path) })
			trap.armed.Store(true)
			m := trap.member(values, "killed")
			m.start()
			trap.wait(m.stop)
			m.start()
			cluster := f.untilReady(naming.Cluster("killed"), "Ready")
			bearer, namespace := m.credential()
			f.eventually("the stored credential is the one in force", func() error {
				return beat(f.as(bearer), credential.Answer{DeploymentNamespace: namespace})
			})
			f.eventually("one granted request is left", func() error { return f.onlyGranted(cluster.Name) })
			if n := len(f.clusters()); n != 1 {
				t.Errorf("there are %d Clusters, want 1", n)
			}
		})
	}
}

func (f fixture) onlyGranted(cluster string) error {
	var list fleet.ClusterRegistrationList
	if err := f.List(context.Background(), &list, client.InNamespace(f.workspace)); err != nil {
		return err
	}
	granted := 0
	for _, r := range list.Items {
		if r.Status.ClusterName == cluster && r.Status.Granted {
			granted++
		}
	}
	if granted != 1 {
		return fmt.Errorf("there are %d", granted)
	}
	return nil
}

// beating beats as a native agent does until the test ends.
func (f fixture) beating(agent client.Client, namespace string) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	f.t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ticker := time.NewTicker(5 * time.Second); ; {
			_ = beat(agent, credential.Answer{DeploymentNamespace: namespace}) // the test may have taken the right away
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
}

// beat renews the Lease as a native agent does.
func beat(agent client.Client, answer credential.Answer) error {
	if answer.DeploymentNamespace == "" {
		return errors.New("no member namespace")
	}
	patch := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
	return agent.Patch(context.Background(), leaseOf(answer.DeploymentNamespace), client.RawPatch(types.MergePatchType, []byte(patch)))
}
