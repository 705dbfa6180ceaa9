package hub_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/runtime/notify"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// gate is a receiver of notifications. It takes only what is signed by its key.
type gate struct {
	*httptest.Server
	key []byte
	mu  sync.Mutex
	// got has the types of the notifications by their subjects, once for each ID.
	got  map[string][]string
	seen map[string]bool
	// refused is the number of answers 500 to give.
	refused int
}

func newGate(t *testing.T, refused int) *gate {
	t.Helper()
	g := &gate{key: []byte("0123456789012345678901234567"), got: map[string][]string{}, seen: map[string]bool{}, refused: refused}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

func (g *gate) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body) // a broken body has another signature
	mac := hmac.New(sha256.New, g.key)
	fmt.Fprintf(mac, "%s.%s.%s", request.Header.Get("webhook-id"), request.Header.Get("webhook-timestamp"), body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	var event notify.Event
	if json.Unmarshal(body, &event) != nil || request.Header.Get("webhook-signature") != want {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refused > 0 {
		g.refused--
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if !g.seen[event.ID] {
		g.seen[event.ID] = true
		g.got[event.Subject] = append(g.got[event.Subject], strings.TrimPrefix(event.Type, "io.muster.member."))
	}
}

// until waits for the notifications about a subject.
func (g *gate) until(f fixture, subject string, want ...string) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("the receiver knows of %v of %s", want, subject), func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !slices.Equal(g.got[subject], want) {
			return fmt.Errorf("it knows of %v; of all: %v", g.got[subject], g.got)
		}
		return nil
	})
}

// settings of a hub that notifies the receiver.
func (g *gate) settings() string {
	return `{"importLoopback":true,"notifications":[{"name":"gate","url":"` + g.URL + `/s3cret","secretName":"gate","allowLoopback":true}]}`
}

// signs gives the hub a key.
func (f fixture) signs(key []byte) {
	f.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: "gate"}}
	f.t.Cleanup(func() { f.check(client.IgnoreNotFound(f.Delete(context.Background(), secret))) })
	secret.Data = map[string][]byte{"key": []byte("whsec_" + base64.StdEncoding.EncodeToString(key))}
	f.check(client.IgnoreAlreadyExists(f.Create(context.Background(), secret.DeepCopy())))
	f.check(f.Update(context.Background(), secret))
}

// remembers waits for the history of a member.
func (f fixture) remembers(member client.Object, want ...clusterv1beta1.HistoryReason) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("the history has %v", want), func() error {
		if err := f.get(member, member.GetNamespace(), member.GetName()); err != nil {
			return err
		}
		var got []clusterv1beta1.HistoryReason
		for _, entry := range view.HistoryOf(member) {
			got = append(got, entry.Reason)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("it has %v", got)
		}
		return nil
	})
}

func (f fixture) annotate(o client.Object, key, value string) {
	f.t.Helper()
	f.patch(o, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, value))
}

// TestTheLifeOfAMemberIsToldAndRemembered has a Cluster and a MemberCluster join, get lost, return,
// and more, beside a hub that restarts. Their agents miss three periods of ten seconds.
func TestTheLifeOfAMemberIsToldAndRemembered(t *testing.T) {
	g := newGate(t, 2)
	f := newAlone(t, g.settings())
	f.signs([]byte("another key, which the receiver does not know"))
	_, values := f.token("new-token", "")
	agent, other := f.join(values, map[string]any{"clientID": "told"}), f.join(values, map[string]any{"clientID": "gone"})
	name := naming.Cluster("told")
	cluster := f.untilReady(name, "Ready")
	hub := f
	hub.workspace = naming.SystemNamespace
	f.eventually("an Event names the problem", func() error {
		return hub.event("NotificationsFail", naming.HubConfigMap, "notifications to gate fail, and are tried again: the receiver answers 401 "+
			"Unauthorized: check that the receiver has the key of the Secret")
	})
	f.signs(g.key)
	f.configure(strings.Replace(g.settings(), "/s3cret", "/s3cret/2", 1)) // ends the pause
	subject := "Cluster/" + f.workspace + "/" + name
	g.until(f, subject, "joined")
	f.eventually("an Event says so", func() error {
		return hub.event("NotificationsSent", naming.HubConfigMap, "notifications to gate are sent again")
	})

	m := f.register("told")
	m.eventually("the agent answers", func() error { return m.answer(metav1.ConditionTrue, "") })
	g.until(f, "MemberCluster/"+m.name, "joined")
	mc := m.record()
	f.remembers(&mc, clusterv1beta1.HistoryJoined)
	if by := mc.Annotations[clusterv1beta1.AnnotationIdentityBy]; by == "" || !strings.HasSuffix(mc.Status.History[0].Message,
		"; "+by+" chose its identity") {
		t.Errorf("the identity is by %q, and the entry says %q", by, mc.Status.History[0].Message)
	}
	mc.Spec.HeartbeatPeriodSeconds = 1
	f.check(m.Update(context.Background(), &mc))

	agent.stop()
	gone := f.untilReady(naming.Cluster("gone"), "Ready")
	other.stop()
	f.untilReady(name, "AgentLost")
	m.until("Healthy", metav1.ConditionFalse, "AgentLost")
	g.until(f, subject, "joined", "lost")
	g.until(f, "MemberCluster/"+m.name, "joined", "lost")
	f.restartHub()
	f.untilReady(name, "AgentLost")
	agent.start()
	f.untilReady(name, "Ready")
	m.check(m.answer(metav1.ConditionTrue, "")) // the hub watches by now
	g.until(f, subject, "joined", "lost", "back")
	g.until(f, "MemberCluster/"+m.name, "joined", "lost", "back")
	f.remembers(&cluster, clusterv1beta1.HistoryJoined, clusterv1beta1.HistoryLost, clusterv1beta1.HistoryBack)
	back := cluster.Status.History[2]
	if !strings.HasPrefix(back.Message, "the agent sends heartbeats again, after ") {
		t.Errorf("the entry is %+v", back)
	}
	f.decides(g, &cluster, subject)
	f.goes(g, &gone)
	if text := f.hub.Log(); strings.Contains(text, "s3cret") {
		t.Errorf("the log of the hub has the URL:\n%s", text)
	}
}

