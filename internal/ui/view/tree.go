package view

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/ui/explain"
)

// Node is an object, or what is in place of one, with what belongs to it.
type Node struct {
	Name, State string
	Below       []*Node
}

func (n *Node) add(name, state string) *Node {
	child := &Node{Name: name, State: state}
	n.Below = append(n.Below, child)
	return child
}

// Tree is a member with what stands behind it on the hub: its namespace, identity, report, heartbeat and what is delivered to it. What does not exist, and what the
// client may not see, is said in its place.
func Tree(ctx context.Context, c client.Client, record client.Object) *Node {
	return (&gathering{Client: c, ctx: ctx, listed: map[string]listed{}}).tree(record)
}

func (g *gathering) tree(record client.Object) *Node {
	root := &Node{Name: Title(record), State: State(record)}
	name, namespace, foreign := membership.Namespace(record), &corev1.Namespace{}, false
	below := root.add("Namespace "+name, g.read(namespace, "", name, func() string {
		if foreign = !membership.HasNamespace(record, namespace); foreign {
			return "not made for this member"
		}
		return string(namespace.Status.Phase)
	}))
	g.addNamed(root, record)
	if foreign { // what is in it is somebody else's
		return root
	}
	below.add("identity ServiceAccount "+naming.MemberServiceAccount, g.read(&corev1.ServiceAccount{}, name, naming.MemberServiceAccount, func() string {
		if expires := Expires(record); expires != nil {
			return "there, its credential expires " + Until(expires, time.Now())
		}
		return "there"
	}))
	report := &clusterv1beta1.InternalMemberCluster{}
	below.add("report InternalMemberCluster "+record.GetName(), g.read(report, name, record.GetName(), func() string { return reported(report) }))
	lease := &coordinationv1.Lease{}
	below.add("heartbeat Lease "+naming.HeartbeatLease, g.read(lease, name, naming.HeartbeatLease, func() string {
		if lease.Spec.RenewTime == nil {
			return "never renewed"
		}
		return "renewed " + Since(lease.Spec.RenewTime.Time, time.Now()) + " ago"
	}))
	g.addEach(below, &fleet.BundleDeploymentList{}, "BundleDeployment", name)
	g.addEach(below, &placement.WorkList{}, "Work", name)
	return root
}

// addNamed adds the identity that a MemberCluster names, with whose token its agent came.
func (g *gathering) addNamed(root *Node, record client.Object) {
	mc, ok := record.(*clusterv1beta1.MemberCluster)
	if !ok {
		return
	}
	who := mc.Spec.Identity
	if who.Kind != rbacv1.ServiceAccountKind {
		root.add("identity "+who.Kind+" "+who.Name, Nothing)
		return
	}
	root.add("identity ServiceAccount "+who.Namespace+"/"+who.Name, g.read(&corev1.ServiceAccount{}, who.Namespace, who.Name, func() string { return "there" }))
}

// reported is what a report asks of the agent and what the agent answers.
func reported(report *clusterv1beta1.InternalMemberCluster) string {
	text := "asks to " + string(report.Spec.State)
	if agent := clusterv1beta1.FindAgent(report.Status.AgentStatus, clusterv1beta1.MemberAgent); agent != nil {
		for _, c := range agent.Conditions {
			text += fmt.Sprintf(", %s=%s", c.Type, c.Status)
		}
		return text
	}
	return text + ", no agent has reported"
}

// read reads an object and returns its state; or that it does not exist, may not be seen, or cannot be asked for.
func (g *gathering) read(o client.Object, namespace, name string, state func() string) string {
	err := g.Get(g.ctx, client.ObjectKey{Namespace: namespace, Name: name}, o)
	if err != nil {
		return Absent(err)
	}
	if o.GetDeletionTimestamp() != nil {
		return StateDeleting
	}
	return state()
}

// Absent is what is shown in place of something that is not seen.
func Absent(err error) string {
	switch {
	case kube.NotServed(err):
		return "its kind is not served"
	case apierrors.IsNotFound(err):
		return "missing"
	case apierrors.IsForbidden(err):
		return "you may not see it"
	}
	return "cannot be asked for: " + err.Error()
}

// addEach adds the objects of a kind with what is wrong with them.
func (g *gathering) addEach(below *Node, list client.ObjectList, kind, namespace string) {
	all := g.in(namespace, list)
	for _, o := range all.objects {
		state := StateReady
		if o.GetDeletionTimestamp() != nil {
			state = StateDeleting
		} else if findings := explain.Of(o); len(findings) > 0 {
			state = Or(findings[0].Reason)
			if said := Why(false, findings[0].Message); said != Nothing {
				state += ": " + said
			}
		}
		below.add(kind+" "+o.GetName(), state)
	}
	if all.err != nil {
		below.add(kind+"s", Absent(all.err))
	}
}
