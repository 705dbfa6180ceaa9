package work

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testkube.Main(m))
}

var install sync.Map

// rig is a member namespace on a real API server, which is hub and member at once. Its agent has
// exactly its rights in production: on the hub the rights of the Role that the hub creates, on the
// member the chart's.
type rig struct {
	client.Client
	t       *testing.T
	cluster testkube.Cluster
	// name is unique to the test.
	name, namespace string
	hub, member     *rest.Config
	agent           *Controller
	// membership is the UID of the report, lost has its UIDs from before a restore of the hub, stays
	// confirms removals.
	membership types.UID
	lost       []string
	stays      func(context.Context) error
	// kept are the deliveries unknown to the hub, as reported last.
	kept    *told
	stop    func()
	log     *logged
	counted *counted
}

type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigOn(t, "work")
}

// newRigOn is a rig on an API server that it shares with none but those who name it, too.
func newRigOn(t *testing.T, name string) *rig {
	t.Helper()
	cluster := testkube.Start(t, name)
	if _, done := install.LoadOrStore(name, true); !done {
		cluster.InstallCRDs(t)
	}
	t.Parallel()
	r := &rig{Client: cluster.Client(t), t: t, cluster: cluster, membership: "first", log: &logged{}, counted: &counted{}, kept: &told{}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "fleet-member-w"}}
	r.check(r.Create(context.Background(), namespace))
	r.namespace, r.name = namespace.Name, strings.TrimPrefix(namespace.Name, "fleet-member-")
	role, err := membernamespace.Rights{
		Member: membernamespace.OfMemberCluster(&clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: r.name}}), Native: true,
	}.Role()
	r.check(err)
	role.ObjectMeta = metav1.ObjectMeta{Namespace: r.namespace, Name: "member"}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "member"}}
	subject := rbacv1.Subject{Kind: "ServiceAccount", Namespace: r.namespace, Name: "member"}
	r.check(r.Create(context.Background(), account))
	r.check(r.Create(context.Background(), role))
	r.check(r.Create(context.Background(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "member"}, Subjects: []rbacv1.Subject{subject}, RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "Role", Name: "member",
		},
	}))
	bearer, err := kube.RequestToken(context.Background(), r.SubResource("token"), account, time.Hour)
	r.check(err)
	r.hub = rest.AnonymousClientConfig(cluster.Config)
	r.hub.BearerToken = bearer
	r.member = r.deliverer(cluster.Config)
	r.start()
	t.Cleanup(r.halt) // the namespace goes with the control plane, because to delete it costs more than the test
	return r
}

// deliverer is an account with the rights that the chart gives the agent.
func (r *rig) deliverer(admin *rest.Config) *rest.Config {
	r.t.Helper()
	name := "deliver-" + r.name
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name}}
	r.check(r.Create(context.Background(), account))
	for _, template := range []string{"rbac.yaml", "delivery.yaml"} {
		role := roleOf(r.t, template)
		role.ObjectMeta = metav1.ObjectMeta{Name: name + "-" + template}
		r.check(r.Create(context.Background(), role))
		r.check(r.Create(context.Background(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{
				APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name,
			},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: r.namespace, Name: name}},
		}))
	}
	bearer, err := kube.RequestToken(context.Background(), r.SubResource("token"), account, time.Hour)
	r.check(err)
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = bearer
	return config
}

// start runs an agent that remembers nothing.
func (r *rig) start() {
	r.t.Helper()
	var err error
	r.agent, err = New(Deps{
		Hub: r.hub, Member: r.member, Namespace: r.namespace, Membership: r.membership, Report: r.name, Clock: clock.RealClock{},
		Log: logr.FromSlogHandler(slog.NewTextHandler(r.log, nil)), Counted: r.counted.take, ConfirmDeleted: r.stays,
		Lost: r.lost, Kept: r.kept.take, KeptPause: 300 * time.Millisecond,
	})
	r.check(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.agent.Run(ctx) }()
	r.stop = func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, errUnserved) {
			r.t.Errorf("the agent ended: %v", err)
		}
	}
}

func (r *rig) halt() {
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

func (r *rig) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// manifests reads YAML documents in which NAME stands for the test's own name.
func (r *rig) manifests(documents ...string) []placement.Manifest {
	r.t.Helper()
	var list []placement.Manifest
	for _, document := range documents {
		text, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(document, "NAME", r.name)))
		r.check(err)
		list = append(list, placement.Manifest{RawExtension: runtime.RawExtension{Raw: text}})
	}
	return list
}

