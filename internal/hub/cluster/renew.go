package cluster

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hub/liveness"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/kube"
)

// The hub issues a new credential to a native agent every day, sealed to the agent's key, in the spec of the report. A counter tells the credentials of an
// account apart:
//
//	          due                       the report names it                 the status shows that
//	in use ─────────► issued, sealed ─────────────────────► in use, newest ───────────────────────► withdrawn from the report
//	                                                          │
//	                                 the report names an older one for a while
//	                                                          ▼
//	                                                        Cloned   until an annotation accepts the older one, or the agent registers anew
const (
	// renewEvery is how often a credential is renewed; a short-lived one so many times in its life.
	renewEvery      = 24 * time.Hour
	renewalsPerLife = 7
	// minLife is the shortest life that the TokenRequest API grants.
	minLife = 10 * time.Minute
	// maxCatchUp is how long renewals that fell due while no hub ran are spread.
	maxCatchUp = time.Hour
	// supersededFor is how long the report has to name an older credential: an agent that is being replaced may write its report a moment after its
	// successor.
	supersededFor = 10 * time.Second
	// keyShown is how much of the fingerprint of a key the status shows.
	keyShown = 12
)

// renewalInterval is the time between two renewals of a credential that lives so long.
func renewalInterval(life time.Duration) time.Duration { return min(renewEvery, life/renewalsPerLife) }

// life is how long a credential lives: as asked, unless the API server grants less. Of the credential of the registration only the agent says how long.
func (o observed) life(asked time.Duration) time.Duration {
	granted := asked
	if issued, used := o.issued(), o.used(); issued != nil {
		granted = issued.Expires.Sub(issued.Issued.Time)
	} else if used != nil && used.Expires != nil {
		granted = used.Expires.Sub(o.account.created)
	}
	return max(min(asked, granted), minLife)
}

// issued returns the newest credential that the hub has issued for the account; nil if none but that of the registration.
func (o observed) issued() *clusterv1beta1.IssuedCredential {
	if o.Report == nil || o.Report.Spec.Credential == nil || o.Report.Spec.Credential.AccountUID != string(o.account.uid) {
		return nil
	}
	return o.Report.Spec.Credential
}

// used returns what the agent reports of the credential that it uses; nil if that is no credential of the account.
func (o observed) used() *clusterv1beta1.CredentialInUse {
	if o.Report == nil || o.Report.Status.Credential == nil || o.Report.Status.Credential.AccountUID != string(o.account.uid) {
		return nil
	}
	return o.Report.Status.Credential
}

// renewable says whether the hub renews the credential: the agent is alive and has the key that is pinned to the Cluster.
func (o observed) renewable() bool {
	return o.agent == membership.Native && o.account.issuedTo == membership.Native && o.Report != nil && o.Liveness.State == liveness.Online &&
		o.key != "" && credential.Fingerprint(o.Report.Status.AgentKey) == o.key && o.credential().Superseded == nil
}

// renewalDue is when the next credential is to be issued; zero if the hub renews none. Renewals are spread over a tenth of the interval, and those that fell
// due before this hub began over the time after that, so that never all members are renewed at once.
func (o observed) renewalDue(asked time.Duration, began time.Time) time.Time {
	if !o.renewable() {
		return time.Time{}
	}
	last := o.account.created
	if issued := o.issued(); issued != nil {
		last = issued.Issued.Time
	}
	interval := renewalInterval(o.life(asked))
	due := last.Add(interval - time.Duration(spread(o.Namespace)*float64(interval)/10))
	if due.Before(began) {
		due = began.Add(time.Duration(spread(o.Namespace) * float64(min(maxCatchUp, interval/4))))
	}
	return due
}

// spread is a number from 0 to 1 that differs between members.
func spread(name string) float64 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name)) // never fails
	return float64(hash.Sum32()) / (1 << 32)
}

