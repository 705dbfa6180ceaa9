package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/ui/view"
)

func newLeave(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	c := &changer{IOStreams: streams, access: h, looked: lookedFor{"muster leave", kindsNamed("members")}, timeout: 5 * time.Minute}
	var empty, orphan, uninstall, yes, dryRun bool
	command := c.command(&cobra.Command{
		Use:   "leave [clusters|memberclusters] NAME",
		Short: "Remove a member from the fleet and wait until it is gone",
		Long: `Delete a Cluster or MemberCluster and show the progress until it is gone. With --delete
the agent first removes all deliveries from the cluster; with --orphan they stay.

Without either flag, the annotation muster/leave-policy of the member decides. Without the
annotation, a Cluster keeps its deliveries, and a MemberCluster loses them. If the cluster
loses deliveries, the command lists them and waits for your answer. On a terminal it always
does, unless --yes is set.

The agent stays on the cluster until you uninstall its chart. With --uninstall-agent, or with the
annotation muster/uninstall-agent: "true", the agent removes itself last, with its namespace. The
account that "muster join --member" made on the hub goes with the member.`,
		Example: `  # Keep the deliveries on the cluster
  muster leave clusters/web --orphan

  # Remove the deliveries from the cluster first
  muster leave edge-1 --delete

  # Remove the deliveries first, then the agent
  muster leave edge-2 --delete --uninstall-agent`,
	}, func(ctx context.Context, hub client.Client, o client.Object) error {
		policy := ""
		if empty {
			policy = string(clusterv1beta1.LeaveDelete)
		} else if orphan {
			policy = string(clusterv1beta1.LeaveOrphan)
		}
		uninstall = uninstall || o.GetAnnotations()[clusterv1beta1.AnnotationUninstallAgent] == "true"
		if dryRun {
			return c.describeLeave(ctx, hub, o, cmp.Or(policy, leavesBy(o)), uninstall)
		}
		if o.GetDeletionTimestamp() == nil {
			if err := c.askBeforeLeave(ctx, hub, o, policy, uninstall, yes); err != nil {
				return err
			}
			if err := c.remove(ctx, hub, o, policy, uninstall); err != nil {
				return err
			}
		} else if policy != "" && policy != leavesBy(o) {
			return fmt.Errorf("%s is already leaving with its earlier policy: run the command without --delete and --orphan to see the progress",
				c.title(o))
		}
		err := c.follow(ctx, hub, o, "gone", func(_ client.Object, gone bool) (bool, error) { return gone, nil })
		if member, isMemberCluster := o.(*clusterv1beta1.MemberCluster); err == nil && isMemberCluster && c.timeout > 0 {
			return c.removeAccount(ctx, hub, member)
		}
		return err
	})
	command.Flags().BoolVar(&empty, "delete", false, "Remove all deliveries from the cluster")
	command.Flags().BoolVar(&orphan, "orphan", false, "Keep all deliveries on the cluster")
	command.Flags().BoolVar(&uninstall, "uninstall-agent", false, "Remove the agent from the cluster at the end")
	command.Flags().BoolVar(&yes, "yes", false, "Leave without a question")
	command.Flags().BoolVar(&dryRun, "dry-run", false, "Only print the deliveries, and whether they stay")
	command.MarkFlagsMutuallyExclusive("delete", "orphan")
	return command
}

// removeAccount deletes the account that muster join made for a MemberCluster, unless another
// member has it. An account of another origin stays.
func (c *changer) removeAccount(ctx context.Context, hub client.Client, member *clusterv1beta1.MemberCluster) error {
	identity := member.Spec.Identity
	account := accountOfMember(member.Name)
	if identity.Kind != rbacv1.ServiceAccountKind || identity.Namespace != account.Namespace || identity.Name != account.Name {
		return nil
	}
	stays := func(why error) error {
		return c.line("ServiceAccount %s/%s stays on the hub: %s", account.Namespace, account.Name, why)
	}
	if err := hub.Get(ctx, client.ObjectKeyFromObject(account), account); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return stays(err)
	}
	if account.Labels[labelMadeBy] != madeByUs {
		return nil
	}
	shared := false
	err := view.Each(ctx, hub, &clusterv1beta1.MemberClusterList{}, func(o client.Object) {
		shared = shared || o.(*clusterv1beta1.MemberCluster).Spec.Identity == identity
	})
	if err != nil {
		return stays(err)
	}
	if shared {
		return stays(errors.New("another MemberCluster has it as its identity"))
	}
	uid := account.UID
	if err := hub.Delete(ctx, account, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return stays(err)
	}
	return c.line("ServiceAccount %s/%s is deleted.", account.Namespace, account.Name)
}

// describeLeave prints the effects of a member's departure.
func (c *changer) describeLeave(ctx context.Context, hub client.Client, o client.Object, policy string, uninstall bool) error {
	held, err := delivered(ctx, hub, view.MemberNamespace(o))
	if err != nil {
		return err
	}
	fate := "stay on the cluster"
	if policy == string(clusterv1beta1.LeaveDelete) {
		fate = "are removed from the cluster"
	}
	agent := ""
	if uninstall {
		agent = " Its agent is removed at the end."
	}
	if len(held) == 0 {
		return c.line("%s would leave. It has no deliveries.%s", c.title(o), agent)
	}
	return c.line("%s would leave.%s Its deliveries %s: %s", c.title(o), agent, fate,
		kube.JoinNames(held[:min(namedLosses, len(held))], len(held)))
}

