package join

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// TestARequestThatWasDeletedUnreadIsMadeAgain plays a hub that deletes a request before it has let
// the agent read it: all that the agent learns is that it may not.
func TestARequestThatWasDeletedUnreadIsMadeAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := make(chan struct{}, 9)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any = metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: metav1.StatusReasonForbidden,
			Code: http.StatusForbidden,
		}
		code := http.StatusForbidden
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/clusterregistrations") {
			answer, code = fleet.ClusterRegistration{TypeMeta: metav1.TypeMeta{APIVersion: fleet.GroupVersion.String(), Kind: "ClusterRegistration"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "request-1", UID: "1"}}, http.StatusCreated
			asked <- struct{}{}
		}
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	passing := clocktesting.NewFakeClock(now)
	j := joiner(t, nil)
	j.Clock, j.Config.ClientID = passing, "id"
	j.Bootstrap.Server = server.URL
	j.Bootstrap.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if _, err := j.Join(ctx); ctx.Err() == nil {
			t.Errorf("joining ended: %v", err)
		}
	}()
	for requests := 0; requests < 2; {
		select {
		case <-asked:
			if requests++; requests == 2 && passing.Since(now) < renewAfter {
				t.Errorf("it asks again after %s", passing.Since(now))
			}
		case <-time.After(time.Millisecond):
			if passing.HasWaiters() {
				passing.Step(5 * time.Second)
			}
		case <-ended:
			t.Fatal("it gave up")
		}
	}
	cancel()
	<-ended
}
