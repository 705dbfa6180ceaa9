package cli

import (
	"context"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
	"github.com/muster-fleet/muster/internal/version"
)

// at returns a user with one context for a server.
func at(t *testing.T, server string, ca []byte) user {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos["c"] = &clientcmdapi.AuthInfo{Token: "s3cret"}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "c"}
	config.CurrentContext = "c"
	u := user{t: t, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), cacheDir: t.TempDir()}
	if err := clientcmd.WriteToFile(*config, u.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestDoctorSaysAtWhichStepAConnectionFails(t *testing.T) {
	answers := func(version string, ahead time.Duration) (string, []byte) {
		server := testkube.ServeTLS(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
			switch r.URL.Path {
			case "/version":
				_, _ = w.Write([]byte(version)) // the client says what went wrong
			default:
				http.Error(w, "no", http.StatusForbidden)
			}
		})
		return server.URL, certificateOf(server)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nowhere := closed.Addr().String()
	_ = closed.Close() // nothing listens there from now on
	_, other := testkube.NewCertificate(t)
	current, ca := answers(`{"gitVersion":"v1.34.1"}`, 0)
	ahead, aheadCA := answers(`{"gitVersion":"v1.34.1"}`, time.Hour)
	old, oldCA := answers(`{"gitVersion":"v1.24.17"}`, 0)
	page, pageCA := answers("<html>welcome</html>", 0)
	away := func(status int, body string) (string, []byte) {
		server := testkube.ServeTLS(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body)) // the client says what went wrong
		})
		return server.URL, certificateOf(server)
	}
	forbids, forbidsCA := away(http.StatusForbidden,
		`{"kind":"Status","status":"Failure","message":"forbidden: User cannot get path /version"}`)
	balancer, balancerCA := away(http.StatusServiceUnavailable, "<html>no backend</html>")
	refusing := testkube.ServeTLS(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) })
	for what, c := range map[string]struct {
		server string
		ca     []byte
		says   string
	}{
		"it answers": {current, ca, "  ok       answers    Kubernetes v1.34.1 at " + current},
		"its name is not known": {"https://nobody.invalid:6443", ca,
			"  WRONG    answers    the name nobody.invalid cannot be resolved: "},
		"nothing listens":          {"https://" + nowhere, ca, "  WRONG    answers    nothing accepts connections at " + nowhere + ": "},
		"somebody else has signed": {current, []byte(other), "  WRONG    answers    the certificate of " + current + " is signed by "},
		"it was issued for another name": {strings.Replace(current, "127.0.0.1", "localhost", 1), ca,
			"  WRONG    answers    the certificate of "},
		"an hour ahead": {ahead, aheadCA, "  WRONG    clock      the clocks of cluster c and of this machine differ by "},
		"too old": {old, oldCA,
			"  WRONG    answers    cluster c runs Kubernetes v1.24.17: the charts need 1.28.0 or newer"},
		"no API server": {page, pageCA,
			"  WRONG    answers    the server at " + page + " is not a Kubernetes API server (200 OK)"},
		"its version may not be asked": {forbids, forbidsCA,
			"  WRONG    answers    " + forbids + " does not report its version: 403 Forbidden: forbidden: User cannot get path /version"},
		"a balancer without one": {balancer, balancerCA,
			"  WRONG    answers    " + balancer + " does not report its version: 503 Service Unavailable"},
		"it does not know the user": {refusing.URL, certificateOf(refusing),
			"  WRONG    answers    " + refusing.URL + " does not accept the credential of the kubeconfig"},
	} {
		t.Run(what, func(t *testing.T) {
			out, said, err := at(t, c.server, c.ca).run("doctor", "--context", "c")
			if !strings.Contains(out, c.says) || strings.Contains(out+said, "s3cret") || (err == nil) != !strings.Contains(out, "WRONG") {
				t.Errorf("it says, without %q: %v\n%s%s", c.says, err, out, said)
			}
		})
	}
}

// TestTheCAOfAKubeconfigMayBeAFile uses a CA file the agent cannot read.
func TestTheCAOfAKubeconfigMayBeAFile(t *testing.T) {
	_, ca := testkube.NewCertificate(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, []byte(ca), 0o600); err != nil {
		t.Fatal(err)
	}
	u := at(t, "https://hub:6443", nil)
	config, err := clientcmd.LoadFromFile(u.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Clusters["c"].CertificateAuthority = file
	if err := clientcmd.WriteToFile(*config, u.kubeconfig); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", u.kubeconfig)
	if found, err := newAccess().checked(); err != nil || string(found.config.CAData) != ca {
		t.Errorf("what agents are given is %q: %v", found.config.CAData, err)
	}
}

func certificateOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func TestWhoLeadsAHubIsSaidByItsLease(t *testing.T) {
	now := time.Now()
	lease := func(holder string, renewed time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &holder, LeaseDurationSeconds: new(int32(15)), RenewTime: new(metav1.NewMicroTime(now.Add(-renewed))),
			},
		}
	}
	for what, c := range map[string]struct {
		lease       *coordinationv1.Lease
		says, wrong string
	}{
		"renewed just now":      {lease("fleet-controller-1_uid", time.Second), "fleet-controller-1 leads", ""},
		"renewed long ago":      {lease("fleet-controller-1_uid", time.Hour), "", "the hub has had no leader since 60m"},
		"given up":              {lease("", time.Second), "", "the hub has no leader at the moment"},
		"nobody has led so far": {&coordinationv1.Lease{}, "", "the hub has no leader at the moment"},
	} {
		says, err := leads(c.lease, now)
		if says != c.says || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %q, %v", what, says, err)
		}
	}
}

