package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

const agentNamespace = naming.SystemNamespace

// native is a member with a real Muster agent.
type native struct {
	id       string
	api      *memberAPI
	deployed *deployed
	// jobs is the period of a Job on the member; 0 for no Job.
	jobs time.Duration
	// link is the connection to the hub, if it can be disturbed; clock is the clock of the agent.
	link  *testkube.Link
	clock clock.Clock

	agent  *agent.Agent
	cancel context.CancelFunc
	ended  sync.WaitGroup

	mu  sync.Mutex
	log []string
}

// newNative returns a member just after the installation of the chart fleet-agent.
func (r *run) newNative(i int) *native {
	n := &native{id: fmt.Sprintf("member-%d", i), api: newMemberAPI(string(uuid.NewUUID())), deployed: &r.deployed, jobs: r.options.jobs}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: naming.AgentBootstrapSecret},
		Data: map[string][]byte{
			"apiServerURL": []byte(r.reach(n, i)), "apiServerCA": r.cluster.Config.CAData,
		}}
	for _, key := range []string{"token", "tokenName", "clusterNamespace", "systemRegistrationNamespace"} {
		secret.Data[key] = []byte(r.values[key])
	}
	n.api.put("secrets", secret)
	n.api.put("configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: naming.AgentConfigMap},
		Data: map[string]string{"config": fmt.Sprintf(`{"clientID":%q}`, n.id)}})
	return n
}

// start starts the agent, again after silence.
func (n *native) start() error {
	running, err := agent.New(agent.Options{
		Member: &rest.Config{Host: "http://" + n.id, Transport: n.api}, Namespace: agentNamespace, Hostname: "agent-0",
		Delivery: agent.Delivery{Simulation: n.deploy}, Clock: n.clock, Log: funcr.New(n.keep, funcr.Options{LogTimestamp: true}),
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.agent, n.cancel = running, cancel
	n.ended.Go(func() { running.Run(ctx) })
	if n.jobs > 0 {
		n.ended.Go(func() { n.api.runJobs(ctx, n.jobs) })
	}
	return nil
}

// joined reports whether the hub has accepted a heartbeat.
func (n *native) joined() bool {
	_, _, joined := n.agent.Status()
	return joined
}

// keep stores the last lines of the agent's log.
func (n *native) keep(_, line string) {
	const enough = 20
	n.mu.Lock()
	defer n.mu.Unlock()
	n.log = append(n.log[max(0, len(n.log)-enough+1):], line)
}

func (n *native) says() string {
	state, reason, _ := n.agent.Status()
	n.mu.Lock()
	defer n.mu.Unlock()
	return fmt.Sprintf("%s: %s\n%s", state, reason, strings.Join(n.log, "\n"))
}

// silence ends the agent without a message to the hub.
func (n *native) silence() {
	n.cancel()
	n.ended.Wait()
}

// record returns the name of the Cluster.
func (n *native) record() string { return naming.Cluster(n.id) }
