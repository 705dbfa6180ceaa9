package cluster

import (
	"context"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/credentials/renewal"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/kube"
)

// observeCredential gathers the inputs for decisions about the credential of the agent.
func (r *reconciliation) observeCredential(ctx context.Context) error {
	o, annotations := &r.o, r.cluster.Annotations
	o.credential = renewal.State{
		Member: o.Member, AccountUID: o.account.uid, Created: o.account.created, Kind: o.account.issuedTo,
		Acting: o.takesCredentials(), Key: annotations[fleet.AnnotationAgentKey], Accepted: annotations[fleet.AnnotationAcceptCredential],
		Report: o.Report, Before: (*clusterv1beta1.CredentialStatus)(o.before.Credential),
	}
	return r.renewer.Observe(ctx, &o.credential)
}

// takesCredentials reports whether an agent of Muster's is alive, with an account issued to one.
func (o observed) takesCredentials() bool {
	return o.agent == membership.Native && o.account.issuedTo == membership.Native && o.Liveness.State == liveness.Online
}

// endSelfRenewal removes the right to request tokens after the hub has taken over the renewal for
// an agent.
func (c *Controller) endSelfRenewal(ctx context.Context, o *observed) error {
	if o.credential.Key == "" {
		return nil
	}
	binding := o.SelfRenewal()
	have := kube.MetadataOf(c.Client.Scheme())(binding)
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(binding), have); err != nil {
		return client.IgnoreNotFound(err)
	}
	return kube.DeleteByUID(ctx, c.Client, have)
}

// describeCredential writes the state of the credential, and whether two agents use credentials of
// one Cluster.
func describeCredential(after *fleet.ClusterStatus, o observed, now time.Time) {
	if o.account.uid == "" || !o.Seen() {
		dropRival(after)
		return
	}
	after.Credential = ptr.To(fleet.CredentialStatus(o.credential.Credential()))
	if why := o.credential.Cloned(); why != "" {
		after.Conditions = kube.SetCondition(after.Conditions, now,
			kube.Condition(fleet.ConditionCloned, true, reasons.CredentialSuperseded, why))
		return
	}
	describeRival(after, o, now)
}
