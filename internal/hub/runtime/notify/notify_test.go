package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/history"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/naming"
)

const signingKey = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5"

// rig is a Notifier that runs, with the settings of a ConfigMap.
type rig struct {
	*Notifier
	t        *testing.T
	client   client.Client
	config   *settings.Controller
	recorder *events.FakeRecorder
	log      *lockedBuffer
}

type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func inSystem(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "system", Name: name}
}

func newRig(t *testing.T, sinks ...string) *rig {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, fleet.AddToScheme, clusterv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&corev1.ConfigMap{ObjectMeta: inSystem(naming.HubConfigMap), Data: map[string]string{"config": listed(sinks)}},
		&corev1.Secret{ObjectMeta: inSystem("key"), Data: map[string][]byte{secretKey: []byte(keyPrefix + signingKey)}},
	).Build()
	r := &rig{t: t, client: c, recorder: events.NewFakeRecorder(100), log: &lockedBuffer{}}
	r.config = settings.New(c, r.recorder, "system")
	r.Notifier = New(Deps{Client: c, Live: c, Clock: clock.RealClock{}, Recorder: r.recorder, Config: r.config, Namespace: "system"})
	if err := r.config.Load(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return r
}

// start runs the Notifier until the test ends.
func (r *rig) start() {
	ctx, cancel := context.WithCancel(logr.NewContext(context.Background(), logr.FromSlogHandler(slog.NewTextHandler(r.log, nil))))
	ended := make(chan error, 1)
	go func() { ended <- r.Start(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			r.t.Error(err)
		}
	})
}

