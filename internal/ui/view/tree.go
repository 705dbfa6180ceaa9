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

// Node is an object, or a note in its place, with its related objects below.
type Node struct {
	Name, State string
	Below       []*Node
}

func (n *Node) add(name, state string) *Node {
	child := &Node{Name: name, State: state}
	n.Below = append(n.Below, child)
	return child
}

// Tree returns a member with its objects on the hub: namespace, identity, report, heartbeat and
// deliveries. A note stands in place of an object if the object is missing, or hidden from the
// client.
func Tree(ctx context.Context, c client.Client, record client.Object) *Node {
	return (&gathering{Client: c, ctx: ctx, listed: map[string]listed{}}).tree(record)
}

func (g *gathering) tree(record client.Object) *Node {
	root := &Node{Name: Title(record), State: State(record)}
	name, namespace, foreign := membership.Namespace(record), &corev1.Namespace{}, false
	below := root.add("Namespace "+name, g.read(namespace, "", name, func() string {
		if foreign = !membership.HasNamespace(record, namespace); foreign {
			return "does not belong to this member"
		}
		return string(namespace.Status.Phase)
	}))
	g.addNamed(root, record)
	if foreign { // the objects in it belong to another owner
		return root
	}
	below.add("identity ServiceAccount "+naming.MemberServiceAccount,
		g.read(&corev1.ServiceAccount{}, name, naming.MemberServiceAccount, func() string {
			if expires := Expires(record); expires != nil {
				return "there, its credential expires " + Until(expires, time.Now())
			}
			return "there"
		}))
	report := &clusterv1beta1.InternalMemberCluster{}
	below.add("report InternalMemberCluster "+record.GetName(),
		g.read(report, name, record.GetName(), func() string { return reported(report) }))
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

// addNamed adds the identity named by a MemberCluster. The agent began with a token of this
// identity.
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
	root.add("identity ServiceAccount "+who.Namespace+"/"+who.Name,
		g.read(&corev1.ServiceAccount{}, who.Namespace, who.Name, func() string { return "there" }))
}

// reported returns the hub's request in a report and the agent's answer.
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

// read reads an object and returns its state, or a note if it does not exist, is hidden from the
// user, or cannot be read.
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

// Absent returns the note in place of an unread object.
func Absent(err error) string {
	switch {
	case kube.NotServed(err):
		return "its kind is not served"
	case apierrors.IsNotFound(err):
		return "missing"
	case apierrors.IsForbidden(err):
		return "you may not see it"
	}
	return "cannot be read: " + err.Error()
}

// addEach adds the objects of a kind with their problems.
func (g *gathering) addEach(below *Node, list client.ObjectList, kind, namespace string) {
	objects := g.in(namespace, list)
	for _, o := range objects.objects {
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
	if objects.err != nil {
		below.add(kind+"s", Absent(objects.err))
	}
}
