package agent

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/naming"
)

// testHub plays a hub by hand on a real API server: exactly the rights and answers that the
// protocol promises, nothing else.
type testHub struct {
	t      *testing.T
	config *rest.Config
	kube   kubernetes.Interface
	// connection is an admin's.
	connection *kubeclient.Connection
	workspace  string
	// account is the one behind the registration token, or the identity of a MemberCluster.
	account string
	// name is the name of the report in the member namespace.
	name, namespace string
	// period of heartbeats, in seconds.
	period int32

	mu sync.Mutex
	// answer decides on a request; nil leaves it alone.
	answer func(*fleet.ClusterRegistration) fleet.ClusterRegistrationStatus
	// requests counts what was seen.
	requests int
}

const testUID = "6f7c6d1e-7f3b-4a53-9d3e-0a1b2c3d4e5f"

func newTestHub(t *testing.T, config *rest.Config) *testHub {
	t.Helper()
	kube, err := kubernetes.NewForConfig(config)
	check(t, err)
	connection, err := kubeclient.Connect(config)
	check(t, err)
	h := &testHub{t: t, config: config, kube: kube, connection: connection, period: 1, account: "new-token-" + testUID, name: "my-cluster"}
	h.workspace = makeNamespace(t, kube, "workspace-")
	h.namespace = naming.MemberNamespace(h.workspace, h.name)
	h.allow(h.workspace, h.account, rbacv1.PolicyRule{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusterregistrations"}, Verbs: []string{"create"},
	})
	return h
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// makeNamespace creates a namespace that stays as long as the control plane. To delete a namespace,
// Kubernetes needs two requests for each kind, more than most tests send. Only its Secrets go with
// the test, because agents look for releases in all namespaces.
func makeNamespace(t *testing.T, kube kubernetes.Interface, prefix string) string {
	t.Helper()
	namespace, err := kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: prefix},
	}, metav1.CreateOptions{})
	check(t, err)
	t.Cleanup(func() {
		secrets := kube.CoreV1().Secrets(namespace.Name)
		check(t, secrets.DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	})
	return namespace.Name
}

// allow makes an account and binds a role to it.
func (h *testHub) allow(namespace, account string, rules ...rbacv1.PolicyRule) {
	h.t.Helper()
	_, err := h.kube.CoreV1().ServiceAccounts(namespace).Create(context.Background(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		check(h.t, err)
	}
	h.bind(namespace, account, account, rules...)
}

func (h *testHub) bind(namespace, name, account string, rules ...rbacv1.PolicyRule) {
	h.t.Helper()
	_, err := h.kube.RbacV1().Roles(namespace).Create(context.Background(),
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		check(h.t, err)
	}
	_, err = h.kube.RbacV1().RoleBindings(namespace).Create(context.Background(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: namespace}},
	}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		check(h.t, err)
	}
}

func (h *testHub) token(namespace, account string, life time.Duration) string {
	h.t.Helper()
	seconds := int64(life.Seconds())
	made, err := h.kube.CoreV1().ServiceAccounts(namespace).CreateToken(context.Background(), account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	check(h.t, err)
	return made.Status.Token
}

// values is what the chart puts into Secret fleet-agent-bootstrap.
func (h *testHub) values() map[string][]byte {
	return map[string][]byte{
		"apiServerURL": []byte(h.config.Host),
		"apiServerCA":  h.config.CAData,
		"token":        []byte(h.token(h.workspace, h.account, time.Hour)),
	}
}

func (h *testHub) registrations() *hubclient.Registrations {
	h.t.Helper()
	resource, err := kubeclient.Of[fleet.ClusterRegistration, fleet.ClusterRegistrationList](h.connection,
		fleet.GroupVersion.WithResource("clusterregistrations"), h.workspace)
	check(h.t, err)
	return resource
}

func (h *testHub) reports() *hubclient.Reports {
	h.t.Helper()
	resource, err := kubeclient.Of[clusterv1beta1.InternalMemberCluster, clusterv1beta1.InternalMemberClusterList](h.connection,
		clusterv1beta1.GroupVersion.WithResource("internalmemberclusters"), h.namespace)
	check(h.t, err)
	return resource
}

// serve answers requests until the test ends.
func (h *testHub) serve(answer func(*fleet.ClusterRegistration) fleet.ClusterRegistrationStatus) {
	h.t.Helper()
	h.answer = answer
	ctx, cancel := context.WithCancel(context.Background())
	registrations := h.registrations()
	watch, err := registrations.Watch(ctx, metav1.ListOptions{})
	check(h.t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watch.ResultChan() {
			request, ok := event.Object.(*fleet.ClusterRegistration)
			if !ok || event.Type != "ADDED" {
				continue
			}
			h.handle(registrations, request)
		}
	}()
	h.t.Cleanup(func() {
		cancel()
		<-done
	})
}

func (h *testHub) handle(registrations *hubclient.Registrations, request *fleet.ClusterRegistration) {
	h.bind(h.workspace, request.Name, h.account, rbacv1.PolicyRule{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusterregistrations"},
		ResourceNames: []string{request.Name}, Verbs: []string{"get", "list", "watch"},
	})
	h.mu.Lock()
	h.requests++
	answer := h.answer
	h.mu.Unlock()
	h.set(registrations, request, answer(request))
}

func (h *testHub) set(registrations *hubclient.Registrations, request *fleet.ClusterRegistration, status fleet.ClusterRegistrationStatus) {
	request = request.DeepCopy()
	request.Status = status
	if _, err := registrations.UpdateStatus(context.Background(), request, metav1.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
		h.t.Errorf("answering request %s: %v", request.Name, err)
	}
}

// grant makes a member namespace and an answer.
func (h *testHub) grant(request *fleet.ClusterRegistration) fleet.ClusterRegistrationStatus {
	sealed, err := credential.Seal(request.Spec.AnswerKey, string(request.UID), credential.Answer{
		Token: h.prepare(time.Hour), DeploymentNamespace: h.namespace, ClusterNamespace: h.workspace, ClusterName: h.name,
	})
	check(h.t, err)
	return fleet.ClusterRegistrationStatus{
		State: fleet.RegistrationGranted, Granted: true, ClusterName: h.name, Answer: sealed,
	}
}

// prepare makes what a member needs on the hub and returns a token for it.
func (h *testHub) prepare(life time.Duration) string {
	h.makeMember(func() { h.allow(h.namespace, naming.MemberServiceAccount, memberRules()...) })
	return h.token(h.namespace, naming.MemberServiceAccount, life)
}

// makeMember makes a member namespace, the rights in it, and what they are for.
func (h *testHub) makeMember(grant func()) {
	ctx := context.Background()
	_, err := h.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}},
		metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		check(h.t, err)
	}
	grant()
	_, err = h.kube.CoordinationV1().Leases(h.namespace).Create(ctx,
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: naming.HeartbeatLease}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		check(h.t, err)
	}
	h.makeReport()
}

