package report

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/kubeclient"
)

// node is the stored part of a Node.
type node struct {
	ready                 bool
	capacity, allocatable corev1.ResourceList
	traits                traits
}

func (n node) equal(other node) bool {
	return n.ready == other.ready && n.traits == other.traits && equality.Semantic.DeepEqual(n.capacity, other.capacity) &&
		equality.Semantic.DeepEqual(n.allocatable, other.allocatable)
}

// nodes is the store of the member's nodes, stripped.
type nodes struct {
	kubeclient.Store[*corev1.Node]
	byName map[string]node
}

func newNodes(changed chan struct{}) *nodes {
	n := &nodes{byName: map[string]node{}}
	n.Store = kubeclient.Store[*corev1.Node]{
		Changed: changed, Put: n.put, Drop: n.drop, Reset: func() { clear(n.byName) }, Strip: stripNode, InPages: true,
	}
	return n
}

// stripNode keeps the needed fields of a node, without its list of images.
func stripNode(o *corev1.Node) *corev1.Node {
	stripped := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}}
	stripped.Status.Capacity, stripped.Status.Allocatable = o.Status.Capacity, o.Status.Allocatable
	stripped.Spec.ProviderID = o.Spec.ProviderID
	stripped.Status.NodeInfo.Architecture, stripped.Status.NodeInfo.OSImage = o.Status.NodeInfo.Architecture, o.Status.NodeInfo.OSImage
	for _, key := range readLabels {
		if value, labelled := o.Labels[key]; labelled {
			metav1.SetMetaDataLabel(&stripped.ObjectMeta, key, value)
		}
	}
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.NodeReady {
			stripped.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return stripped
}

// put stores a node, and reports whether it has changed: most updates only renew a heartbeat.
func (n *nodes) put(object *corev1.Node) bool {
	ready := slices.ContainsFunc(object.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	fresh := node{
		ready: ready, capacity: object.Status.Capacity, allocatable: object.Status.Allocatable, traits: traitsOf(object),
	}
	old, known := n.byName[object.Name]
	if known && old.equal(fresh) {
		return false
	}
	n.byName[object.Name] = fresh
	return true
}

func (n *nodes) drop(object *corev1.Node) { delete(n.byName, object.Name) }

// summary sums up the nodes.
func (n *nodes) summary() summary {
	n.Lock()
	defer n.Unlock()
	s := summarize(n.byName)
	s.listed = n.Listed
	return s
}

// summary is the part of a report about nodes.
type summary struct {
	// listed is false until the nodes have been listed once.
	listed                bool
	nodes                 clusterv1beta1.NodeSummary
	capacity, allocatable corev1.ResourceList
	// available is nil until the pods have been listed once.
	available corev1.ResourceList
	// facts of the nodes by name.
	facts map[string]string
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
		combine(s.capacity, (*resource.Quantity).Add, n.capacity)
		combine(s.allocatable, (*resource.Quantity).Add, n.allocatable)
	}
	s.nodes.Sample = first
	if firstReady != "" {
		s.nodes.Sample = firstReady
	}
	s.facts = factsOf(byName, s.capacity)
	return s
}

// combine adds a list to a sum, or subtracts it.
func combine(sum corev1.ResourceList, with func(*resource.Quantity, resource.Quantity), list corev1.ResourceList) {
	for name, quantity := range list {
		total := sum[name].DeepCopy()
		with(&total, quantity)
		sum[name] = total
	}
}
