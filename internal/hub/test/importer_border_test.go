package hub_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/testkube"
)

// importSays is the message of the condition Imported.
func importSays(cluster *fleet.Cluster) string {
	return kube.FindCondition(cluster.Status.Conditions, fleet.ConditionImported).Message
}

func TestAKubeconfigOfAnotherNamespaceIsUsedOnlyWithItsConsent(t *testing.T) {
	i := newImporting(t, nil)
	ctx, tenant := context.Background(), i.tenant()
	secret := i.secret("treasure", i.down.Kubeconfig(t, i.token))
	secret.Namespace = i.namespace("cluster-")
	secret.Annotations = map[string]string{fleet.AnnotationKubeconfigFor: "another-workspace"}
	i.check(i.Create(ctx, secret))
	if err := tenant.Get(ctx, client.ObjectKeyFromObject(secret), &corev1.Secret{}); !apierrors.IsForbidden(err) {
		t.Fatalf("the tenant can read the Secret: %v", err)
	}
	for _, name := range []string{"treasure", "nothing"} {
		i.check(tenant.Create(ctx, &fleet.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: i.workspace, Name: name},
			Spec:       fleet.ClusterSpec{KubeConfigSecret: name, KubeConfigSecretNamespace: secret.Namespace, AgentNamespace: i.agentNamespace},
		}))
	}
	said := importSays(i.imported("treasure", "ConsentMissing"))
	command := fmt.Sprintf("kubectl -n %s annotate secret treasure muster/kubeconfig-for=%s", secret.Namespace, i.workspace)
	if !strings.Contains(said, command) {
		t.Errorf("%q is missing in %q", command, said)
	}
	if other := importSays(i.imported("nothing", "ConsentMissing")); strings.ReplaceAll(other, "nothing", "treasure") != said {
		t.Errorf("the message reveals whether a Secret exists:\n%s\n%s", other, said)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, fleet.AnnotationKubeconfigFor, i.workspace)
	if err := tenant.Patch(ctx, secret.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); !apierrors.IsForbidden(err) {
		t.Errorf("the tenant consents for the other side: %v", err)
	}
	i.check(tenant.Create(ctx, &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: i.workspace, Name: "shell"},
		Spec:       fleet.ClusterSpec{KubeConfigSecret: "x; reboot #", KubeConfigSecretNamespace: secret.Namespace},
	}))
	if said := importSays(i.imported("shell", "SecretMissing")); strings.Contains(said, "kubectl") {
		t.Errorf("what the tenant wrote stands in a command: %s", said)
	}
	if n := i.visits.Load(); n != 0 {
		t.Errorf("the hub has called the cluster %d times", n)
	}
	i.check(i.Patch(ctx, secret, client.RawPatch(types.MergePatchType, patch)))
	i.imported("treasure", "Imported")
}

// server starts one with TLS on a loopback address and puts a kubeconfig for it into a Secret.
func (i importing) server(name string, answer http.HandlerFunc) {
	i.t.Helper()
	server := testkube.ServeTLS(i.t, answer)
	i.pointTo(name, server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

func (i importing) pointTo(name, url string, ca []byte) {
	i.t.Helper()
	at := testkube.Cluster{Config: &rest.Config{Host: url, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}}
	i.check(i.Create(context.Background(), i.secret(name, at.Kubeconfig(i.t, "token"))))
}

func TestWhatAnUnknownServerAnswersIsQuotedNowhere(t *testing.T) {
	i := newImporting(t, nil)
	const secret = "s3cret-of-the-intranet"
	status := func(code int) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":"Forbidden","code":%d}`, secret, code)
	}
	after := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.URL.Path != "/version" { // any server may answer JSON at /version
				w.WriteHeader(code)
				_, _ = io.WriteString(w, body)
				return
			}
			_, _ = io.WriteString(w, "{}")
		}
	}
	reasons := map[string]string{}
	for name, c := range map[string]struct {
		reason string
		answer http.HandlerFunc
	}{
		"trouble":       {"Refused", after(500, secret)},
		"forbidden":     {"RightsMissing", after(403, secret)},
		"as-status":     {"Refused", after(500, status(500))},
		"forbidden-too": {"RightsMissing", after(403, status(403))},
		"no-review":     {"NotAnAPIServer", after(201, secret)},
		"another-kind":  {"NotAnAPIServer", after(201, fmt.Sprintf(`{"kind":%q,"apiVersion":"v1"}`, secret))},
		"no-version": {"Refused", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, secret, http.StatusInternalServerError)
		}},
		"no-json": {"NotAnAPIServer", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, secret) }},
		"no-http": {"NotAnAPIServer", func(w http.ResponseWriter, _ *http.Request) {
			connection, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(connection, "220 "+secret+"\r\n\r\n")
				_ = connection.Close()
			}
		}},
	} {
		reasons[name] = c.reason
		i.server(name, c.answer)
		i.record(name, name)
	}
	for name, reason := range reasons {
		cluster := i.imported(name, reason)
		if said := importSays(cluster); !strings.Contains(said, "the server is not a Kubernetes API server") {
			t.Errorf("%s: the condition says %q", name, said)
		}
		i.eventually(name+" has its event", func() error { return i.event(reason, name, "") })
		text, err := json.Marshal(cluster.Status)
		i.check(err)
		if strings.Contains(string(text), secret) {
			t.Errorf("%s: the status quotes the server: %s", name, text)
		}
	}
	var list eventsv1.EventList
	i.check(i.List(context.Background(), &list, client.InNamespace(i.workspace)))
	for _, e := range list.Items {
		if strings.Contains(e.Note, secret) {
			t.Errorf("an event quotes the server: %s", e.Note)
		}
	}
	if strings.Contains(logged.String(), secret) {
		t.Error("the log quotes the server")
	}
}