func (h *testHub) makeReport() {
	_, err := h.reports().Create(context.Background(), &clusterv1beta1.InternalMemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: h.name, Namespace: h.namespace},
		Spec:       clusterv1beta1.InternalMemberClusterSpec{State: clusterv1beta1.ClusterStateJoin, HeartbeatPeriodSeconds: h.period},
	}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		check(h.t, err)
	}
}

// report reads the report.
func (h *testHub) report() (*clusterv1beta1.InternalMemberCluster, error) {
	return h.reports().Get(context.Background(), h.name, metav1.GetOptions{})
}

// memberRules are all the rights that an agent has on the hub once it has joined.
func memberRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{naming.HeartbeatLease},
			Verbs: []string{"get", "patch"},
		},
		{
			APIGroups: []string{"cluster.kubernetes-fleet.io"}, Resources: []string{"internalmemberclusters"}, ResourceNames: []string{"my-cluster"},
			Verbs: []string{"get", "list", "watch"},
		},
		{
			APIGroups: []string{"cluster.kubernetes-fleet.io"}, Resources: []string{"internalmemberclusters/status"},
			ResourceNames: []string{"my-cluster"}, Verbs: []string{"patch"},
		},
		{
			APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{naming.MemberServiceAccount},
			Verbs: []string{"create"},
		},
		{APIGroups: []string{"fleet.cattle.io"}, Resources: []string{"bundledeployments"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"fleet.cattle.io"}, Resources: []string{"bundledeployments/status"}, Verbs: []string{"patch"}},
	}
}

// beats is the Lease's time.
func (h *testHub) beat() time.Time {
	lease, err := h.kube.CoordinationV1().Leases(h.namespace).Get(context.Background(), naming.HeartbeatLease, metav1.GetOptions{})
	if err != nil || lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return lease.Spec.RenewTime.Time
}

// requested checks how many requests were seen.
func (h *testHub) requested(want int) {
	h.t.Helper()
	if got := h.count(); got != want {
		h.t.Errorf("%d requests, want %d", got, want)
	}
}

// count is how many requests were seen.
func (h *testHub) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.requests
}

// revoke ends the member's identity.
func (h *testHub) revoke() {
	h.t.Helper()
	check(h.t, h.kube.CoreV1().ServiceAccounts(h.namespace).Delete(context.Background(), naming.MemberServiceAccount, metav1.DeleteOptions{}))
}

// patchReport changes what the hub asks.
func (h *testHub) patchReport(patch string) {
	h.t.Helper()
	_, err := h.reports().Patch(context.Background(), h.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	check(h.t, err)
}

func state(s fleet.RegistrationState, reason, message string) fleet.ClusterRegistrationStatus {
	return fleet.ClusterRegistrationStatus{State: s, Reason: reason, Message: message}
}

func containsAll(s string, parts ...string) error {
	for _, part := range parts {
		if !strings.Contains(s, part) {
			return fmt.Errorf("%q does not say %q", s, part)
		}
	}
	return nil
}
