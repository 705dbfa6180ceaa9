package renewal

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
)

const (
	// renewEvery is how often a credential is renewed; a short-lived one so many times in its life.
	renewEvery      = 24 * time.Hour
	renewalsPerLife = 7
	// awaitsPerLife is how often in its life the credential of a silent member is replaced.
	awaitsPerLife = 2
	// minLife is the shortest life that the TokenRequest API grants.
	minLife = 10 * time.Minute
	// maxCatchUp is how long renewals that fell due while no hub ran are spread.
	maxCatchUp = time.Hour
	// supersededFor is how long the report has to name an older credential: an agent that is being replaced may write its report a moment after its
	// successor.
	supersededFor = 10 * time.Second
	// KeyShown is how much of the fingerprint of a key people are shown.
	KeyShown = 12
)

// State is what decides on the credential of a member.
type State struct {
	membernamespace.Member
	// AccountUID is the UID of the member's ServiceAccount, empty if there is none; Created is when the account was made, and Kind is the kind of agent
	// to which it was issued.
	AccountUID types.UID
	Created    time.Time
	Kind       membership.AgentKind
	// Exchanged: the agent has no credential of the account but those that the hub issues here, because no registration gave it one.
	Exchanged bool
	// Exchange is for whom the account was made then.
	Exchange membernamespace.Exchange
	// Acting: an agent of Muster's acts as the member and sends heartbeats.
	Acting bool
	// Awaited: the agent is silent, and may read in its report what is issued to its key meanwhile.
	Awaited bool
	// Key is the fingerprint of the key that is pinned to the member, "" if none is; Accepted is the annotation muster/accept-credential.
	Key, Accepted string
	// Report of the member; nil if there is none.
	Report *clusterv1beta1.InternalMemberCluster
	// Before is what the record says of the credential; nil if nothing.
	Before *clusterv1beta1.CredentialStatus
	// Failure is why the credential that is due was not issued.
	Failure error

	// superseded: the report names a credential that a newer one had replaced. settleAt is when that is sure; zero if nothing is to be found out.
	superseded bool
	settleAt   time.Time
	// renewAt is when the next credential is due; zero if the hub renews none.
	renewAt time.Time
}

// renewalInterval is the time between two renewals of a credential that lives so long.
func renewalInterval(life time.Duration) time.Duration { return min(renewEvery, life/renewalsPerLife) }

// life is how long a credential lives: as asked, unless the API server grants less. Of the credential of the registration only the agent says how long.
func (s State) life(asked time.Duration) time.Duration {
	granted := asked
	if issued, used := s.issued(), s.Used(); issued != nil {
		granted = issued.Expires.Sub(issued.Issued.Time)
	} else if used != nil && used.Expires != nil {
		granted = used.Expires.Sub(s.Created)
	}
	return max(min(asked, granted), minLife)
}

// issued returns the newest credential that the hub has issued for the account; nil if none but that of the registration.
func (s State) issued() *clusterv1beta1.IssuedCredential {
	if s.AccountUID == "" || s.Report == nil || s.Report.Spec.Credential == nil || s.Report.Spec.Credential.AccountUID != string(s.AccountUID) {
		return nil
	}
	return s.Report.Spec.Credential
}

// Used returns what the agent reports of the credential that it uses; nil if that is no credential of the account.
func (s State) Used() *clusterv1beta1.CredentialInUse {
	if s.AccountUID == "" || s.Report == nil || s.Report.Status.Credential == nil || s.Report.Status.Credential.AccountUID != string(s.AccountUID) {
		return nil
	}
	return s.Report.Status.Credential
}

// renewable says whether the hub renews the credential: the agent is alive, or comes back by its
// key, and has the key that is pinned to the member.
func (s State) renewable() bool {
	return (s.Acting || s.Awaited) && s.AccountUID != "" && s.Report != nil && s.Key != "" && credential.Fingerprint(s.Report.Status.AgentKey) == s.Key && s.Credential().Superseded == nil
}