// decides has users cordon, drain, revoke and remove a member.
func (f fixture) decides(g *gate, cluster *fleet.Cluster, subject string) {
	f.t.Helper()
	told := []string{"joined", "lost", "back"}
	remembered := []clusterv1beta1.HistoryReason{clusterv1beta1.HistoryJoined, clusterv1beta1.HistoryLost, clusterv1beta1.HistoryBack}
	for _, step := range []struct {
		key, value string
		reason     clusterv1beta1.HistoryReason
		kind       string
	}{
		{fleet.AnnotationCordoned, `"true"`, clusterv1beta1.HistoryCordoned, "cordoned"},
		{fleet.AnnotationDrained, `"true"`, clusterv1beta1.HistoryDrained, "drained"},
		{fleet.AnnotationCordoned, "null", clusterv1beta1.HistoryUncordoned, "uncordoned"},
		{fleet.AnnotationQuarantined, `"true"`, clusterv1beta1.HistoryQuarantined, "quarantined"},
		{fleet.AnnotationQuarantined, "null", clusterv1beta1.HistoryQuarantineEnded, "quarantine-ended"},
		{clusterv1beta1.AnnotationRevoked, `"true"`, clusterv1beta1.HistoryRevoked, "revoked"},
		{clusterv1beta1.AnnotationRevoked, "null", clusterv1beta1.HistoryRestored, "restored"},
	} {
		f.annotate(cluster, step.key, step.value)
		told, remembered = append(told, step.kind), append(remembered, step.reason)
		f.remembers(cluster, remembered...)
		g.until(f, subject, told...)
	}
	f.check(f.Delete(context.Background(), cluster))
	g.until(f, subject, append(told, "left")...)
}

// goes has a user delete a lost member, whose agent is to remove what it has deployed.
func (f fixture) goes(g *gate, lost *fleet.Cluster) {
	f.t.Helper()
	f.annotate(lost, clusterv1beta1.AnnotationLeavePolicy, `"Delete"`)
	f.check(f.Delete(context.Background(), lost))
	f.untilReady(lost.Name, "Leaving")
	f.remembers(lost, clusterv1beta1.HistoryJoined, clusterv1beta1.HistoryLost)
	if agent := membership.ClusterStatus(&lost.Status, nil).Agent; agent != membership.AgentLost {
		f.t.Errorf("the agent of a lost member that leaves is %s", agent)
	}
	g.until(f, "Cluster/"+f.workspace+"/"+lost.Name, "joined", "lost")
}

// TestAVerdictAboutARequestIsTold has users decide about two requests.
func TestAVerdictAboutARequestIsTold(t *testing.T) {
	g := newGate(t, 0)
	f := newAlone(t, g.settings())
	f.signs(g.key)
	values := f.stampingToken("careful", fleet.ClusterRegistrationTokenSpec{Approval: fleet.ApprovalManual})
	approved, denied := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: "approved", ClientRandom: "1"}), f.mustAsk(values,
		fleet.ClusterRegistrationSpec{ClientID: "denied", ClientRandom: "1"})
	f.untilState(&approved, fleet.RegistrationPending, "ApprovalRequired")
	f.untilState(&denied, fleet.RegistrationPending, "ApprovalRequired")
	f.annotate(&approved, fleet.AnnotationApproved, `"true"`)
	f.annotate(&denied, fleet.AnnotationApproved, `"false"`)
	g.until(f, "ClusterRegistration/"+f.workspace+"/"+approved.Name, "approval-required", "approved")
	g.until(f, "ClusterRegistration/"+f.workspace+"/"+denied.Name, "approval-required", "denied")
}
