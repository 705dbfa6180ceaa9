package agentbundle

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// act writes the BundleDeployment of an agent when its desired version is sent. It deletes
// the BundleDeployment of an agent outside the hub's management. The agent then leaves its release
// to the user.
func (c *MemberController) act(ctx context.Context, o observedMember, d decision) error {
	switch d.state {
	case send:
		return c.write(ctx, o)
	case Updating, DidNotComeBack:
		if err := c.ensureContent(ctx, o.content); err != nil { // another client may have deleted it
			return err
		}
		return c.regrant(ctx, o)
	case UpToDate:
		return c.regrant(ctx, o)
	case NotManaged, SwitchedOff, ForeignAgent, CannotBeManaged, UpgradesRefused, NoCredential:
		if o.deployment != nil && o.deployment.DeletionTimestamp == nil && metav1.IsControlledBy(o.deployment, o.mc) {
			return kube.DeleteByUID(ctx, c.Client, o.deployment)
		}
	case WaitingForTurn, RolloutStopped, Offline, NotJoined, NameTaken, SharedCredential, Paused, OutsideWindow:
	}
	return nil
}

// regrant lets a member read the Content of its agent again, after a quarantine. Without one it
// writes nothing.
func (c *MemberController) regrant(ctx context.Context, o observedMember) error {
	state, namespace, err := o.ObserveNamespace(ctx, c.Client)
	if err != nil || o.deployment == nil || state != membernamespace.NamespaceOurs {
		return err
	}
	return c.GrantContents(ctx, o.Namespace, namespace.UID)
}

// write makes the BundleDeployment match the desired one. It first lets the account of the member
// read its Content.
func (c *MemberController) write(ctx context.Context, o observedMember) error {
	state, namespace, err := o.ObserveNamespace(ctx, c.Client)
	if err != nil || state != membernamespace.NamespaceOurs {
		return err // the member is leaving, or the namespace is not the hub's
	}
	if err := c.GrantContents(ctx, o.Namespace, namespace.UID); err != nil {
		return err
	}
	if err := c.ensureContent(ctx, o.content); err != nil {
		return err
	}
	wanted := o.desiredDeployment
	if before := o.sending(o.sentAt).before; before != "" {
		wanted.Annotations[annotationBefore] = before
	}
	if o.deployment == nil {
		err = c.Client.Create(ctx, wanted, kube.FieldOwner)
	} else {
		wanted.UID, wanted.ResourceVersion = o.deployment.UID, o.deployment.ResourceVersion
		err = c.Client.Update(ctx, wanted, kube.FieldOwner)
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) && !kube.NotServed(err) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil // the resulting event enqueues the MemberCluster
	}
	if err != nil {
		return fmt.Errorf("writing BundleDeployment %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	c.expected.Expect(client.ObjectKeyFromObject(o.mc), wanted)
	return nil
}

// ensureContent creates the Content with the chart unless the cache has it. The hub removes a
// Content once no BundleDeployment has used it for a while.
func (c *MemberController) ensureContent(ctx context.Context, content *fleet.Content) error {
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(content), kube.Metadata(fleet.GroupVersion.WithKind("Content")))
	if err == nil || !apierrors.IsNotFound(err) {
		return err
	}
	written := content.DeepCopy()
	written.Labels = map[string]string{fleet.LabelManaged: "true"}
	if err := c.Client.Create(ctx, written, kube.FieldOwner); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("writing Content %s: %w", content.Name, err)
	}
	return nil
}

// reportIn returns the delay before a MemberCluster reports the state of its agent; zero for now.
func (o observedMember) reportIn(state State, now time.Time) time.Duration {
	if meta.FindStatusCondition(o.mc.Status.Conditions, clusterv1beta1.ConditionAgentUpToDate) != nil {
		return 0
	}
	return adopting(state, o.identified, o.sentAt, now)
}