// configure changes the settings.
func (r *rig) configure(sinks ...string) {
	r.t.Helper()
	configMap := &corev1.ConfigMap{ObjectMeta: inSystem(naming.HubConfigMap)}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"config":`+strconv.Quote(listed(sinks))+`}}`))
	if err := r.client.Patch(r.t.Context(), configMap, patch); err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.config.Reconcile(r.t.Context(), ctrl.Request{}); err != nil {
		r.t.Fatal(err)
	}
}

func listed(sinks []string) string { return `{"notifications":[` + strings.Join(sinks, ",") + `]}` }

func sinkOf(name, address string, more ...string) string {
	return fmt.Sprintf(`{"name":%q,"url":%q,"secretName":"key","allowLoopback":true%s}`, name, address, strings.Join(more, ""))
}

var web = &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web", UID: "1"}}

func lost(message string) history.Change {
	return history.Change{Reason: clusterv1beta1.HistoryLost, Message: message}
}

// receiver is a real server that checks the signature, and answers as the test says.
type receiver struct {
	*httptest.Server
	got chan Event
	ids chan string
}

func newReceiver(t *testing.T, answer func(number int, w http.ResponseWriter)) *receiver {
	t.Helper()
	r := &receiver{got: make(chan Event, 100), ids: make(chan string, 2000)}
	var number atomic.Int32
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		var event Event
		if err == nil {
			err = json.Unmarshal(body, &event)
		}
		id := request.Header.Get("webhook-id")
		if err != nil || event.ID != id || !signedBy(signingKey, request.Header, body) ||
			request.Header.Get("content-type") != "application/cloudevents+json; charset=UTF-8" {
			t.Errorf("%s %s with %v, %s: %v", request.Method, request.URL.Path, request.Header, body, err)
		}
		r.ids <- id
		tracked := &statusOf{ResponseWriter: w, status: http.StatusOK}
		if answer != nil {
			answer(int(number.Add(1)), tracked)
		}
		if tracked.status < 300 {
			r.got <- event
		}
	}))
	t.Cleanup(r.Close)
	return r
}

type statusOf struct {
	http.ResponseWriter
	status int
}

func (s *statusOf) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// signedBy verifies a request as Standard Webhooks say.
func signedBy(key string, header http.Header, body []byte) bool {
	secret, err := base64.StdEncoding.DecodeString(key)
	seconds, failed := strconv.ParseInt(header.Get("webhook-timestamp"), 10, 64)
	if err != nil || failed != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%s.%s", header.Get("webhook-id"), header.Get("webhook-timestamp"), body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for signature := range strings.FieldsSeq(header.Get("webhook-signature")) {
		if hmac.Equal([]byte(signature), []byte(want)) {
			return true
		}
	}
	return false
}

func (r *receiver) next(t *testing.T) Event {
	t.Helper()
	select {
	case event := <-r.got:
		return event
	case <-time.After(30 * time.Second):
		t.Fatal("nothing arrived")
		return Event{}
	}
}

// said waits for an Event of the hub.
func (r *rig) said(parts ...string) {
	r.t.Helper()
	select {
	case text := <-r.recorder.Events:
		for _, part := range parts {
			if !strings.Contains(text, part) {
				r.t.Errorf("the Event is %q, want %q", text, part)
			}
		}
	case <-time.After(30 * time.Second):
		r.t.Fatalf("there is no Event %q", parts)
	}
}

func TestAChangeArrivesAsASignedCloudEvent(t *testing.T) {
	receiver := newReceiver(t, nil)
	r := newRig(t, sinkOf("gate", receiver.URL, `,"reasons":["Lost","Left"],"workspaces":["clusters"]`), sinkOf("all", receiver.URL))
	r.configure(sinkOf("gate", receiver.URL, `,"reasons":["Lost","Left"],"workspaces":["clusters"]`))
	r.Tell(web, "Online", history.Change{Reason: clusterv1beta1.HistoryBack})
	r.Tell(&fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "others", Name: "web", UID: "2"}}, "Lost", lost("elsewhere"))
	r.Tell(&clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", UID: "3"}}, "Lost", lost("no workspace"))
	r.start()
	r.Tell(web, "Lost", lost("no heartbeat since noon"))
	got := receiver.next(t)
	if got.ID == "" || time.Since(got.Time).Abs() > time.Minute {
		t.Errorf("the event is %+v", got)
	}
	got.ID, got.Time = "", time.Time{}
	want := Event{
		SpecVersion: "1.0", Source: "/muster-hub", Type: "io.muster.member.lost", Subject: "Cluster/clusters/web",
		DataContentType: "application/json", Data: Data{
			Kind: "Cluster", Namespace: "clusters", Name: "web", UID: "1", Reason: "Lost", Message: "no heartbeat since noon", State: "Lost",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.configure(sinkOf("all", receiver.URL))
	r.Tell(&clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", UID: "3"}}, "Online",
		history.Change{Reason: clusterv1beta1.HistoryAgentUpdated})
	if got := receiver.next(t); got.Subject != "MemberCluster/edge" || got.Type != "io.muster.member.agent-updated" {
		t.Errorf("the event is %+v", got)
	}
}

func TestAReceiverThatFailsGetsTheSameMessageAgain(t *testing.T) {
	receiver := newReceiver(t, func(number int, w http.ResponseWriter) {
		switch number {
		case 1:
			w.WriteHeader(http.StatusInternalServerError)
		case 2:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	r := newRig(t, sinkOf("gate", receiver.URL))
	r.start()
	r.Tell(web, "Lost", lost("first"))
	r.Tell(web, "Lost", lost("second"))
	if first, second := receiver.next(t), receiver.next(t); first.Data.Message != "first" || second.Data.Message != "second" {
		t.Errorf("%s, then %s arrived", first.Data.Message, second.Data.Message)
	}
	if a, b, c := <-receiver.ids, <-receiver.ids, <-receiver.ids; a != b || b != c {
		t.Errorf("the attempts have the IDs %s, %s and %s", a, b, c)
	}
	r.said("Warning NotificationsFail notifications to gate fail", "the receiver answers 500 Internal Server Error")
	r.said("Normal NotificationsSent notifications to gate are sent again")
	receiver.Close() // after the end of the last request
	want := `# HELP muster_hub_notifications_failing 1 if the last attempt to send to the sink failed, else 0.
