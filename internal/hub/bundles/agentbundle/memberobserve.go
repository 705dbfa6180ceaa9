package agentbundle

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/naming"
)

// observedMember is the agent of a MemberCluster, and the data needed to act on it.
type observedMember struct {
	agent
	membernamespace.Member
	mc *clusterv1beta1.MemberCluster
	// identified is the creation time of the account behind the agent's credential.
	identified time.Time
	// deployment is the cached BundleDeployment; nil if there is none. desiredDeployment is the
	// desired one, with its Content; nil if the hub does not manage the agent.
	deployment, desiredDeployment *fleet.BundleDeployment
	content                       *fleet.Content
}

func (o observedMember) inRollout() agent { return o.agent }

func (o observedMember) cached() (member, sent client.Object) {
	if o.deployment == nil {
		return o.mc, nil
	}
	return o.mc, o.deployment
}

func (c *MemberController) observe(ctx context.Context, mc *clusterv1beta1.MemberCluster) (observedMember, error) {
	o := observedMember{mc: mc, Member: membernamespace.OfMemberCluster(mc)}
	key := types.NamespacedName{Namespace: o.Namespace, Name: naming.MemberAgentChart}
	var deployment fleet.BundleDeployment
	if err := c.Client.Get(ctx, key, &deployment); client.IgnoreNotFound(err) != nil {
		return o, fmt.Errorf("reading BundleDeployment %s: %w", key, err)
	} else if err == nil {
		o.deployment = &deployment
	}
	report := &clusterv1beta1.InternalMemberCluster{}
	if err := c.Client.Get(ctx, types.NamespacedName{Namespace: o.Namespace, Name: mc.Name}, report); client.IgnoreNotFound(err) != nil {
		return o, fmt.Errorf("reading the report of %s: %w", o.Namespace, err)
	}
	account, err := o.ReadAccount(ctx, c.Client)
	if err != nil {
		return o, err
	}
	o.identified = account.CreationTimestamp.Time
	if o.unmanaged = memberUnmanaged(mc, account, report, c.Config.Current().ManageAgent); o.unmanaged != "" {
		return o, nil
	}
	if o.deployment != nil && !metav1.IsControlledBy(o.deployment, mc) {
		o.unmanaged = NameTaken
		return o, nil
	}
	if o.desiredDeployment, o.content, err = c.chart.deploymentFor(o.Member, mc, report.Status.AgentNamespace, c.Config.Current().Agent,
		c.Clock.Now()); err != nil {
		return o, err
	}
	o.desired = versionOfDeployment(o.desiredDeployment)
	state := c.Liveness.Observe(o.Namespace).State
	o.online, o.lost = state == liveness.Online, state == liveness.Lost
	o.ready = membership.MemberClusterStatus(&mc.Status).Ready
	o.observeSent()
	return o, nil
}

// observeSent determines the version sent to the agent, and the agent's report of it. If a
// BundleDeployment does not match its label, another client changed it, and the hub writes it
// again.
func (o *observedMember) observeSent() {
	if o.deployment == nil || o.deployment.DeletionTimestamp != nil {
		return
	}
	sentAt, err := time.Parse(time.RFC3339, o.deployment.Annotations[annotationSentAt])
	holds := versionOfDeployment(o.deployment)
	if err != nil || holds.String() != o.deployment.Labels[fleet.LabelAgent] || o.deployment.Spec.Paused || o.deployment.Spec.OffSchedule {
		return
	}
	o.sent, o.sentAt, o.before = holds, sentAt, o.deployment.Annotations[annotationBefore]
	o.confirmed, o.failure = outcomeOf(o.deployment)
}

// memberUnmanaged returns the reason why the hub leaves the agent of a MemberCluster alone, or "".
func memberUnmanaged(mc *clusterv1beta1.MemberCluster, account *metav1.PartialObjectMetadata, report *clusterv1beta1.InternalMemberCluster,
	manage bool) State {
	_, labelled := mc.Labels[fleet.LabelNonManagedAgent]
	key, pinned := mc.Annotations[fleet.AnnotationAgentKey]
	status, used := report.Status, report.Status.Credential
	switch {
	case !manage:
		return SwitchedOff
	case labelled:
		return NotManaged
	case membership.Revoked(mc), !metav1.IsControlledBy(report, mc):
		return NotJoined
	case status.AgentVersion == "" && clusterv1beta1.FindAgent(status.AgentStatus, clusterv1beta1.MemberAgent) != nil:
		return ForeignAgent
	case status.AgentVersion == "":
		return NotJoined
	case slices.Contains(status.Features, clusterv1beta1.FeatureUpgradedByUser):
		return UpgradesRefused
	case !slices.Contains(status.Features, clusterv1beta1.FeatureManagedAgent), len(validation.IsDNS1123Label(status.AgentNamespace)) > 0:
		return CannotBeManaged
	case pinned && key == "":
		return NoCredential
	case membership.Quarantined(mc):
		return Paused
	case account.UID == "", used == nil, used.AccountUID != string(account.UID):
		return NotJoined // only the credential of this account may read the chart
	}
	return ""
}

// deploymentFor returns the desired BundleDeployment for the agent of a MemberCluster, and its
// Content. The agent knows the name and the namespace of its own release.
func (c *chart) deploymentFor(m membernamespace.Member, mc *clusterv1beta1.MemberCluster, agentNamespace string, settings settings.Agent,
	now time.Time) (*fleet.BundleDeployment, *fleet.Content, error) {
	content, err := c.pack(settings)
	if err != nil {
		return nil, nil, err
	}
	options := fleet.BundleDeploymentOptions{DefaultNamespace: agentNamespace, Helm: &fleet.HelmOptions{
		ReleaseName: naming.MemberAgentChart, TakeOwnership: true, MaxHistory: history, DisablePreProcess: true, DisableDNS: true,
	}}
	id, err := delivery.DeploymentID(content.Name, options)
	if err != nil {
		return nil, nil, err
	}
	d := &fleet.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.Namespace, Name: naming.MemberAgentChart,
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(mc, clusterv1beta1.GroupVersion.WithKind("MemberCluster")),
			},
			Annotations: map[string]string{annotationSentAt: now.UTC().Format(time.RFC3339)},
		},
		Spec: fleet.BundleDeploymentSpec{DeploymentID: id, StagedDeploymentID: id, Options: options, StagedOptions: options},
	}
	d.Labels = map[string]string{fleet.LabelManaged: "true", fleet.LabelAgent: versionOfDeployment(d).String()}
	return d, content, nil
}

// versionOfDeployment returns the version in the BundleDeployment of a MemberCluster's agent.
func versionOfDeployment(d *fleet.BundleDeployment) version {
	id := d.Spec.DeploymentID
	return version{naming.Digest(delivery.ContentName(id))[:digits], naming.Digest(id)[:digits]}
}
