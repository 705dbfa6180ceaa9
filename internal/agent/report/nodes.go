package report

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

// node is what is kept of a Node.
type node struct {
	ready                 bool
	capacity, allocatable corev1.ResourceList
}

func (n node) equal(other node) bool {
	return n.ready == other.ready && equality.Semantic.DeepEqual(n.capacity, other.capacity) &&
		equality.Semantic.DeepEqual(n.allocatable, other.allocatable)
}

// nodes is the store that a watch keeps equal to the member's nodes, stripped.
type nodes struct {
	changed chan struct{}

	mu     sync.Mutex
	synced bool
	byName map[string]node
}

func newNodes(changed chan struct{}) *nodes {
	return &nodes{changed: changed, byName: map[string]node{}}
}

func strip(n *corev1.Node) node {
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	return node{ready: ready, capacity: n.Status.Capacity, allocatable: n.Status.Allocatable}
}

func (n *nodes) update(change func()) error {
	n.mu.Lock()
	change()
	n.mu.Unlock()
	select {
	case n.changed <- struct{}{}:
	default:
	}
	return nil
}

// Add implements cache.ReflectorStore.
func (n *nodes) Add(obj any) error { return n.Update(obj) }

// Update implements cache.ReflectorStore.
func (n *nodes) Update(obj any) error {
	object := obj.(*corev1.Node)
	fresh := strip(object)
	n.mu.Lock()
	old, known := n.byName[object.Name]
	n.mu.Unlock()
	if known && old.equal(fresh) {
		// A kubelet that only says that it is alive is no news.
		return nil
	}
	return n.update(func() { n.byName[object.Name] = fresh })
}

// Delete implements cache.ReflectorStore.
func (n *nodes) Delete(obj any) error {
	return n.update(func() { delete(n.byName, obj.(*corev1.Node).Name) })
}

// Replace implements cache.ReflectorStore.
func (n *nodes) Replace(list []any, _ string) error {
	return n.update(func() {
		n.synced = true
		n.byName = make(map[string]node, len(list))
		for _, obj := range list {
			object := obj.(*corev1.Node)
			n.byName[object.Name] = strip(object)
		}
	})
}

// Resync implements cache.ReflectorStore.
func (n *nodes) Resync() error { return nil }

// summary adds the nodes up.
func (n *nodes) summary() summary {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := summarize(n.byName)
	s.listed = n.synced
	return s
}

// summary is what a report says of the nodes.
type summary struct {
	// listed is false until the nodes have been listed once.
	listed                bool
	nodes                 clusterv1beta1.NodeSummary
	capacity, allocatable corev1.ResourceList
	// available is nil until the pods have been listed once.
	available corev1.ResourceList
}

func summarize(byName map[string]node) summary {
	s := summary{capacity: corev1.ResourceList{}, allocatable: corev1.ResourceList{}}
	var firstReady, first string
	for name, n := range byName {
		s.nodes.Total++
		if first == "" || name < first {
			first = name
		}
		if n.ready {
			s.nodes.Ready++
			if firstReady == "" || name < firstReady {
				firstReady = name
			}
		}
		add(s.capacity, n.capacity)
		add(s.allocatable, n.allocatable)
	}
	s.nodes.Sample = first
	if firstReady != "" {
		s.nodes.Sample = firstReady
	}
	return s
}

func add(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total := sum[name].DeepCopy()
		total.Add(quantity)
		sum[name] = total
	}
}
