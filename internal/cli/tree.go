package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/explain"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// node is an object, or what is in place of one, with what belongs to it.
type node struct {
	name, state string
	below       []*node
}

func (n *node) add(name, state string) *node {
	child := &node{name: name, state: state}
	n.below = append(n.below, child)
	return child
}

// tree is the command muster tree.
type tree struct {
	genericiooptions.IOStreams
	*access
	c   client.Client
	ctx context.Context
}

func newTree(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	t := &tree{IOStreams: streams, access: h}
	looked := lookedFor{"muster tree", kindsNamed("members")}
	command := &cobra.Command{
		Use:   "tree [clusters|memberclusters] NAME",
		Short: "Show all that the hub has of a member",
		Long: `tree shows a member's record and what stands behind it: its namespace on the hub, the identity of its agent, the report and the heartbeat, and what is delivered
to it, each with its state. What does not exist, and what the user may not see, is said.`,
		Example: `  muster tree clusters/web
  muster tree edge-1`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			o, c, err := h.subject(command.Context(), looked, args)
			if err != nil {
				return err
			}
			t.c, t.ctx = c, command.Context()
			return t.print(t.of(o))
		},
	}
	command.ValidArgsFunction = h.completeNames(looked)
	return command
}

// of is the tree of a member.
func (t *tree) of(record client.Object) *node {
	root := &node{name: t.title(record), state: t.stateOf(record)}
	member := membership.Of(record)
	namespace, foreign := &corev1.Namespace{}, false
	below := root.add("Namespace "+member.Namespace, t.read(namespace, "", member.Namespace, func() string {
		key, made := membership.RecordOf(namespace)
		if foreign = !made || key != client.ObjectKeyFromObject(record); foreign {
			return "not made for this member"
		}
		return string(namespace.Status.Phase)
	}))
	t.addNamed(root, record)
	if foreign { // what is in it is somebody else's
		return root
	}
	below.add("identity ServiceAccount "+naming.MemberServiceAccount, t.read(&corev1.ServiceAccount{}, member.Namespace, naming.MemberServiceAccount, func() string {
		if expires := expiresOf(record); expires != nil {
			return "there, its credential expires " + until(expires, time.Now())
		}
		return "there"
	}))
	report := &clusterv1beta1.InternalMemberCluster{}
	below.add("report InternalMemberCluster "+member.Name, t.read(report, member.Namespace, member.Name, func() string { return reported(report) }))
	lease := &coordinationv1.Lease{}
	below.add("heartbeat Lease "+naming.HeartbeatLease, t.read(lease, member.Namespace, naming.HeartbeatLease, func() string {
		if lease.Spec.RenewTime == nil {
			return "never renewed"
		}
		return "renewed " + since(lease.Spec.RenewTime.Time, time.Now()) + " ago"
	}))
	t.addEach(below, &fleet.BundleDeploymentList{}, "BundleDeployment", member.Namespace)
	t.addEach(below, &placement.WorkList{}, "Work", member.Namespace)
	return root
}

// addNamed adds the identity that a MemberCluster names, with whose token its agent came.
func (t *tree) addNamed(root *node, record client.Object) {
	mc, ok := record.(*clusterv1beta1.MemberCluster)
	if !ok {
		return
	}
	who := mc.Spec.Identity
	if who.Kind != rbacv1.ServiceAccountKind {
		root.add("identity "+who.Kind+" "+who.Name, nothing)
		return
	}
	root.add("identity ServiceAccount "+who.Namespace+"/"+who.Name, t.read(&corev1.ServiceAccount{}, who.Namespace, who.Name, func() string { return "there" }))
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
func (t *tree) read(o client.Object, namespace, name string, state func() string) string {
	err := t.c.Get(t.ctx, client.ObjectKey{Namespace: namespace, Name: name}, o)
	if err != nil {
		return absent(err)
	}
	if o.GetDeletionTimestamp() != nil {
		return stateDeleting
	}
	return state()
}

// absent is what is shown in place of something that is not seen.
func absent(err error) string {
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
func (t *tree) addEach(below *node, list client.ObjectList, kind, namespace string) {
	err := eachOf(t.ctx, t.c, list, func(o client.Object) {
		state := stateReady
		if o.GetDeletionTimestamp() != nil {
			state = stateDeleting
		} else if findings := explain.Of(o); len(findings) > 0 {
			state = or(findings[0].Reason)
			if said := why(false, findings[0].Message); said != nothing {
				state += ": " + said
			}
		}
		below.add(kind+" "+o.GetName(), state)
	}, client.InNamespace(namespace))
	if err != nil {
		below.add(kind+"s", absent(err))
	}
}

// branches are the lines of a tree: to one that is not the last, past it, to the last, and past that.
type branches struct{ to, past, last, end string }

// print prints a tree, with the lines of terminals that have them.
func (t *tree) print(root *node) error {
	lines := branches{"├─ ", "│  ", "└─ ", "   "}
	if !speaksUTF8(os.Getenv) {
		lines = branches{"|- ", "|  ", "`- ", "   "}
	}
	p := &prose{out: t.Out}
	p.line("%s  %s", root.name, root.state)
	p.below(root, "", lines)
	return p.err
}

func (p *prose) below(n *node, before string, lines branches) {
	for i, child := range n.below {
		to, past := lines.to, lines.past
		if i == len(n.below)-1 {
			to, past = lines.last, lines.end
		}
		p.line("%s%s%s  %s", before, to, child.name, child.state)
		p.below(child, before+past, lines)
	}
}

// speaksUTF8 says whether the terminal shows more than ASCII, as the first of these variables does that is set (POSIX, Environment Variables).
func speaksUTF8(variable func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := strings.ToUpper(variable(name)); value != "" {
			return strings.Contains(value, "UTF-8") || strings.Contains(value, "UTF8")
		}
	}
	return false
}
