package hub_test

import (
	"context"
	"encoding/base64"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// slack is what a busy machine may add to what the hub and the agents need.
const slack = 30 * time.Second

// every sets how often the agent beats.
func every(seconds int32) func(*clusterv1beta1.MemberCluster) {
	return func(mc *clusterv1beta1.MemberCluster) { mc.Spec.HeartbeatPeriodSeconds = seconds }
}

// tokenSecret is the name of the Secret with the hub's token on the cluster of a MemberCluster.
const tokenSecret = "hub-kubeconfig-secret"

// membership puts the token of the identity on a cluster, which is the hub's own or another, and
// returns what the chart would give the agent there.
func (r *registered) membership(on fixture, namespace string) agent.Membership {
	r.t.Helper()
	r.check(on.Create(context.Background(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: tokenSecret}, StringData: map[string]string{"token": r.bearer(r.name)},
	}))
	return agent.Membership{
		Server: r.cluster.Config.Host, Name: r.name, CA: base64.StdEncoding.EncodeToString(r.cluster.Config.CAData),
		SecretNamespace: namespace, SecretName: tokenSecret,
	}
}

// serve starts an agent of the member on a cluster.
func (r *registered) serve(on fixture, options ...func(*agent.Options)) *member {
	r.t.Helper()
	m := &member{fixture: on, agentNamespace: on.namespace("agent-")}
	given := r.membership(on, m.agentNamespace)
	m.options = append(options, func(o *agent.Options) { o.Membership = &given })
	m.start()
	return m
}

// agentProcess starts muster-agent as it runs in a pod, but for the kubeconfig.
func (f fixture) agentProcess(namespace string, args ...string) *testkube.Program {
	f.t.Helper()
	return testkube.Run(f.t, "muster-agent", append([]string{
		"--kubeconfig", filepath.Join(f.cluster.Dir, "kubeconfig"), "--namespace", namespace,
		"--health-probe-bind-address", "0", "--metrics-bind-address", "0",
	}, args...)...)
}

// attended is a member whose agent is a process.
type attended struct {
	process *testkube.Program
	// untilAlive and untilLost return when, by the condition, the member became so.
	untilAlive, untilLost func() time.Time
	namespace             string
}

func (f fixture) attendedMemberCluster() attended {
	f.t.Helper()
	r := f.register("process", every(10))
	r.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	namespace := f.namespace("agent-")
	given := r.membership(f, namespace)
	since := func(status metav1.ConditionStatus, reason string) func() time.Time {
		return func() time.Time { return r.until("Healthy", status, reason).LastTransitionTime.Time }
	}
	return attended{
		process: f.agentProcess(namespace, "--hub-server-url", given.Server, "--member-cluster-name", given.Name,
			"--hub-certificate-authority", given.CA, "--hub-token-secret", namespace+"/"+tokenSecret),
		untilAlive: since(metav1.ConditionTrue, "MemberClusterHealthy"), untilLost: since(metav1.ConditionFalse, "AgentLost"),
		namespace: r.namespaceName(),
	}
}

func (f fixture) attendedCluster() attended {
	f.t.Helper()
	_, values := f.token("new-token", "")
	m := f.install(values, map[string]any{"clientID": "process"})
	since := func(reason string) func() time.Time {
		return func() time.Time {
			cluster := f.untilReady(naming.Cluster("process"), reason)
			at, err := time.Parse(time.RFC3339, kube.FindCondition(cluster.Status.Conditions, fleet.ConditionReady).LastTransitionTime)
			f.check(err)
			return at
		}
	}
	return attended{
		process: f.agentProcess(m.agentNamespace, "--delivery=false"), untilAlive: since("Ready"), untilLost: since("AgentLost"),
		namespace: naming.MemberNamespace(f.workspace, naming.Cluster("process")),
	}
}

// TestSilentProcessIsLostInThreePeriodsAndBackWithOneBeat stops an agent in the two ways in which
// the agent cannot leave. Both kinds of members beat every ten seconds.
func TestSilentProcessIsLostInThreePeriodsAndBackWithOneBeat(t *testing.T) {
	f := newFixture(t)
	const period = 10 * time.Second
	for name, c := range map[string]struct {
		attend          func(fixture) attended
		silence, revive func(*testkube.Program)
	}{
		"a killed agent of a Cluster":       {fixture.attendedCluster, (*testkube.Program).Kill, (*testkube.Program).Start},
		"a paused agent of a Cluster":       {fixture.attendedCluster, pause, resume},
		"a killed agent of a MemberCluster": {fixture.attendedMemberCluster, (*testkube.Program).Kill, (*testkube.Program).Start},
		"a paused agent of a MemberCluster": {fixture.attendedMemberCluster, pause, resume},
	} {
		f := f
		f.workspace = f.namespace("clusters-")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f.t = t
			m := c.attend(f)
			m.untilAlive()
			c.silence(m.process)
			lease := leaseOf(m.namespace)
			f.check(f.get(lease, lease.Namespace, lease.Name))
			silent := m.untilLost().Sub(lease.Spec.RenewTime.Truncate(time.Second))
			if silent < 3*period || silent > 3*period+slack {
				t.Errorf("it was lost after a silence of %s, want %s", silent, 3*period)
			}
			revived := time.Now()
			c.revive(m.process)
			if took := m.untilAlive().Sub(revived); took > period+slack {
				t.Errorf("it was back after %s, want within one beat", took)
			}
		})
	}
}

func pause(p *testkube.Program)  { p.Signal(syscall.SIGSTOP) }
func resume(p *testkube.Program) { p.Signal(syscall.SIGCONT) }