// TestAServerThatIsSilentIsSaidToTakeConnections uses a server that accepts connections, unlike
// one behind a firewall.
func TestAServerThatIsSilentIsSaidToTakeConnections(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	for _, host := range []string{"localhost", "127.0.0.1"} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			server := "https://" + net.JoinHostPort(host, port)
			c := &checked{access: newAccess(), config: &rest.Config{Host: server}, server: server}
			if _, _, err := c.answers(t.Context()); err == nil || err.Error() != server+" accepts connections and does not answer" {
				t.Errorf("it says %v", err)
			}
			interrupted, end := context.WithCancel(t.Context())
			end()
			if _, _, err := c.answers(interrupted); !errors.Is(err, context.Canceled) {
				t.Errorf("interrupted, it says %v", err)
			}
		})
	}
}

func TestAReceiverThatStillFailsIsNamed(t *testing.T) {
	now := time.Now()
	event := func(reason, message string, age time.Duration) *corev1.Event {
		return &corev1.Event{Reason: reason, Message: message, EventTime: metav1.NewMicroTime(now.Add(-age))}
	}
	got := failingReceivers([]*corev1.Event{
		event("NotificationsSent", "notifications to chat are sent again", time.Minute),
		event("NotificationsFail", "notifications to gate fail, and are tried again: the receiver answers 401", time.Second),
		event("NotificationsFail", "notifications to chat fail, and are tried again: the receiver answers 500", 2*time.Minute),
		event("NotificationsSent", "notifications to gate are sent again", time.Hour),
		event("ConfigInvalid", "the previous settings stay in force", 0),
	})
	if want := []string{"notifications to gate fail, and are tried again: the receiver answers 401"}; !slices.Equal(got, want) {
		t.Errorf("it names %q", got)
	}
}

func TestAHubWhoseClockIsBehindLeads(t *testing.T) {
	const behind = 45 * time.Second
	server := testkube.ServeTLS(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(-behind).UTC().Format(http.TimeFormat))
		_, _ = w.Write([]byte(`{"gitVersion":"v1.34.1"}`))
	})
	h := newAccess()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.HubLease},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("fleet-controller-1_uid"), LeaseDurationSeconds: new(int32(15)),
			RenewTime: new(metav1.NewMicroTime(time.Now().Add(-behind)))}}
	c := &checked{access: h, Client: fake.NewClientBuilder().WithScheme(h.scheme).WithObjects(lease).Build(), server: server.URL,
		config: &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: certificateOf(server)}}}
	var out strings.Builder
	if wrong, err := runChecks(t.Context(), &out, append(c.reachable(), c.hubRuns()...)); err != nil || wrong > 0 ||
		!strings.Contains(out.String(), "fleet-controller-1 leads") {
		t.Errorf("%v\n%s", err, &out)
	}
}

func TestEachAgentOfAClusterIsLookedAt(t *testing.T) {
	runs := func(name types.NamespacedName, env ...corev1.EnvVar) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(1)), Template: corev1.PodTemplateSpec{
					Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: "agent", Env: env}}},
				},
			},
			Status: appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, UpdatedReplicas: 1}}
	}
	credential := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.AgentSecret},
		Data: map[string][]byte{
			"kubeconfig": []byte("{clusters: [{name: a, cluster: {server: 'https://former'}}]}"), "clusterNamespace": []byte("clusters"),
			"clusterName": []byte("web")}}
	member := runs(memberAgent, corev1.EnvVar{Name: "HUB_SERVER_URL", Value: "https://hub"}, corev1.EnvVar{
		Name: "MEMBER_CLUSTER_NAME", Value: "edge",
	})
	const asMember = "Deployment fleet-system/member-agent runs agent, as MemberCluster edge of the hub at https://hub"
	const asCluster = "Deployment cattle-fleet-system/fleet-agent runs agent, as Cluster clusters/web of the hub at https://former"
	for what, row := range map[string]struct {
		has  []client.Object
		want string
	}{
		"none": {nil, "none is installed"},
		"a member-agent, and what a fleet-agent has left": {[]client.Object{credential, member}, asMember},
		"a fleet-agent": {[]client.Object{credential, runs(clusterAgent)}, asCluster},
		"both":          {[]client.Object{credential, runs(clusterAgent), member}, asCluster + "; " + asMember},
	} {
		h := newAccess()
		c := &checked{access: h, Client: fake.NewClientBuilder().WithScheme(h.scheme).WithObjects(row.has...).Build()}
		if says, err := c.agentRuns()[0].run(t.Context()); err != nil || says != row.want {
			t.Errorf("%s: %q, %v", what, says, err)
		}
	}
}

