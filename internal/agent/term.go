package agent

import (
	"context"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/local"
	"github.com/muster-fleet/muster/internal/fleet/term"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/retry"
)

// terms remembers the highest term of the hub, in a ConfigMap of the agent's namespace. Only a hub
// that has accepted the agent's credential raises it. All sessions of an agent share it.
type terms struct {
	member *local.Cluster
	log    logr.Logger

	mu sync.Mutex
	// obeyed is the highest term; nil before the first. read is set once the ConfigMap was read.
	obeyed *clusterv1beta1.HubTerm
	read   bool
	// memberships are the last memberships, for the deployer to recognize their deliveries after a
	// restore of the hub.
	memberships []membershipAt
	// storing serializes the writes; stored and storedMemberships are the content of the ConfigMap.
	storing           sync.Mutex
	stored            *clusterv1beta1.HubTerm
	storedMemberships []membershipAt
}

func (t *terms) get() *clusterv1beta1.HubTerm {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.obeyed
}

// load reads the remembered term once. A ConfigMap without a valid signature counts as none: a hub
// has not written it.
func (t *terms) load(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.read {
		return nil
	}
	configMap, err := t.member.ReadConfigMap(ctx, naming.ObeyedTermConfigMap)
	switch {
	case apierrors.IsForbidden(err):
		t.log.Info("The highest term of the hub is remembered until a restart only: upgrade the chart of the agent to grant the right",
			"configMap", t.member.Namespace+"/"+naming.ObeyedTermConfigMap)
	case err != nil:
		return err
	case configMap != nil:
		stored, err := term.Decode(configMap.Data[term.ConfigMapKey])
		if err != nil {
			t.log.Info("The remembered term of the hub is not used", "configMap", t.member.Namespace+"/"+naming.ObeyedTermConfigMap,
				"reason", err.Error())
			break
		}
		t.obeyed, t.stored = stored, stored
		if t.memberships, err = decodeMemberships(configMap.Data[membershipsKey]); err != nil {
			t.log.Info("The remembered memberships are not used", "configMap", t.member.Namespace+"/"+naming.ObeyedTermConfigMap,
				"reason", err.Error())
		}
		t.storedMemberships = t.memberships
	}
	t.read = true
	return nil
}

// refusal returns the reason to refuse the orders in a report; "" if the member obeys.
func (t *terms) refusal(report *clusterv1beta1.InternalMemberCluster) string {
	return term.Refusal(t.get(), report.Spec.HubTerm)
}

// raise remembers a higher term in memory, and reports whether it has changed.
func (t *terms) raise(offered *clusterv1beta1.HubTerm) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !term.Adopts(t.obeyed, offered) {
		return false
	}
	t.log.Info("The hub has another term", "hub", term.Name(offered), "from", numberOf(t.obeyed), "to", offered.Term)
	t.obeyed = offered.DeepCopy()
	return true
}

// enter remembers the membership of a report, if its hub is the obeyed one. It reports whether the
// membership is new.
func (t *terms) enter(report *clusterv1beta1.InternalMemberCluster) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, known := report.Spec.HubTerm, t.memberships
	if now == nil || !equality.Semantic.DeepEqual(now, t.obeyed) {
		return false
	}
	t.memberships = remember(known, membershipIn(report.UID, now))
	return !slices.Equal(known, t.memberships)
}

// lostMemberships returns the reports of memberships at the hub before its restore.
func (t *terms) lostMemberships() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.obeyed == nil {
		return nil
	}
	return lostMemberships(t.memberships, t.obeyed)
}

func numberOf(t *clusterv1beta1.HubTerm) int64 {
	if t == nil {
		return 0
	}
	return t.Term
}

// store writes the highest term and the memberships into the ConfigMap, unless they are there.
func (t *terms) store(ctx context.Context) error {
	t.storing.Lock()
	defer t.storing.Unlock()
	t.mu.Lock()
	obeyed, memberships := t.obeyed, t.memberships
	t.mu.Unlock()
	if obeyed == t.stored && slices.Equal(memberships, t.storedMemberships) {
		return nil
	}
	err := t.member.StoreConfigMap(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.member.Namespace, Name: naming.ObeyedTermConfigMap},
		Data:       map[string]string{term.ConfigMapKey: term.Encode(obeyed), membershipsKey: encodeMemberships(memberships)},
	})
	if err != nil && !apierrors.IsForbidden(err) { // load has logged the missing right
		return err
	}
	t.stored, t.storedMemberships = obeyed, memberships
	return nil
}

