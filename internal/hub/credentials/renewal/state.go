package renewal

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// renewEvery is the interval between renewals; renewalsPerLife is the number of renewals in the
	// life of a short-lived credential.
	renewEvery      = 24 * time.Hour
	renewalsPerLife = 7
	// awaitsPerLife is the number of replacements in the life of a credential while its agent sends no
	// heartbeats.
	awaitsPerLife = 2
	// minLife is the shortest life granted by the TokenRequest API.
	minLife = 10 * time.Minute
	// maxCatchUp bounds the time to spread renewals that fell due while no hub ran.
	maxCatchUp = time.Hour
	// supersededFor is the shortest use of an older credential before the hub acts. An agent under
	// replacement may write its report a moment after its successor.
	supersededFor = 10 * time.Second
	// KeyShown is the number of characters shown of a key's fingerprint.
	KeyShown = 12
)

// State holds the inputs for decisions about the credential of a member.
type State struct {
	membernamespace.Member
	// AccountUID is the UID of the member's ServiceAccount, empty if there is none. Created is the
	// creation time of the account. Kind is the kind of agent with the first grant of the credential.
	AccountUID types.UID
	Created    time.Time
	Kind       membership.AgentKind
	// Exchanged: the agent gets every credential of the account through this package, because no
	// registration gave it one.
	Exchanged bool
	// Exchange identifies the receiver of an exchanged account.
	Exchange membernamespace.Exchange
	// Acting: an agent of Muster's acts as the member and sends heartbeats.
	Acting bool
	// Awaited: the agent sends no heartbeats, and may later read in its report a credential sealed to
	// its key.
	Awaited bool
	// Restored is the public key of an agent that has not come to this restored hub; nil for all other
	// agents.
	Restored []byte
	// Key is the fingerprint of the member's pinned key, "" if none; Accepted is the annotation
	// muster/accept-credential.
	Key, Accepted string
	// Report of the member; nil if there is none.
	Report *clusterv1beta1.InternalMemberCluster
	// Before is the credential status of the membership object; nil if none.
	Before *clusterv1beta1.CredentialStatus
	// Failure is the error of the last attempt to issue a due credential.
	Failure error

	// superseded: the report names a superseded credential. settleAt is the time of certainty; zero if
	// nothing is pending.
	superseded bool
	settleAt   time.Time
	// renewAt is the time when the next credential is due; zero if the hub renews none.
	renewAt time.Time
}

// renewalInterval returns the time between two renewals of a credential with the given life.
func renewalInterval(life time.Duration) time.Duration { return min(renewEvery, life/renewalsPerLife) }

// life returns the life of a credential: the requested life, unless the API server grants less.
// Only the agent reports the expiry of the registration's credential.
func (s State) life(asked time.Duration) time.Duration {
	granted := asked
	if issued, used := s.issued(), s.Used(); issued != nil {
		granted = issued.Expires.Sub(issued.Issued.Time)
	} else if used != nil && used.Expires != nil {
		granted = used.Expires.Sub(s.Created)
	}
	return max(min(asked, granted), minLife)
}

// issued returns the hub's newest credential for the account in the report; nil if there is only
// the registration's.
func (s State) issued() *clusterv1beta1.IssuedCredential {
	if s.AccountUID == "" || s.Report == nil || s.Report.Spec.Credential == nil ||
		s.Report.Spec.Credential.AccountUID != string(s.AccountUID) {
		return nil
	}
	return s.Report.Spec.Credential
}

// Used returns the agent's report about the credential in use, if it is a credential of the
// account; else nil.
func (s State) Used() *clusterv1beta1.CredentialInUse {
	if s.AccountUID == "" || s.Report == nil || s.Report.Status.Credential == nil ||
		s.Report.Status.Credential.AccountUID != string(s.AccountUID) {
		return nil
	}
	return s.Report.Status.Credential
}

// renewable reports whether the hub renews the credential. The agent must be alive or able to
// rejoin by its key, and must have the member's pinned key.
func (s State) renewable() bool {
	return (s.Acting || s.Awaited) && s.AccountUID != "" && s.Report != nil && s.Key != "" &&
		credential.Fingerprint(s.agentKey()) == s.Key && s.Credential().Superseded == nil
}

