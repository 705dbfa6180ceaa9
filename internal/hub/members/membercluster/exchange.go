package membercluster

import (
	"cmp"
	"context"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/credentials/renewal"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
)

// observeExchange gathers the inputs for decisions about the credential of the agent.
func (r *reconciliation) observeExchange(ctx context.Context) (err error) {
	o, annotations := &r.o, r.mc.Annotations
	if o.account, err = o.ReadAccount(ctx, r.Client); err != nil {
		return err
	}
	if o.reconnect, err = o.ReadReconnectAccount(ctx, r.Client); err != nil {
		return err
	}
	_, o.keyPinned = annotations[fleet.AnnotationAgentKey]
	o.credential = renewal.State{
		Member: o.Member, Created: o.account.CreationTimestamp.Time, Kind: membership.Native, Exchanged: true, Acting: o.takesCredentials(),
		Key: annotations[fleet.AnnotationAgentKey], Accepted: annotations[fleet.AnnotationAcceptCredential], Report: o.Report,
		Before: o.before.Credential,
	}
	if o.accountFits() {
		o.credential.AccountUID = o.account.UID
	}
	o.credential.Exchange, o.credential.Awaited = o.exchange(), o.isAwaited(r.Clock.Now())
	r.observeReturn()
	return r.renewer.Observe(ctx, &o.credential)
}

// admitted reports whether the identity may have the rights of the member. An administrator deletes
// its account to end all access.
func (o observed) admitted() bool { return o.usable() && !o.accountMissing }

// takesCredentials reports whether a live agent of Muster's has a key.
func (o observed) takesCredentials() bool {
	return o.native() && o.Liveness.State == liveness.Online && o.Report != nil && credential.ValidAgentKey(o.Report.Status.AgentKey)
}

// accountFits reports whether the hub created the account for the current key and identity of the
// MemberCluster.
func (o observed) accountFits() bool {
	return o.admitted() && o.credential.Key != "" && o.exchange().Made(o.account)
}

// bindsAccount reports whether the RoleBinding of the member names the account for credentials. It
// already does before the account exists, so that the exchange needs no write of the RoleBinding.
// An account for another key or identity loses its rights before its deletion.
func (o observed) bindsAccount() bool {
	declined := o.keyPinned && o.credential.Key == ""
	return o.accountFits() || o.account.UID == "" && o.admitted() && !declined
}

// exchange returns the receiver of an account for the current MemberCluster.
func (o observed) exchange() membernamespace.Exchange {
	return membernamespace.Exchange{Identity: identityKey(o.identity), IdentityUID: o.identityUID, Key: o.credential.Key}
}

// isShownByIdentity reports whether the report, by its own word, comes from an agent with a token
// of the identity. An agent cut off with the previous account may still watch the report.
func (o observed) isShownByIdentity() bool {
	return o.identityUID == "" || o.Report.Status.Credential == nil || o.Report.Status.Credential.AccountUID == string(o.identityUID)
}

// reportedKey returns the fingerprint of the agent's reported key, "" if it reports none.
func (o observed) reportedKey() string {
	if o.Report == nil || !credential.ValidAgentKey(o.Report.Status.AgentKey) {
		return ""
	}
	return credential.Fingerprint(o.Report.Status.AgentKey)
}

// pinKey pins the first reported key of an agent as the receiver of credentials. An existing
// annotation stays; with an empty one an administrator declines the exchange. A lost annotation
// gets the key of the account again.
func (r *reconciliation) pinKey(ctx context.Context) error {
	o := &r.o
	if o.keyPinned || !o.admitted() || !o.takesCredentials() {
		return nil
	}
	o.keyPinned, o.credential.Key = true, cmp.Or(o.account.Annotations[fleet.AnnotationAgentKey], o.reportedKey())
	before := r.mc.DeepCopy()
	metav1.SetMetaDataAnnotation(&r.mc.ObjectMeta, fleet.AnnotationAgentKey, o.credential.Key)
	if err := kube.Patch(ctx, r.Client, before, r.mc); err != nil {
		return fmt.Errorf("pinning the key of the agent to MemberCluster %s: %w", o.Name, err)
	}
	return nil
}

// prepareAccount creates the account for the agent with the pinned key. It creates none while an
// account for another key or identity exists; endExchange deletes such an account. All credentials
// of an account end with it. The event about either step reconciles the member again.
func (r *reconciliation) prepareAccount(ctx context.Context) error {
	o := &r.o
	key := types.NamespacedName{Name: o.Namespace}
	o.accountLag = r.created.Await(key, o.account)
	if err := r.endReconnect(ctx); err != nil {
		return err
	}
	switch {
	case o.accountFits():
		return r.restoreReconnect(ctx, *o)
	case o.account.UID != "": // endExchange deletes it
	case o.accountLag > 0:
	case o.returns(), o.admitted() && o.takesCredentials() && o.reportedKey() == o.credential.Key && o.isShownByIdentity():
		account := o.ExchangedAccount(o.exchange())
		if err := kube.Ensure(ctx, r.Client, account); err != nil {
			return err
		}
		r.created.Expect(key, account)
	}
	return nil
}