// renewalDue is when the next credential is to be issued; zero if the hub renews none. Renewals are spread over a tenth of the interval, and those that fell
// due before this hub began over the time after that, so that never all members are renewed at once.
func (s State) renewalDue(asked time.Duration, began time.Time) time.Time {
	issued := s.issued()
	switch {
	case !s.renewable():
		return time.Time{}
	case !s.Acting: // nobody uses or has lost a credential
	case s.Exchanged && s.Used() == nil && issued == nil:
		return s.Created
	case s.Exchanged && s.Used() == nil && len(issued.Sealed) == 0: // the agent has lost it; a report that says so again and again costs a bounded number
		return issued.Issued.Add(renewalInterval(minLife))
	}
	last := s.Created
	if issued != nil {
		last = issued.Issued.Time
	}
	interval := renewalInterval(s.life(asked))
	if !s.Acting {
		interval = s.life(asked) / awaitsPerLife
	}
	due := last.Add(interval - time.Duration(spread(s.Namespace)*float64(interval)/10))
	if due.Before(began) {
		due = began.Add(time.Duration(spread(s.Namespace) * float64(min(maxCatchUp, interval/4))))
	}
	return due
}

// spread is a number from 0 to 1 that differs between members.
func spread(name string) float64 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name)) // never fails
	return float64(hash.Sum32()) / (1 << 32)
}

// Wait returns how long to wait if something is due before the given wait is over; a wait of zero has no end.
func (s State) Wait(wait time.Duration, now time.Time) time.Duration {
	for _, at := range []time.Time{s.settleAt, s.renewAt} {
		if left := max(at.Sub(now), time.Millisecond); !at.IsZero() && (wait == 0 || left < wait) {
			wait = left
		}
	}
	return wait
}

// shown is what the record says of the credentials of the account that the member has now.
func (s State) shown() clusterv1beta1.CredentialStatus {
	if s.Before == nil || s.Before.AccountUID != string(s.AccountUID) {
		return clusterv1beta1.CredentialStatus{AccountUID: string(s.AccountUID)}
	}
	return *s.Before.DeepCopy()
}

// namesOlder says whether the report names a credential that was in use before the one that the record shows.
func (s State) namesOlder() bool {
	used := s.Used()
	return used != nil && used.Sequence < s.shown().Sequence
}

// Credential is what the record is to say of the agent's credential.
func (s State) Credential() clusterv1beta1.CredentialStatus {
	said := s.shown()
	said.Kind, said.Key = string(s.Kind), s.Key[:min(len(s.Key), KeyShown)]
	used := s.Used()
	switch {
	case used == nil:
	case used.Sequence >= said.Sequence:
		said.Sequence, said.Expires = used.Sequence, used.Expires
	case said.Superseded == nil && s.superseded:
		said.Superseded = &used.Sequence
	}
	if said.Superseded != nil && s.Accepted == strconv.FormatInt(*said.Superseded, 10) {
		said.Sequence, said.Superseded = *said.Superseded, nil
	}
	return said
}

// ReasonSuperseded is that of the condition Cloned.
const ReasonSuperseded = "CredentialSuperseded"

// Cloned says that an older credential was in use after a newer one, and what to do; "" if none was.
func (s State) Cloned() string {
	said := s.Credential()
	if said.Superseded == nil {
		return ""
	}
	kind, record, remedy := "Cluster", fmt.Sprintf("-n %s annotate cluster %s", s.Workspace, s.Name), "revoke it and register the right one anew"
	if s.Workspace == "" {
		kind, record, remedy = "MemberCluster", "annotate membercluster "+s.Name, "revoke it and give the right one another token"
	}
	return fmt.Sprintf("an agent has used credential %d of this %s, which credential %d had replaced: the cluster was copied, or restored from a backup, and no credential is renewed; "+
		"if the agent that beats now is to keep the %s: kubectl %s %s=%d --overwrite; if not, %s",
		*said.Superseded, kind, said.Sequence, kind, record, fleet.AnnotationAcceptCredential, *said.Superseded, remedy)
}

// Warning is what the agent is to say about that to the people who run its cluster.
func (s State) Warning() string {
	if s.Cloned() == "" {
		return ""
	}
	return "an older credential of this cluster was in use after a newer one: it was copied, or restored from a backup; ask the people who run the hub"
}