// agentKey returns the public key that credentials are sealed to: the reported one, or else the
// restored one.
func (s State) agentKey() []byte {
	if len(s.Report.Status.AgentKey) > 0 {
		return s.Report.Status.AgentKey
	}
	return s.Restored
}

// renewalDue returns the time to issue the next credential; zero if the hub renews none. The hub
// spreads renewals over a tenth of the interval. It spreads renewals due before this hub began over
// the time after its start. Members never renew all at once.
func (s State) renewalDue(requested time.Duration, began time.Time) time.Time {
	issued := s.issued()
	switch {
	case !s.renewable():
		return time.Time{}
	case len(s.Restored) > 0 && issued == nil:
		return s.Created
	case !s.Acting: // no agent uses a credential or has lost one
	case s.Exchanged && s.Used() == nil && issued == nil:
		return s.Created
	case s.Exchanged && s.Used() == nil && len(issued.Sealed) == 0:
		// the agent has lost it; repeated reports of a loss cost a bounded number of credentials
		return issued.Issued.Add(renewalInterval(minLife))
	}
	last := s.Created
	if issued != nil {
		last = issued.Issued.Time
	}
	interval := renewalInterval(s.life(requested))
	if !s.Acting {
		interval = s.life(requested) / awaitsPerLife
	}
	due := last.Add(interval - time.Duration(kube.Jitter(s.Namespace)*float64(interval)/10))
	if due.Before(began) {
		due = began.Add(time.Duration(kube.Jitter(s.Namespace) * float64(min(maxCatchUp, interval/4))))
	}
	return due
}

// Wait returns the shorter of the given wait and the time until the next due step; a given wait of
// zero has no end.
func (s State) Wait(wait time.Duration, now time.Time) time.Duration {
	for _, at := range []time.Time{s.settleAt, s.renewAt} {
		if left := max(at.Sub(now), time.Millisecond); !at.IsZero() && (wait == 0 || left < wait) {
			wait = left
		}
	}
	return wait
}

// shown returns the membership object's status about the credentials of the member's current
// account.
func (s State) shown() clusterv1beta1.CredentialStatus {
	if s.Before == nil || s.Before.AccountUID != string(s.AccountUID) {
		return clusterv1beta1.CredentialStatus{AccountUID: string(s.AccountUID)}
	}
	return *s.Before.DeepCopy()
}

// namesOlder reports whether the report names an older credential than the membership object shows.
func (s State) namesOlder() bool {
	used := s.Used()
	return used != nil && used.Sequence < s.shown().Sequence
}

// Credential returns the credential status to write to the membership object.
func (s State) Credential() clusterv1beta1.CredentialStatus {
	status := s.shown()
	status.Kind, status.Key = string(s.Kind), s.Key[:min(len(s.Key), KeyShown)]
	used := s.Used()
	switch {
	case used == nil:
	case used.Sequence >= status.Sequence:
		status.Sequence, status.Expires = used.Sequence, used.Expires
	case status.Superseded == nil && s.superseded:
		status.Superseded = &used.Sequence
	}
	if status.Superseded != nil && s.Accepted == strconv.FormatInt(*status.Superseded, 10) {
		status.Sequence, status.Superseded = *status.Superseded, nil
	}
	return status
}

// Cloned returns a message about an older credential in use after a newer one, with the remedy; ""
// if none was.
func (s State) Cloned() string {
	status := s.Credential()
	if status.Superseded == nil {
		return ""
	}
	kind, record, remedy := "Cluster", fmt.Sprintf("-n %s annotate cluster %s", s.Workspace, s.Name),
		"revoke it and register the right cluster again"
	if s.Workspace == "" {
		kind, record, remedy = "MemberCluster", "annotate membercluster "+s.Name, "revoke it and give the right one another token"
	}
	return fmt.Sprintf("an agent has used credential %d of this %s, which credential %d had replaced: the cluster was copied, or restored "+
		"from a backup, and no credential is renewed; to let the present agent keep the %s: kubectl %s %s=%d --overwrite; if not, %s",
		*status.Superseded, kind, status.Sequence, kind, record, fleet.AnnotationAcceptCredential, *status.Superseded, remedy)
}

// Warning returns the text for the agent to show to the administrators of its cluster.
func (s State) Warning() string {
	if s.Cloned() == "" {
		return ""
	}
	return "an older credential of this cluster was in use after a newer one: it was copied, or restored from a backup; ask the people who " +
		"run the hub"
}