# TYPE muster_hub_notifications_failing gauge
muster_hub_notifications_failing{sink="gate"} 0
`
	if err := testutil.CollectAndCompare(r, strings.NewReader(want), "muster_hub_notifications_failing"); err != nil {
		t.Error(err)
	}
	if failed := r.sent.of("gate", resultFailed); failed != 2 || r.sent.of("gate", resultSent) == 0 {
		t.Errorf("%d attempts failed", failed)
	}
}

func TestAReceiverThatHangsHoldsNoOtherReceiverUp(t *testing.T) {
	release := make(chan struct{})
	hangs := newReceiver(t, func(int, http.ResponseWriter) { <-release })
	t.Cleanup(func() { close(release) })
	well := newReceiver(t, nil)
	r := newRig(t, sinkOf("hangs", hangs.URL+"/s3cret"), sinkOf("well", well.URL))
	r.timeout = 200 * time.Millisecond
	r.start()
	began := time.Now()
	for range 20 {
		r.Tell(web, "Lost", lost(""))
	}
	if waited := time.Since(began); waited > r.timeout {
		t.Errorf("the hub waited %s", waited)
	}
	for range 20 {
		well.next(t)
	}
	r.said("notifications to hangs fail", "the receiver did not answer within 200ms")
	if strings.Contains(r.log.String(), "s3cret") {
		t.Errorf("the log has the URL: %s", r.log)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	elsewhere := newReceiver(t, nil)
	redirects := newReceiver(t, func(_ int, w http.ResponseWriter) {
		w.Header().Set("Location", elsewhere.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	r := newRig(t, sinkOf("gate", redirects.URL))
	r.start()
	r.Tell(web, "Lost", lost(""))
	r.said("the receiver answers 307, a redirect, which the hub does not follow")
	r.configure(sinkOf("gate", elsewhere.URL)) // ends the pause
	if elsewhere.next(t).Data.Reason != clusterv1beta1.HistoryLost {
		t.Error("another change arrived")
	}
}

func TestWhatAReceiverRefusesIsNotRepeated(t *testing.T) {
	receiver := newReceiver(t, func(number int, w http.ResponseWriter) {
		if number == 1 {
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
	})
	r := newRig(t, sinkOf("gate", receiver.URL))
	r.start()
	r.Tell(web, "Lost", lost("refused"))
	r.Tell(web, "Lost", lost("taken"))
	if got := receiver.next(t); got.Data.Message != "taken" {
		t.Errorf("%s arrived", got.Data.Message)
	}
	if failed := r.sent.of("gate", resultFailed); failed != 1 {
		t.Errorf("%d attempts failed", failed)
	}
}

func TestAMissingOrWrongKeyIsNamed(t *testing.T) {
	receiver := newReceiver(t, nil)
	r := newRig(t, strings.Replace(sinkOf("gate", receiver.URL), `"secretName":"key"`, `"secretName":"missing"`, 1))
	r.start()
	r.Tell(web, "Lost", lost(""))
	r.said("there is no Secret system/missing: create it with the signing key under key")
	secret := &corev1.Secret{ObjectMeta: inSystem("missing"), Data: map[string][]byte{secretKey: []byte("s3cret")}}
	if err := r.client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if _, err := parseKeys(secret.Data[secretKey]); err == nil || !strings.Contains(err.Error(), "key is no signing key") ||
		strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the key is judged %v", err)
	}
	secret.Data[secretKey] = []byte(signingKey + "\n" + keyPrefix + signingKey + "\n") // the next key beside the previous one
	if err := r.client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	receiver.next(t)
	r.said("notifications to gate are sent again")
}

func TestAReceiverWithAnotherKeyGetsTheMessageOnceItHasTheKey(t *testing.T) {
	var mu sync.Mutex
	known := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, minKey))
	taken := make(chan bool, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body) // a broken body has another signature
		mu.Lock()
		defer mu.Unlock()
		if !signedBy(known, request.Header, body) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		taken <- true
	}))
	t.Cleanup(server.Close)
	r := newRig(t, sinkOf("gate", server.URL))
	r.start()
	r.Tell(web, "Lost", lost(""))
	r.said("the receiver answers 401 Unauthorized: check that the receiver has the key of the Secret")
	mu.Lock()
	known = signingKey
	mu.Unlock()
	select {
	case <-taken:
	case <-time.After(30 * time.Second):
		t.Error("the message did not arrive")
	}
}

func TestAFullQueueDropsTheOldest(t *testing.T) {
	q := newQueue()
	dropped := 0
	for i := range maxWaiting + 3 {
		dropped += q.push(message{id: strconv.Itoa(i)})
	}
	if first, _ := q.first(); dropped != 3 || first.id != "3" {
		t.Errorf("%d gave way, and the first is %s", dropped, first.id)
	}
	for range attemptsInARow {
		q.failed("3")
	}
	if first, _ := q.first(); first.id != "4" || len(q.waiting) != maxWaiting || q.waiting[maxWaiting-1].id != "3" {
		t.Errorf("after %d attempts the first is %s", attemptsInARow, first.id)
	}
	q.done("4")
	q.done("gone")
	if first, _ := q.first(); first.id != "5" || len(q.waiting) != maxWaiting-1 {
		t.Errorf("then the first is %s of %d", first.id, len(q.waiting))
	}
}

func TestAMemberThatFlapsSendsNoFlood(t *testing.T) {
	r := newRig(t, sinkOf("gate", "http://127.0.0.1:1"))
	for range 1000 {
		r.Tell(web, "Lost", lost(""))
	}
	if waiting := len(r.queue("gate").waiting); waiting != 25 {
		t.Errorf("%d messages wait", waiting)
	}
}

func TestPausesGrowAndTheReceiverMayAskForMore(t *testing.T) {
	for failures, most := range map[int]time.Duration{1: time.Second, 4: 8 * time.Second, 30: longestPause, 1000: longestPause} {
		if pause := pauseAfter(failures, "a"); pause < most/2 || pause > most {
			t.Errorf("after %d failures the pause is %s", failures, pause)
		}
	}
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-7": 0, "999999": longestAsked, "soon": 0,
		now.Add(time.Minute).Format(http.TimeFormat): time.Minute, now.Add(-time.Minute).Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("Retry-After %q is %s, want %s", text, got, want)
		}
	}
}

func TestTheAddressOfAReceiverIsCheckedAfterTheNameResolution(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:80": false, "[::1]:80": false, "169.254.169.254:80": false, "0.0.0.0:80": false, "[::ffff:127.0.0.1]:80": false,
		"10.0.0.1:443": true, "[2001:db8::1]:443": true,
	} {
		if err := control(settings.Sink{URL: "https://gate.example"})("tcp", address, nil); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
	receiver := newReceiver(t, nil)
	parsed, err := url.Parse(receiver.URL)
	if err != nil {
		t.Fatal(err)
	}
	sink := strings.Replace(sinkOf("gate", "http://localhost:"+parsed.Port()), `"allowLoopback":true`, `"allowLoopback":false`, 1)
	r := newRig(t, sink)
	r.start()
	r.Tell(web, "Lost", lost(""))
	r.said("url leads to a loopback address, which is the hub's own machine")
}

// TestASignatureIsTheOneOfStandardWebhooks has an example of the libraries of Standard Webhooks.
func TestASignatureIsTheOneOfStandardWebhooks(t *testing.T) {
	of, err := parseKeys([]byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := keys{of: of}.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("it is %s, want %s", got, want)
	}
}
