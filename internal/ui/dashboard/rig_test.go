package dashboard

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard()) // controller-runtime complains after half a minute if the program sets no logger
	os.Exit(testkube.Main(m))
}

// rig is a control plane with the kinds of the fleet, without a hub that would say something else
// of the objects than a test does.
type rig struct {
	testkube.Cluster
	client.Client
	t *testing.T
}

func newRig(t *testing.T) rig {
	t.Helper()
	return rigOn(t, testkube.Start(t, "dashboard"))
}

func rigOn(t *testing.T, cluster testkube.Cluster) rig {
	t.Helper()
	cluster.ServeFleet(t)
	return rig{cluster, cluster.Client(t), t}
}

func (r rig) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// workspace is a namespace that is there.
func (r rig) workspace(name string) string {
	r.t.Helper()
	r.check(client.IgnoreAlreadyExists(r.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})))
	return name
}

// cluster is a Cluster whose condition Ready says something; it is ready if there is no reason.
func (r rig) cluster(workspace, name, reason, message string, labels map[string]string) *fleet.Cluster {
	r.t.Helper()
	c := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: name, Labels: labels}}
	r.check(client.IgnoreAlreadyExists(r.Create(context.Background(), c)))
	r.says(c, reason, message)
	return c
}

// says has a Cluster say something else.
func (r rig) says(c *fleet.Cluster, reason, message string) {
	r.t.Helper()
	ctx := context.Background()
	r.check(r.Get(ctx, client.ObjectKeyFromObject(c), c))
	status := corev1.ConditionTrue
	if reason != "" {
		status = corev1.ConditionFalse
	}
	c.Status.Conditions = []fleet.Condition{{
		Type: fleet.ConditionReady, Status: status, Reason: reason, Message: message, LastTransitionTime: "2026-11-24T10:00:00Z",
	}}
	c.Status.Agent.KubernetesVersion = "v1.36.3"
	c.Status.Agent.LastSeen = metav1.Now()
	r.check(r.Status().Update(ctx, c))
}

// owned serves a dashboard for an administrator, and returns the address to enter by.
func (r rig) owned() string {
	r.t.Helper()
	s, err := NewOwned(r.t.Context(), Options{Config: r.Config})
	r.check(err)
	return r.serve(s) + s.Entrance()
}

// shared serves a dashboard for all users with a token.
func (r rig) shared() string {
	r.t.Helper()
	s, err := NewShared(r.t.Context(), Options{Config: r.Config})
	r.check(err)
	return r.serve(s)
}

func (r rig) serve(s *Server) string {
	r.t.Helper()
	address := r.serveUnread(s)
	for resource := range kinds {
		testkube.Eventually(r.t, resource+" are read", func() error { _, err := s.cache.of(resource); return err })
	}
	return address
}

// serveUnread serves a dashboard that may not be able to read all kinds, and returns its address.
func (r rig) serveUnread(s *Server) string {
	r.t.Helper()
	listener, err := new(net.ListenConfig).Listen(r.t.Context(), "tcp", "127.0.0.1:0")
	r.check(err)
	ctx, end := context.WithCancel(r.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener) }()
	r.t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			r.t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}

// tenant is a token of a user who has rights in one workspace only.
func (r rig) tenant(name, workspace string, rules ...rbacv1.PolicyRule) string {
	r.t.Helper()
	token := r.Account(r.t, name, "")
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: name}, Rules: rules}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: name}}}
	r.check(client.IgnoreAlreadyExists(r.Create(r.t.Context(), role)))
	r.check(client.IgnoreAlreadyExists(r.Create(r.t.Context(), binding)))
	return token
}

// answer is what a server answered.
type answer struct {
	status int
	text   string
	header http.Header
}

// ask sends a request with a token, and follows no redirects.
func (r rig) ask(method, url, token, form string, headers ...string) answer {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), method, url, strings.NewReader(form))
	r.check(err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if form != "" {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for ; len(headers) > 0; headers = headers[2:] {
		request.Header.Set(headers[0], headers[1])
	}
	once := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := once.Do(request)
	r.check(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	r.check(err)
	return answer{response.StatusCode, string(text), response.Header}
}

// asking creates a registration request that waits for approval.
func (r rig) asking(workspace string) *fleet.ClusterRegistration {
	r.t.Helper()
	request := &fleet.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{Namespace: workspace, GenerateName: "request-"}, Spec: fleet.ClusterRegistrationSpec{
			ClientID: "edge", ClientRandom: "r",
		},
	}
	r.check(r.Create(r.t.Context(), request))
	request.Status.State, request.Status.Reason, request.Status.Message = fleet.RegistrationPending, "ApprovalRequired", "somebody approves it"
	r.check(r.Status().Update(r.t.Context(), request))
	return request
}