// TestALookThatIsCutShortTakesNothingBack uses an API server with a single response.
func TestALookThatIsCutShortTakesNothingBack(t *testing.T) {
	t.Parallel()
	stopped := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: clusterAgent.Namespace, Name: clusterAgent.Name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "fleet-agent"}},
		}}
	h, looks := newAccess(), 0
	c := &checked{access: h, Client: fake.NewClientBuilder().WithScheme(h.scheme).WithObjects(stopped).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if looks++; looks > 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()}
	if _, err := c.agentRuns()[0].run(t.Context()); err == nil || !strings.Contains(err.Error(), "its Deployment is scaled to 0 replicas") ||
		looks < 2 {
		t.Errorf("after %d looks: %v", looks, err)
	}
}

// TestACompletionEndsSoon uses a hub without a response to connections.
func TestACompletionEndsSoon(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	u := at(t, "https://"+listener.Addr().String(), nil)
	for _, command := range []string{"get members", "leave"} {
		begun := time.Now()
		if _, _, err := u.run(append([]string{"__complete"}, append(strings.Fields(command), "")...)...); err != nil {
			t.Errorf("%s: %v", command, err)
		}
		if took := time.Since(begun); took > 2*completeWithin {
			t.Errorf("%s: it takes %s", command, took)
		}
	}
}

func TestVersionsDifferByTheirMinorNumber(t *testing.T) {
	for _, row := range []struct {
		image, own string
		want       int
	}{
		{"registry:5000/muster-hub:1.2.3", "1.2.9", 0}, {"muster-hub:1.3.0", "1.2.9", 1}, {"muster-hub:v1.2.9", "1.3.0-rc.1", -1},
		{"muster-hub:1.9.0", "2.0.0", -1},
		{"muster-hub:0.1.1", "0.1.0-5-gabc1234", 0}, {"muster-hub:dev", "1.2.3", 0}, {"muster-hub:1.2.3", "0.0.0-gdev", 0},
		{"registry:5000/muster-hub", "1.2.3", 0}, {"muster-hub@sha256:0123", "1.2.3", 0}, {"", "1.2.3", 0},
	} {
		if got := differ(tagOf(row.image), row.own); got != row.want {
			t.Errorf("%s with muster %s: %d", row.image, row.own, got)
		}
	}
}

// ofVersion sets the version of this program.
func ofVersion(t *testing.T, of string) {
	before := version.Version
	version.Version = of
	t.Cleanup(func() { version.Version = before })
}

func TestAnotherVersionOfTheHubOrOfAnAgentIsTold(t *testing.T) {
	runs := func(name types.NamespacedName, image string, labels map[string]string) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, Labels: labels},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(1)), Template: corev1.PodTemplateSpec{
					Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: image}}},
				},
			},
			Status: appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, UpdatedReplicas: 1}}
	}
	ours := map[string]string{"app.kubernetes.io/part-of": "muster"}
	for _, row := range []struct {
		own, says, ofHub string
		deployment       *appsv1.Deployment
	}{
		{"1.2.3", "Deployment cattle-fleet-system/fleet-agent runs muster-agent:1.2.0", "", runs(clusterAgent, "muster-agent:1.2.0", ours)},
		{
			"1.3.0", "runs muster-agent:1.2.0, older than muster 1.3.0: its hub upgrades the agent of a Cluster, and muster join upgrades any agent",
			"", runs(clusterAgent, "muster-agent:1.2.0", ours),
		},
		{
			"1.1.0", "runs muster-agent:1.2.0, newer than muster 1.1.0: use muster of its version", "",
			runs(memberAgent, "muster-agent:1.2.0", ours),
		},
		{
			"1.1.0", "Deployment fleet-system/member-agent runs kubefleet/member-agent:v0.3.1", "",
			runs(memberAgent, "kubefleet/member-agent:v0.3.1", nil),
		},
		{
			"1.1.0", "none is installed", "muster is of version 1.1.0 and the hub of 1.2.0: use muster of the hub's version",
			runs(musterHub, "muster-hub:1.2.0", ours),
		},
		{
			"1.3.0", "none is installed", "the hub is of version 1.2.0 and muster of 1.3.0: muster init upgrades the hub, or use muster of its " +
				"version", runs(musterHub, "muster-hub:1.2.0", ours),
		},
	} {
		t.Run(row.own+" and "+row.deployment.Name, func(t *testing.T) {
			ofVersion(t, row.own)
			h := newAccess()
			c := &checked{access: h, Client: fake.NewClientBuilder().WithScheme(h.scheme).WithObjects(row.deployment).Build()}
			if says, err := c.agentRuns()[0].run(t.Context()); err != nil || !strings.HasSuffix(says, row.says) {
				t.Errorf("of the agents: %q, %v", says, err)
			}
			if _, err := c.sameVersion().run(t.Context()); row.ofHub != "" && (err == nil || err.Error() != row.ofHub) {
				t.Errorf("of the hub: %v", err)
			}
		})
	}
}