// askBeforeLeave prints a question before a member loses deliveries. On a terminal it does so
// before each departure.
func (c *changer) askBeforeLeave(ctx context.Context, hub client.Client, o client.Object, policy string, uninstall, yes bool) error {
	switch {
	case yes:
		return nil
	case policy == "" && leavesBy(o) == string(clusterv1beta1.LeaveDelete):
		return c.askBeforeEmptying(ctx, hub, o)
	case !c.onTerminal():
		return nil
	}
	if err := c.describeLeave(ctx, hub, o, cmp.Or(policy, leavesBy(o)), uninstall); err != nil {
		c.progress.paragraph(0, "Reading the deliveries of %s failed: %s", c.title(o), err)
	}
	return c.askOnTerminal(ctx, "Remove this member from the fleet?", c.title(o))
}

// leavesBy returns the leave policy of a member, or the default of its kind.
func leavesBy(o client.Object) string {
	if policy, given := o.GetAnnotations()[clusterv1beta1.AnnotationLeavePolicy]; given {
		return policy
	}
	if _, ok := o.(*clusterv1beta1.MemberCluster); ok {
		return string(clusterv1beta1.LeaveDelete)
	}
	return string(clusterv1beta1.LeaveOrphan)
}

// remove deletes the found Cluster or MemberCluster, checked by its UID, with a policy and the
// removal of its agent if given.
func (c *changer) remove(ctx context.Context, hub client.Client, o client.Object, policy string, uninstall bool) error {
	uid, annotations := o.GetUID(), map[string]any{}
	if policy != "" {
		annotations[clusterv1beta1.AnnotationLeavePolicy] = policy
	}
	if uninstall {
		annotations[clusterv1beta1.AnnotationUninstallAgent] = "true"
	}
	if len(annotations) > 0 {
		if err := c.patch(ctx, hub, o, "annotations", annotations); err != nil {
			return err
		}
	}
	if err := hub.Delete(ctx, o, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil || kube.NotServed(err) {
		return fmt.Errorf("deleting %s: %w", c.title(o), err)
	}
	return c.line("%s is leaving.", c.title(o))
}

// namedLosses bounds the named Bundles and placements in a question.
const namedLosses = 10

// askBeforeEmptying prints the deliveries of a leaving member with policy Delete, and waits for
// the user's answer. It does so as well if the deliveries cannot be read.
func (c *changer) askBeforeEmptying(ctx context.Context, hub client.Client, o client.Object) error {
	lost, err := delivered(ctx, hub, view.MemberNamespace(o))
	if err == nil && len(lost) == 0 {
		return nil
	}
	what := kube.JoinNames(lost[:min(len(lost), namedLosses)], len(lost))
	if err != nil {
		what = fmt.Sprintf("reading them failed: %v", err)
	}
	stays := "Objects with data from before their placement, and objects with the annotation helm.sh/resource-policy: keep, stay."
	if hasKubeFleetsAgent(ctx, hub, o) {
		stays = "Its agent is KubeFleet's: it also removes objects from before their placement."
	}
	c.progress.paragraph(0, "%s loses its deliveries and their data when it leaves (policy Delete): %s. %s", c.title(o), what, stays)
	return c.ask(ctx, c.title(o), "use --delete to remove the deliveries above, or --orphan to keep them")
}

// hasKubeFleetsAgent reports whether the report of a member certainly comes from KubeFleet's
// agent.
func hasKubeFleetsAgent(ctx context.Context, hub client.Client, o client.Object) bool {
	mc, ok := o.(*clusterv1beta1.MemberCluster)
	if !ok {
		return false
	}
	report := &clusterv1beta1.InternalMemberCluster{}
	err := hub.Get(ctx, client.ObjectKey{Namespace: membership.Namespace(mc), Name: mc.Name}, report)
	return err == nil && report.Status.AgentVersion == "" && len(report.Status.AgentStatus) > 0
}

// delivered names the placements and Bundles in a member namespace. The error reports failed
// lists.
func delivered(ctx context.Context, hub client.Client, namespace string) ([]string, error) {
	if namespace == "" {
		return nil, nil
	}
	found, failed := map[string]bool{}, []error{}
	each := func(kind schema.GroupVersionKind, name func(client.Object) string) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		err := view.Each(ctx, hub, list, func(o client.Object) {
			if _, agents := o.GetLabels()[fleet.LabelAgent]; !agents { // leaving keeps the agent
				found[name(o)] = true
			}
		}, client.InNamespace(namespace))
		if !kube.NotServed(err) {
			failed = append(failed, err)
		}
	}
	each(placement.GroupVersion.WithKind("WorkList"), func(o client.Object) string {
		switch of, from := o.GetLabels()[placement.LabelParentCRP], o.GetLabels()[placement.LabelParentNamespace]; {
		case of == "":
			return kube.Name("Work", namespace, o.GetName())
		case from == "":
			return "ClusterResourcePlacement " + of
		default:
			return kube.Name("ResourcePlacement", from, of)
		}
	})
	each(fleet.GroupVersion.WithKind("BundleDeploymentList"), func(o client.Object) string {
		return kube.Name("Bundle", o.GetLabels()[fleet.LabelBundleNamespace], o.GetLabels()[fleet.LabelBundleName])
	})
	return slices.Sorted(maps.Keys(found)), errors.Join(failed...)
}