// describe returns the condition for a decision; nil if the agent has not joined.
func (o observedMember) describe(d decision, failed []types.NamespacedName, failure string) *metav1.Condition {
	reason, status := d.state, metav1.ConditionFalse
	if reason == send {
		reason = Updating
	}
	message := cmp.Or(memberMessages[reason], messages[reason])
	switch reason {
	case NotJoined:
		return nil
	case UpToDate:
		status = metav1.ConditionTrue
	case WaitingForTurn:
		if d.behind.Name != "" {
			message = fmt.Sprintf("the hub tries another version of the agent on MemberCluster %s first", d.behind.Name)
		}
	case RolloutStopped:
		message = stoppedMessage("MemberCluster", d.behind, failed, failure)
	case DidNotComeBack:
		message = fmt.Sprintf("the hub requested the update of the agent at %s, and the agent has not come back: %s; check BundleDeployment "+
			"%s/%s, and the Pods of the chart member-agent on the cluster",
			o.sentAt.UTC().Format(time.RFC3339), cmp.Or(o.failure, fmt.Sprintf("it was not ready after %s", confirmTimeout)),
			o.Namespace, naming.MemberAgentChart)
	case NameTaken:
		message = fmt.Sprintf("BundleDeployment %s/%s has the name of the agent's, and the hub did not create it: delete it",
			o.Namespace, naming.MemberAgentChart)
	default: // the message is set above
	}
	return &metav1.Condition{
		Type: clusterv1beta1.ConditionAgentUpToDate, Status: status, Reason: string(reason), Message: kube.Clip(message, maxMemberMessage),
		ObservedGeneration: o.mc.Generation,
	}
}

// maxMemberMessage bounds the message of the condition, in bytes. The definition of MemberCluster
// permits 2048 characters, including the dots at the end of a shortened message.
const maxMemberMessage = 2045

// upgradeMember is the command to upgrade the agent of a MemberCluster by hand.
const upgradeMember = "helm upgrade --reset-then-reuse-values --wait member-agent fleet/member-agent"

// memberMessages holds the messages for MemberClusters with their own remedies.
var memberMessages = map[State]string{
	Updating:   "the agent updates itself to the version and the settings of the hub",
	Offline:    "the agent does not match the hub's settings, and gets the update when it is back",
	NotManaged: "the label " + fleet.LabelNonManagedAgent + " leaves the agent to you: " + upgradeMember,
	SwitchedOff: "manageAgent is false in the hub's settings: " +
		upgradeMember,
	ForeignAgent: "the agent is not Muster's, and the hub does not upgrade it; to replace it, install the chart member-agent of Muster over " +
		"it",
	CannotBeManaged: "the agent does not deploy (delivery=false), runs outside its cluster, was not installed by Helm or with hub-ca.crt in " +
		"its chart, or is of a version that cannot replace itself: " + upgradeMember,
	UpgradesRefused: "upgradedByHub is false in the chart of the agent, which refuses upgrades by the hub: " + upgradeMember,
	NoCredential: "the agent keeps the token of its identity, because annotation " + fleet.AnnotationAgentKey + " is empty, and that may " +
		"not read the chart: " + upgradeMember + ", or remove the annotation",
}

// report writes the condition if it changes. It leaves the first one to the controller of the
// MemberCluster for a moment, and returns the time left.
func (c *MemberController) report(ctx context.Context, o observedMember, d decision) (time.Duration, error) {
	var failed []types.NamespacedName
	if d.failed > 0 {
		failed = c.rollout.failedWith(o.desired.common)
	}
	from, after := "", o.mc.DeepCopy()
	if was := meta.FindStatusCondition(o.mc.Status.Conditions, clusterv1beta1.ConditionAgentUpToDate); was != nil {
		from = was.Reason
	}
	condition := o.describe(d, failed, c.rollout.failureOf(d.behind))
	add := func(member client.Object) {
		condition.LastTransitionTime = metav1.NewTime(c.Clock.Now())
		meta.SetStatusCondition(&member.(*clusterv1beta1.MemberCluster).Status.Conditions, *condition)
	}
	if condition != nil && from == "" {
		seen := clusterv1beta1.FindAgent(o.mc.Status.AgentStatus, clusterv1beta1.MemberAgent) != nil
		if wait := c.share(o.mc, seen, add); wait > 0 {
			return wait, nil
		}
	}
	if c.Offers.Withdraw(client.ObjectKeyFromObject(o.mc)) {
		from = ""
	}
	if condition == nil {
		meta.RemoveStatusCondition(&after.Status.Conditions, clusterv1beta1.ConditionAgentUpToDate)
	} else {
		add(after)
	}
	if err := kube.PatchStatus(ctx, c.Client, o.mc, after); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	if after.ResourceVersion != o.mc.ResourceVersion {
		c.expected.Expect(client.ObjectKeyFromObject(after), after)
	}
	if condition != nil {
		announce(ctx, c.Recorder, o.mc, from, condition.Reason, condition.Message)
	}
	return 0, nil
}
