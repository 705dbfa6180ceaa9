package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/restore"
)

// deployed counts the answers of all members.
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

// program is a run of a simulated deployer. It reports each placed object as deployed, and behaves
// on the hub like muster-deployer. It watches whole BundleDeployments and, from the first Work on,
// whole Works in place of the agent. It reads each Content and the values once. It writes each
// status once, and the finalizer of each Work. It discovers no kinds on the hub.
type program struct {
	*native
	ctx context.Context
	end context.CancelFunc
	// replies is written under telling.
	replies io.Writer
	telling sync.Mutex
	hub     *hubclient.Member

	bundles *kubeclient.Store[*fleet.BundleDeployment]
	placed  *kubeclient.Store[*unstructured.Unstructured]
	running sync.WaitGroup
	// followed are the watched kinds.
	followed []protocol.Kind
	mu       sync.Mutex
	// answered holds the generation of each BundleDeployment with a written status, 0 for others.
	// agents is the name of the agent's own one.
	answered map[string]int64
	// answering holds the generation of each BundleDeployment that got an answer, perhaps without
	// its event yet.
	answering map[string]int64
	agents    string
	// works holds the generation of each Work with a written status, 0 for others.
	works map[string]int64
}

// deploy simulates muster-deployer until only the agent is deployed, or the member leaves.
func (n *native) deploy(ctx context.Context, orders io.Reader, replies io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &program{
		native: n, ctx: ctx, end: cancel, replies: replies,
		answered: map[string]int64{}, answering: map[string]int64{}, works: map[string]int64{},
	}
	changed := make(chan struct{}, 1)
	p.bundles = &kubeclient.Store[*fleet.BundleDeployment]{Changed: changed, Put: p.putBundle, Drop: p.dropBundle, Reset: func() {}}
	p.placed = &kubeclient.Store[*unstructured.Unstructured]{Changed: changed, Put: p.putWork, Drop: p.dropWork, Reset: func() {}}
	received := make(chan protocol.Order)
	go func() {
		_ = protocol.ReadOrders(orders, func(order protocol.Order) { // the pipe is closed when this program ends
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

// follow handles an order of the agent.
func (p *program) follow(order protocol.Order) error {
	if order.Leave == clusterv1beta1.LeaveDelete {
		p.reply(protocol.Reply{Emptied: true})
	}
	if order.Leave != "" {
		return errLeaves
	}
	if p.hub != nil {
		p.hub.SetToken(order.Token)
		return p.watch(order.Kinds)
	}
	hub, err := hubclient.Dial(order.Hub, order.Token, clock.RealClock{})
	if err != nil {
		return err
	}
	if p.hub, err = hub.Member(order.Namespace, order.Name); err != nil {
		return err
	}
	return p.watch(order.Kinds)
}

// watch begins to watch the kinds of an order that it does not watch yet.
func (p *program) watch(kinds []protocol.Kind) error {
	for _, kind := range kinds {
		if slices.Contains(p.followed, kind) {
			continue
		}
		p.followed = append(p.followed, kind)
		if kind == protocol.Bundles {
			deployments, err := p.hub.Deployments()
			if err != nil {
				return err
			}
			p.running.Go(func() { kubeclient.Follow(p.ctx, deployments, "", p.told(kind, p.bundles), func(error) {}) })
			continue
		}
		works, err := p.worksOnHub()
		if err != nil {
			return err
		}
		p.running.Go(func() {
			listed := restore.ListWatch(works, func(*metav1.ListOptions) {})
			kubeclient.FollowBy(p.ctx, listed, &unstructured.Unstructured{}, p.told(kind, p.placed), func(error) {})
		})
	}
	return nil
}

// worksOnHub returns the client of the member's whole Works.
func (p *program) worksOnHub() (works, error) {
	all, err := dynamic.NewForConfig(kubeclient.Unlimited(p.hub.Config()))
	if err != nil {
		return works{}, err
	}
	return works{all.Resource(hubclient.Works).Namespace(p.hub.Namespace)}, nil
}

// works implements restore.Objects.
type works struct{ dynamic.ResourceInterface }

func (w works) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return w.ResourceInterface.List(ctx, options)
}

// endIfIdle ends the program once nothing is left to do or to watch. The agent's own release needs
// no program while it is healthy.
func (p *program) endIfIdle() {
	for _, kind := range p.followed {
		if kind == protocol.Bundles && !p.bundles.IsListed() || kind == protocol.Works && !p.placed.IsListed() {
			return
		}
	}
	p.mu.Lock()
	generation := p.answered[p.agents]
	idle := len(p.works) == 0 && (len(p.answered) == 0 || len(p.answered) == 1 && generation > 0)
	p.mu.Unlock()
	if !idle {
		return
	}
	if generation > 0 {
		p.reply(protocol.Reply{Kind: protocol.Bundles, Idle: map[string]int64{p.agents: generation}})
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
	} else if p.answering[d.Name] != d.Generation {
		p.answering[d.Name] = d.Generation
		p.running.Go(func() { p.answerUntilWritten(d) })
	}
	return true
}

// answerUntilWritten answers a BundleDeployment, and tries again after a failure.
func (p *program) answerUntilWritten(d *fleet.BundleDeployment) {
	for {
		err := p.answerBundle(d)
		p.count(err, d.Labels[fleet.LabelAgent] != "")
		if err == nil {
			return
		}
		select {
		case <-p.ctx.Done():
			return
		case <-time.After(2 * time.Second):
		}
	}
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

// answerBundle reads the Content and the values, as muster-deployer does, and reports a healthy
// release of ten objects.
func (p *program) answerBundle(d *fleet.BundleDeployment) error {
	if _, err := p.hub.Content(p.ctx, delivery.ContentName(d.Spec.DeploymentID)); err != nil {
		return err
	}
	if d.Spec.ValuesHash != "" {
		if _, err := p.hub.Secret(p.ctx, d.Name); err != nil {
			return err
		}
	}
	now := time.Now().UTC().Format(time.RFC3339)
	var conditions, resources []map[string]string
	for _, kind := range []string{fleet.ConditionDeployed, fleet.ConditionInstalled, fleet.ConditionMonitored, fleet.ConditionReady} {
		conditions = append(conditions, map[string]string{"type": kind, "status": "True", "lastUpdateTime": now, "lastTransitionTime": now})
	}
	for i := range 10 {
		resources = append(resources, map[string]string{
			"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": fmt.Sprintf("object-%d", i),
		})
	}
	return p.patch(hubclient.BundleDeployments, d.Name, map[string]any{
		"appliedDeploymentID": d.Spec.DeploymentID, "ready": true, "nonModified": true,
		"release": "default/" + d.Name + ":1", "conditions": conditions,
		"resources": resources, "resourceCounts": map[string]any{"ready": 10, "desiredReady": 10},
		"display": map[string]string{"deployed": "True", "monitored": "True", "state": string(fleet.StateReady)},
	})
}

// patch writes a status even if the program ends, because the watch may end it before the answer.
func (p *program) patch(resource schema.GroupVersionResource, name string, status map[string]any) error {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	return p.hub.PatchStatus(context.WithoutCancel(p.ctx), resource, name, patch)
}
