package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/deployer"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/kubeclient"
)

// deployed counts what all members have answered.
type deployed struct {
	agents, bundles, works, failures atomic.Int64
	// problem is the last failure.
	problem atomic.Pointer[error]
}

// fail counts a failure.
func (d *deployed) fail(err error) {
	d.failures.Add(1)
	d.problem.Store(&err)
}

// program is a run of a simulated deployer. It follows what is placed on its member and says of each object that it is deployed. What it does on
// the hub is what muster-deployer does: a connection of its own, two watches, one read of each Content, one write of each status.
type program struct {
	*native
	ctx     context.Context
	end     context.CancelFunc
	replies io.Writer
	hub     *hubclient.Member

	bundles *kubeclient.Store[*fleet.BundleDeployment]
	placed  *kubeclient.Store[*metav1.PartialObjectMetadata]
	running sync.WaitGroup
	mu      sync.Mutex
	// answered are the generations of the BundleDeployments whose status is written, others 0; agents is that of the agent itself.
	answered map[string]int64
	agents   string
	works    int
}

// deploy plays muster-deployer until the agent itself is all that was deployed, or the member leaves.
func (n *native) deploy(ctx context.Context, orders io.Reader, replies io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &program{native: n, ctx: ctx, end: cancel, replies: replies, answered: map[string]int64{}}
	changed := make(chan struct{}, 1)
	p.bundles = &kubeclient.Store[*fleet.BundleDeployment]{Changed: changed, Put: p.putBundle, Drop: p.dropBundle, Reset: func() {}}
	p.placed = &kubeclient.Store[*metav1.PartialObjectMetadata]{Changed: changed, Put: p.putWork, Drop: func(*metav1.PartialObjectMetadata) {}, Reset: func() {}}
	received := make(chan deployer.Order)
	go func() {
		_ = deployer.ReadOrders(orders, func(order deployer.Order) { // the pipe is closed when this program ends
			select {
			case received <- order:
			case <-ctx.Done():
			}
		})
	}()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-changed:
			p.endIfIdle()
		case order := <-received:
			if err := p.follow(order); err != nil {
				cancel()
			}
		}
	}
	p.running.Wait()
	if p.hub != nil {
		p.hub.Close()
	}
	return nil
}

var errLeaves = errors.New("the member leaves")

// follow takes an order of the agent.
func (p *program) follow(order deployer.Order) error {
	if order.Leave == clusterv1beta1.LeaveDelete {
		_ = deployer.Reply{Emptied: true}.Send(p.replies) // the agent reads to the end
	}
	if order.Leave != "" {
		return errLeaves
	}
	if p.hub != nil {
		p.hub.SetToken(order.Token)
		return nil
	}
	hub, err := hubclient.Dial(order.Hub, order.Token, clock.RealClock{})
	if err != nil {
		return err
	}
	if p.hub, err = hub.Member(order.Namespace, order.Name); err != nil {
		return err
	}
	deployments, err := p.hub.Deployments()
	if err != nil {
		return err
	}
	p.running.Go(func() { kubeclient.Follow(p.ctx, deployments, "", p.bundles, func(error) {}) })
	p.running.Go(func() { p.hub.FollowPlaced(p.ctx, hubclient.Works, p.placed, func(error) {}) })
	return nil
}

// endIfIdle ends the program when nothing is left to do or to watch: the agent's own release needs no program while it is well.
func (p *program) endIfIdle() {
	if !p.bundles.IsListed() || !p.placed.IsListed() {
		return
	}
	p.mu.Lock()
	generation := p.answered[p.agents]
	idle := p.works == 0 && (len(p.answered) == 0 || len(p.answered) == 1 && generation > 0)
	p.mu.Unlock()
	if !idle {
		return
	}
	if generation > 0 {
		_ = deployer.Reply{Kind: deployer.Bundles, Idle: map[string]int64{p.agents: generation}}.Send(p.replies) // the agent reads to the end
	}
	p.end()
}

func (p *program) putBundle(d *fleet.BundleDeployment) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.Labels[fleet.LabelAgent] != "" {
		p.agents = d.Name
	}
	p.answered[d.Name] = 0
	if d.Status.AppliedDeploymentID == d.Spec.DeploymentID {
		p.answered[d.Name] = d.Generation
	} else {
		p.running.Go(func() { p.count(p.answerBundle(d), d.Labels[fleet.LabelAgent] != "") })
	}
	return true
}

func (p *program) dropBundle(d *fleet.BundleDeployment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.answered, d.Name)
}

// count counts an answer to a BundleDeployment.
func (p *program) count(err error, ofAgent bool) {
	switch {
	case err != nil && p.ctx.Err() != nil: // the program ended
	case err != nil:
		p.deployed.fail(err)
	case ofAgent:
		p.deployed.agents.Add(1)
	default:
		p.deployed.bundles.Add(1)
	}
}

// answerBundle reads the Content, as the program does, and says that it is deployed: a release of ten objects that is well.
func (p *program) answerBundle(d *fleet.BundleDeployment) error {
	if _, err := p.hub.Content(p.ctx, delivery.ContentName(d.Spec.DeploymentID)); err != nil {
		return err
	}
	now := time.Now().UTC().Format(time.RFC3339)
	var conditions, resources []map[string]string
	for _, kind := range []string{fleet.ConditionDeployed, fleet.ConditionInstalled, fleet.ConditionMonitored, fleet.ConditionReady} {
		conditions = append(conditions, map[string]string{"type": kind, "status": "True", "lastUpdateTime": now, "lastTransitionTime": now})
	}
	for i := range 10 {
		resources = append(resources, map[string]string{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": fmt.Sprintf("object-%d", i)})
	}
	return p.patch(hubclient.BundleDeployments, d.Name, map[string]any{
		"appliedDeploymentID": d.Spec.DeploymentID, "ready": true, "nonModified": true, "release": "default/" + d.Name + ":1", "conditions": conditions,
		"resources": resources, "resourceCounts": map[string]any{"ready": 10, "desiredReady": 10},
	})
}

// patch writes a status to its end: the watch may show it, and end the program, before the answer comes.
func (p *program) patch(resource schema.GroupVersionResource, name string, status map[string]any) error {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	return p.hub.PatchStatus(context.WithoutCancel(p.ctx), resource, name, patch)
}

func (p *program) putWork(object *metav1.PartialObjectMetadata) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.works++
	p.running.Go(func() {
		if err := p.answerWork(object); err != nil && p.ctx.Err() == nil {
			p.deployed.fail(err)
		}
	})
	return true
}

// answerWork says of a Work that it is applied and available, once for each generation.
func (p *program) answerWork(object *metav1.PartialObjectMetadata) error {
	var status placement.WorkStatus
	if err := p.hub.Status(p.ctx, hubclient.Works, object.Name, &status); err != nil {
		return err
	}
	var conditions []metav1.Condition
	for _, kind := range []string{placement.ConditionApplied, placement.ConditionAvailable} {
		conditions = append(conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: "Simulated", ObservedGeneration: object.Generation, LastTransitionTime: metav1.Now(),
		})
	}
	for _, c := range status.Conditions {
		if c.ObservedGeneration == object.Generation {
			return nil
		}
	}
	p.deployed.works.Add(1)
	return p.patch(hubclient.Works, object.Name, map[string]any{"conditions": conditions})
}