// tarpit says that it is an API server, and nothing else.
type tarpit struct {
	*httptest.Server
	// taken counts all connections, calls those that have no answer, and most is how many
	// these were at once.
	taken, calls, most atomic.Int64
}

func newTarpit(t *testing.T) *tarpit {
	t.Helper()
	pit := &tarpit{}
	pit.Server = testkube.ServeTLS(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{}")
			return
		}
		for now := pit.calls.Add(1); ; {
			if most := pit.most.Load(); now <= most || pit.most.CompareAndSwap(most, now) {
				break
			}
		}
		defer pit.calls.Add(-1)
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}, func(s *httptest.Server) {
		s.EnableHTTP2 = true // one connection per attempt
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				pit.taken.Add(1)
			}
		}
	})
	return pit
}

func (p *tarpit) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw})
}

// TestLoopbackIsCalledOnlyWithTheHubsWord changes the settings of the hub, so that no other
// test may run beside it.
func TestLoopbackIsCalledOnlyWithTheHubsWord(t *testing.T) {
	i := newAlone(t, "{}").importing(nil)
	pit := newTarpit(t)
	_, port, err := net.SplitHostPort(pit.Listener.Addr().String())
	i.check(err)
	for name, host := range map[string]string{"address": "127.0.0.1", "name": "localhost", "mapped": "[::ffff:127.0.0.1]"} {
		i.pointTo(name, "https://"+net.JoinHostPort(strings.Trim(host, "[]"), port), i.down.Config.CAData)
		i.record(name, name)
		if said := importSays(i.imported(name, "AddressRefused")); !strings.Contains(said,
			"the value importLoopback of the chart fleet allows that") {
			t.Errorf("%s: the condition says %q", name, said)
		}
	}
	if n := pit.taken.Load(); n != 0 {
		t.Errorf("the hub has connected %d times", n)
	}
	i.begin()
	i.imported("my-cluster", "AddressRefused")
	i.configure(testkube.HubSettings)
	i.imported("my-cluster", "Imported")
}

func TestOneWorkspacesSilentServersDelayNoOther(t *testing.T) {
	const silent, atOnce, callsEach = 48, 32, 2 // an attempt begins with two questions about rights
	i := newAlone(t, "").importing(nil)         // because so many imports at once keep the hub busy
	crowd := i.neighbour()
	pit, ctx := newTarpit(t), context.Background()
	t.Cleanup(func() {
		for _, kind := range []client.Object{&fleet.Cluster{}, &corev1.Secret{}} { // they would be tried again and again
			if err := crowd.DeleteAllOf(ctx, kind, client.InNamespace(crowd.workspace)); err != nil {
				t.Error(err)
			}
		}
	})
	at := i
	at.fixture = crowd
	at.pointTo("silent", "https://127.0.0.1:1", pit.ca())
	for n := range silent {
		at.record(fmt.Sprintf("silent-%d", n), "silent")
	}
	for n := range silent {
		at.imported(fmt.Sprintf("silent-%d", n), "Unreachable")
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: crowd.workspace, Name: "silent"}}
	i.change(secret, func() { // which wakes all of them
		secret.Data["value"] = testkube.Cluster{Config: &rest.Config{Host: pit.URL,
			TLSClientConfig: rest.TLSClientConfig{CAData: pit.ca()}}}.Kubeconfig(t, "token")
	})
	i.eventually("the workspace has all its connections", func() error {
		if n := pit.calls.Load(); n < atOnce*callsEach {
			return fmt.Errorf("there are %d calls", n)
		}
		return nil
	})
	i.begin()
	i.imported("my-cluster", "Imported")
	i.eventually("those that waited are imported", func() error {
		if n := pit.taken.Load(); n < silent {
			return fmt.Errorf("there were %d connections", n)
		}
		return nil
	})
	if most := pit.most.Load(); most > atOnce*callsEach {
		t.Errorf("%d calls for one workspace were under way at once", most)
	}
}