// accept remembers the term of a hub that has accepted the credential, and the membership, before
// the agent obeys the hub.
func (t *terms) accept(ctx context.Context, session *hubclient.Session) error {
	if err := t.load(ctx); err != nil {
		return err
	}
	t.raise(session.Report.Spec.HubTerm)
	t.enter(session.Report)
	return t.store(ctx)
}

// masked returns the report of a refused hub without its orders. The agent sends heartbeats and
// reports, as in a quarantine, and removes nothing.
func masked(report *clusterv1beta1.InternalMemberCluster) *clusterv1beta1.InternalMemberCluster {
	quiet := report.DeepCopy()
	quiet.Spec = clusterv1beta1.InternalMemberClusterSpec{
		State: clusterv1beta1.ClusterStateJoin, LeavePolicy: clusterv1beta1.LeaveOrphan, Quarantined: true,
		HeartbeatPeriodSeconds: report.Spec.HeartbeatPeriodSeconds, HubTerm: report.Spec.HubTerm,
	}
	return quiet
}

const remedyFenced = ": nothing on this cluster is changed. If this hub is to be obeyed, run muster hub promote there; else give this " +
	"agent the address of the other hub"

// obey returns a report with the orders that the member obeys, and the message about refused ones.
func (s *session) obey(report *clusterv1beta1.InternalMemberCluster) (*clusterv1beta1.InternalMemberCluster, string) {
	refusal := s.terms.refusal(report)
	if refusal == "" {
		return report, ""
	}
	return masked(report), "the hub at " + s.hub.Server() + " is refused: " + refusal + remedyFenced
}

// fencedMessage returns the message about a refused hub; "" if the member obeys.
func (s *session) fencedMessage() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fenced
}

// rememberTerm stores each higher term of the running session.
func (s *session) rememberTerm(ctx context.Context) {
	for backoff := retry.Unreachable(); ctx.Err() == nil; {
		if err := s.terms.store(ctx); err != nil && ctx.Err() == nil {
			s.log.Info("Failed to remember the term of the hub", "reason", err.Error())
			_ = retry.Wait(ctx, s.clock, backoff.Step()) // the loop ends with ctx
			continue
		}
		backoff = retry.Unreachable()
		waitFor(ctx, s.termRaised)
	}
}

// refusedTerm returns the term to report to a refused hub; nil if the member obeys.
func (s *session) refusedTerm() *clusterv1beta1.HubTerm {
	if s.fenced == "" {
		return nil
	}
	return s.terms.get()
}

// tellFormer shows the term of its successor to a former hub, as soon as it answers. It ends if the
// hub refuses.
func (a *Agent) tellFormer(ctx context.Context, from *hubclient.Session, successor *clusterv1beta1.HubTerm) {
	a.log.Info("The hub is the successor of the previous hub: the deliveries stay", "from", from.Server())
	for backoff := retry.Moving(); ctx.Err() == nil; {
		err := from.ReportTerm(ctx, successor)
		if err == nil {
			a.log.Info("The previous hub knows the term of its successor", "from", from.Server())
			return
		}
		if hubclient.Classify(err).Refuses() {
			return
		}
		_ = retry.Wait(ctx, a.clock, backoff.Step()) // the loop ends with ctx
	}
}

// followObeyed handles a change of the orders of the hub from refused to obeyed, and back. The
// caller holds the lock.
func (s *session) followObeyed(fenced string) {
	if s.fenced == fenced {
		return
	}
	s.fenced = fenced
	kubeclient.Notify(s.quarantineChanged)
	if fenced != "" {
		kubeclient.Notify(s.unanswered)
		s.status.set(Fenced, fenced)
		return
	}
	s.status.set(Joined, "this cluster obeys the hub again; sending the next heartbeat")
}
