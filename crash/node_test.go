package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/testkube"
)

// agentDeployment is the name of the Deployment of the chart fleet-agent.
const agentDeployment = "fleet-agent"

// node plays the kubelet for the Pods of a run's agent. The member has no nodes: Kubernetes creates
// these Pods, but no kubelet runs them.
type node struct {
	// own is the member disguised as a cluster that no other run has, member the way of
	// the programs to it.
	own, member testkube.Cluster
	pods        map[types.UID]*pod
}

// pod is the program of a Pod, and its address.
type pod struct {
	*process
	address string
}

// newNode gives the run a node, on a member where nothing is left of the agents of earlier runs.
func (in *run) newNode() {
	in.t.Helper()
	own := in.member.Disguise(in.t, string(uuid.NewUUID()), nil)
	in.node = &node{own: own, member: in.wire.front(in.t, own, atMember), pods: map[types.UID]*pod{}}
	in.t.Cleanup(in.forgetAgent)
	for _, list := range []client.ObjectList{&rbacv1.ClusterRoleBindingList{}, &rbacv1.ClusterRoleList{}} {
		in.check(in.on.List(context.Background(), list))
		in.check(meta.EachListItem(list, func(o runtime.Object) error {
			if left := o.(client.Object); strings.HasPrefix(left.GetName(), "fleet-agent-") {
				return in.on.Delete(context.Background(), left)
			}
			return nil
		}))
	}
}

// forgetAgent deletes the Cluster after the run. Otherwise the hub would install its agent again,
// and keep others waiting for it. The chart of agents is in one Content, and no object refers to it
// then.
func (in *run) forgetAgent() {
	in.node = nil
	in.check(client.IgnoreNotFound(in.Delete(context.Background(), in.cluster())))
	in.eventually("the Content of the run is gone", func() error {
		var contents fleet.ContentList
		if err := in.List(context.Background(), &contents); err != nil {
			return err
		}
		for _, c := range contents.Items {
			if !slices.Contains(in.known.contents, c.Name) {
				return fmt.Errorf("%s is there", c.Name)
			}
		}
		return nil
	})
}

// runPods starts and ends what the Pods of the agent ask for, and says which of them are ready. All
// that waits does that again and again.
func (in *run) runPods() {
	in.t.Helper()
	if in.node == nil {
		return
	}
	var pods corev1.PodList
	in.check(in.on.List(context.Background(), &pods, client.InNamespace(in.agentNamespace())))
	wanted := map[types.UID]bool{}
	for _, p := range pods.Items {
		wanted[p.UID] = true
		if in.node.pods[p.UID] == nil {
			in.node.pods[p.UID] = in.startPod(&p)
		}
		in.showPod(&p, in.node.pods[p.UID])
	}
	for uid, p := range in.node.pods {
		if !wanted[uid] {
			in.end(p.process)
			delete(in.node.pods, uid)
		}
	}
}

// startPod starts muster-agent with the arguments, the variables and the account of a Pod, at a
// loopback address of its own.
func (in *run) startPod(p *corev1.Pod) *pod {
	in.t.Helper()
	address := fmt.Sprintf("127.%d.%d.%d", 100+rand.N(100), rand.N(250), 1+rand.N(250))
	container := p.Spec.Containers[0]
	fields := map[string]string{"metadata.name": p.Name, "metadata.namespace": p.Namespace, "status.podIP": address}
	env := []string{"KUBECONFIG=" + in.kubeconfig(in.t, in.node.member, bearer(in.t, in.on, p.Namespace, p.Spec.ServiceAccountName))}
	for _, v := range container.Env {
		value := v.Value
		if from := v.ValueFrom; from != nil && from.FieldRef != nil {
			value = fields[from.FieldRef.FieldPath]
		} else if from != nil {
			value = fmt.Sprint(container.Resources.Limits.Memory().Value())
		}
		env = append(env, v.Name+"="+value)
	}
	// The kubeconfig leads to the cluster of the Pod.
	args := append(slices.Clone(container.Args), "--deployment", agentDeployment)
	return &pod{in.run(in.t, agent, "muster-agent", env, args...), address}
}

// showPod writes whether a Pod is ready, by its own probe, if that has changed.
func (in *run) showPod(p *corev1.Pod, running *pod) {
	in.t.Helper()
	status := corev1.ConditionFalse
	if running.ready() {
		status = corev1.ConditionTrue
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == status {
			return
		}
	}
	shown := p.DeepCopy()
	shown.Status.Phase, shown.Status.PodIP = corev1.PodRunning, running.address
	shown.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.Now()}}
	in.check(client.IgnoreNotFound(in.on.Status().Patch(context.Background(), shown, client.MergeFrom(p))))
}

func (p *pod) ready() bool {
	probe := http.Client{Timeout: time.Second}
	answer, err := probe.Get("http://" + p.address + ":8081/readyz")
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}