// endExchange deletes an account created for another key or identity, after its rights have ended.
// With another identity the reporter of the key is unknown, so endExchange first removes the key
// from the report. The current agent then reports its own key.
func (r *reconciliation) endExchange(ctx context.Context) error {
	o := &r.o
	if o.account.UID == "" || o.accountFits() {
		return nil
	}
	if !o.admitted() || !o.exchange().IsIdentityOf(o.account) {
		if err := o.ForgetKey(ctx, r.Client, o.Report); err != nil {
			return err
		}
	}
	account := o.Account()
	account.UID = o.account.UID
	return kube.Delete(ctx, r.Client, account)
}

// exchangeCondition reports whether the agent uses a credential of the hub's. The condition has no
// reason if it does not apply.
func exchangeCondition(o observed) result {
	not := func(reason, message string) result { return result{metav1.ConditionFalse, reason, message} }
	identity, key, pinned := describedShort(o.identity), o.reportedKey(), o.credential.Key
	switch used := o.credential.Used(); {
	case o.Revoked, o.Report == nil, !o.Seen(), !o.Deleted.IsZero(), !o.admitted():
		return result{}
	case key == "" && clusterv1beta1.FindAgent(o.Report.Status.AgentStatus, clusterv1beta1.MemberAgent) == nil:
		return result{} // no report yet
	case key == "":
		return not(reasons.AgentHasNoKey, fmt.Sprintf("the agent has no key for a credential of the hub, like KubeFleet's agent: it keeps "+
			"the token of %s", identity))
	case o.keyPinned && pinned == "":
		return not(reasons.SwitchedOff,
			fmt.Sprintf("annotation %s of this MemberCluster is empty: the agent keeps the token of %s", fleet.AnnotationAgentKey, identity))
	case key != pinned && o.keyPinned:
		return not(reasons.AnotherKey, fmt.Sprintf("an agent with key %s requests a credential, and the key of this member is %s: that "+
			"agent keeps the token of %s and gets no credential of the hub; if it is the right agent: kubectl annotate membercluster %s "+
			"%s=%s --overwrite, which ends the credential of the other agent; if not, revoke the member and set another identity",
			key[:renewal.KeyShown], pinned[:min(len(pinned), renewal.KeyShown)], identity, o.Name, fleet.AnnotationAgentKey, key))
	case used != nil && used.Sequence > 0 && used.Expires != nil:
		return result{metav1.ConditionTrue, reasons.Exchanged,
			fmt.Sprintf("the agent uses a credential that the hub has issued to its key %s and renews, and that expires at %s; the static token "+
				"of %s is no longer used: delete its Secret on the hub, so that copies of the token stop working, and keep the account. A cluster "+
				"that is offline for longer than that %s", key[:renewal.KeyShown], used.Expires.UTC().Format(time.RFC3339),
				identity, o.afterExpiry())}
	}
	return not(reasons.Exchanging, fmt.Sprintf("the hub issues a credential to key %s of the agent, which uses the token of %s until it has "+
		"that", key[:renewal.KeyShown], identity))
}

// describedShort formats an identity for a sentence.
func describedShort(s rbacv1.Subject) string {
	if s.Kind == rbacv1.ServiceAccountKind {
		return fmt.Sprintf("ServiceAccount %s/%s", s.Namespace, s.Name)
	}
	return s.Kind + " " + s.Name
}

// describeCredential writes the state of the agent's credential.
func describeCredential(after *clusterv1beta1.MemberClusterStatus, o observed, set func(string, result)) {
	after.Credential = nil
	if o.credential.AccountUID != "" && o.credential.Credential().Sequence > 0 {
		after.Credential = ptr.To(o.credential.Credential())
	}
	if said := exchangeCondition(o); said.reason != "" {
		set(clusterv1beta1.ConditionCredentialExchanged, said)
	} else {
		meta.RemoveStatusCondition(&after.Conditions, clusterv1beta1.ConditionCredentialExchanged)
	}
	if why := o.credential.Cloned(); why != "" {
		set(clusterv1beta1.ConditionCloned, result{metav1.ConditionTrue, reasons.CredentialSuperseded, why})
	} else {
		meta.RemoveStatusCondition(&after.Conditions, clusterv1beta1.ConditionCloned)
	}
}