// issueCredential returns the credential for the report: a new one if that is due, without the sealed token once the status shows that the agent uses it.
// After an error it is the one that is there.
func (c *Controller) issueCredential(ctx context.Context, o *observed) (*clusterv1beta1.IssuedCredential, error) {
	current, life, now := o.issued(), c.Config.Current().AgentTokenLifetime, c.Clock.Now()
	due := o.renewalDue(life, c.began())
	if due.IsZero() || now.Before(due) {
		if current != nil && len(current.Sealed) > 0 && o.shown().Sequence >= current.Sequence {
			withdrawn := *current
			withdrawn.Sealed = nil
			return &withdrawn, nil
		}
		return current, nil
	}
	token, err := kube.RequestToken(ctx, c.Client.SubResource("token"), o.Account(), life)
	if err != nil {
		return current, err
	}
	claims, err := credential.ReadClaims(token)
	if err != nil {
		return current, err
	}
	if claims.AccountUID != string(o.account.uid) {
		return current, fmt.Errorf("renewing the credential of %s: the account was replaced meanwhile", o.Namespace)
	}
	next := &clusterv1beta1.IssuedCredential{
		AccountUID: claims.AccountUID, Sequence: o.credential().Sequence + 1, After: o.credential().Sequence,
		Issued: metav1.NewTime(now.Truncate(time.Second)), Expires: metav1.NewTime(claims.Expires),
	}
	if current != nil {
		next.Sequence = max(next.Sequence, current.Sequence+1)
	}
	next.Sealed, err = credential.SealTokens(o.Report.Status.AgentKey, credential.Renewal{AccountUID: next.AccountUID, Sequence: next.Sequence},
		credential.Tokens{Token: token, Reconnect: c.reconnect(ctx, o.Workspace)})
	if err != nil {
		return current, fmt.Errorf("renewing the credential of %s: %w", o.Namespace, err)
	}
	ctrl.LoggerFrom(ctx).V(1).Info("Credential renewed", "sequence", next.Sequence, "expires", claims.Expires)
	return next, nil
}

// endSelfRenewal takes the right to request tokens from an agent whose credential the hub renews.
func (c *Controller) endSelfRenewal(ctx context.Context, o *observed) error {
	if o.key == "" {
		return nil
	}
	binding := o.SelfRenewal()
	have := kube.MetadataOf(c.Client.Scheme())(binding)
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(binding), have); err != nil {
		return client.IgnoreNotFound(err)
	}
	uid := have.GetUID()
	if err := c.Client.Delete(ctx, binding, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting RoleBinding %s/%s: %w", binding.Namespace, binding.Name, err)
	}
	return nil
}

// shown is what the status says of the credentials of the account that the member has now.
func (o observed) shown() fleet.CredentialStatus {
	if o.before.Credential == nil || o.before.Credential.AccountUID != string(o.account.uid) {
		return fleet.CredentialStatus{AccountUID: string(o.account.uid)}
	}
	return *o.before.Credential.DeepCopy()
}

// credential is what the status is to say of the agent's credential.
func (o observed) credential() fleet.CredentialStatus {
	said := o.shown()
	said.Kind, said.Key = string(o.account.issuedTo), o.key[:min(len(o.key), keyShown)]
	used := o.used()
	switch {
	case used == nil:
	case used.Sequence >= said.Sequence:
		said.Sequence, said.Expires = used.Sequence, used.Expires
	case said.Superseded == nil && o.superseded:
		said.Superseded = &used.Sequence
	}
	if said.Superseded != nil && o.acceptCredential == strconv.FormatInt(*said.Superseded, 10) {
		said.Sequence, said.Superseded = *said.Superseded, nil
	}
	return said
}

// observeSuperseded finds whether the report has named an older credential for so long that no agent which was just replaced can have written it.
func (c *Controller) observeSuperseded(o *observed) {
	used, now := o.used(), c.Clock.Now()
	if used == nil || used.Sequence >= o.shown().Sequence {
		c.superseded.Delete(o.Namespace)
		return
	}
	since, _ := c.superseded.LoadOrStore(o.Namespace, now)
	if until := since.(time.Time).Add(supersededFor); now.Before(until) {
		o.settleAt = until
		return
	}
	o.superseded = true
}

// cloned says that an older credential was in use after a newer one, and what to do; "" if none was.
func (o observed) cloned() string {
	said := o.credential()
	if said.Superseded == nil || o.Workspace == "" {
		return ""
	}
	return fmt.Sprintf("an agent has used credential %d of this Cluster, which credential %d had replaced: the cluster was copied, or restored from a backup, and no credential is renewed; "+
		"if the agent that beats now is to keep the Cluster: kubectl -n %s annotate cluster %s %s=%d --overwrite; if not, revoke it and register the right one anew",
		*said.Superseded, said.Sequence, o.Workspace, o.Name, fleet.AnnotationAcceptCredential, *said.Superseded)
}

// warning is what the agent is to say about that to the people who run its cluster.
func (o observed) warning() string {
	if o.cloned() == "" {
		return ""
	}
	return "an older credential of this cluster was in use after a newer one: it was copied, or restored from a backup; ask the people who run the hub"
}

// describeCredential shows what is known of the credential, and whether two agents use credentials of one Cluster.
func describeCredential(after *fleet.ClusterStatus, o observed, now time.Time) {
	if o.account.uid == "" || !o.Seen() {
		dropRival(after)
		return
	}
	after.Credential = ptr.To(o.credential())
	if why := o.cloned(); why != "" {
		after.Conditions = kube.SetCondition(after.Conditions, now, kube.Condition(fleet.ConditionCloned, true, "CredentialSuperseded", why))
		return
	}
	describeRival(after, o, now)
}