// place creates a Work, or gives it other manifests.
func (r *rig) place(suffix string, change func(*placement.WorkSpec), documents ...string) *placement.Work {
	r.t.Helper()
	work := &placement.Work{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: r.name + "-" + suffix}}
	fill := func() {
		work.Spec.Workload.Manifests = r.manifests(documents...)
		if change != nil {
			change(&work.Spec)
		}
	}
	fill()
	err := r.Create(context.Background(), work)
	if apierrors.IsAlreadyExists(err) {
		r.refresh(work)
		before := work.DeepCopy()
		fill()
		err = r.Patch(context.Background(), work, client.MergeFrom(before))
	}
	r.check(err)
	return work
}

func (r *rig) refresh(o client.Object) {
	r.t.Helper()
	r.check(r.Get(context.Background(), client.ObjectKeyFromObject(o), o))
}

func (r *rig) eventually(what string, check func() error) {
	r.t.Helper()
	testkube.Eventually(r.t, what, check)
}

// until waits until a condition of a Work, as of its generation, has a reason, and
// returns the condition.
func (r *rig) until(work *placement.Work, kind, reason string) metav1.Condition {
	r.t.Helper()
	var found metav1.Condition
	r.eventually(fmt.Sprintf("%s of Work %s is %s", kind, work.Name, reason), func() error {
		if err := r.Get(context.Background(), client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(work.Status.Conditions, kind)
		if condition == nil || condition.Reason != reason || condition.ObservedGeneration != work.Generation {
			return fmt.Errorf("it is %+v at generation %d", condition, work.Generation)
		}
		found = *condition
		return nil
	})
	return found
}

func (r *rig) applied(work *placement.Work) {
	r.t.Helper()
	r.until(work, placement.ConditionApplied, placement.ReasonAllApplied)
}

// of returns the condition of one manifest.
func (r *rig) of(work *placement.Work, ordinal int, kind string) metav1.Condition {
	r.t.Helper()
	if len(work.Status.ManifestConditions) <= ordinal {
		r.t.Fatalf("status of %d manifests: %+v", len(work.Status.ManifestConditions), work.Status)
	}
	if condition := meta.FindStatusCondition(work.Status.ManifestConditions[ordinal].Conditions, kind); condition != nil {
		return *condition
	}
	return metav1.Condition{}
}

// untilOf waits until the condition of one manifest has a reason.
func (r *rig) untilOf(work *placement.Work, ordinal int, kind, reason string) metav1.Condition {
	r.t.Helper()
	r.eventually(fmt.Sprintf("%s of manifest %d is %s", kind, ordinal, reason), func() error {
		r.refresh(work)
		if len(work.Status.ManifestConditions) <= ordinal {
			return fmt.Errorf("status %+v", work.Status)
		}
		if is := r.of(work, ordinal, kind); is.Reason != reason || is.ObservedGeneration != work.Generation {
			return fmt.Errorf("it is %+v", is)
		}
		return nil
	})
	return r.of(work, ordinal, kind)
}

func (r *rig) owner(work *placement.Work) *placement.AppliedWork {
	r.t.Helper()
	owner := &placement.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: work.Name}}
	r.refresh(owner)
	return owner
}

// configMap reads a ConfigMap of the member namespace.
func (r *rig) configMap(name string) (*corev1.ConfigMap, error) {
	found := &corev1.ConfigMap{}
	return found, r.Get(context.Background(), client.ObjectKey{Namespace: r.namespace, Name: name}, found)
}

func (r *rig) mustConfigMap(name string) *corev1.ConfigMap {
	r.t.Helper()
	found, err := r.configMap(name)
	r.check(err)
	return found
}

func (r *rig) untilGone(what string, o client.Object) {
	r.t.Helper()
	r.eventually(what+" is gone", func() error {
		if err := r.Get(context.Background(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%v, %v", err, o.GetFinalizers())
		}
		return nil
	})
}

// untilData waits until a ConfigMap has a value.
func (r *rig) untilData(name, field, value string) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("ConfigMap %s has %s=%s", name, field, value), func() error {
		found, err := r.configMap(name)
		if err == nil && found.Data[field] != value {
			err = fmt.Errorf("it has %v", found.Data)
		}
		return err
	})
}

// edit changes a ConfigMap as a user of kubectl edit does.
func (r *rig) edit(name string, change func(*corev1.ConfigMap)) {
	r.t.Helper()
	r.eventually("editing "+name, func() error {
		found := r.mustConfigMap(name)
		change(found)
		return r.Update(context.Background(), found, client.FieldOwner("kubectl-edit"))
	})
}

func (r *rig) object(document string) *unstructured.Unstructured {
	r.t.Helper()
	object := &unstructured.Unstructured{}
	r.check(object.UnmarshalJSON(r.manifests(document)[0].Raw))
	return object
}

// configMap is a manifest in the member namespace, which is as good a place as any.
func configMap(name, data string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: fleet-member-NAME}, data: {%s}}", name, data)
}
