package dashboard

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// TestTheFleetIsASmallPage measures the pages of a large fleet as a browser gets them. The bound
// of the time is wide, for slow machines; the log has the time.
func TestTheFleetIsASmallPage(t *testing.T) {
	s, all := remembered()
	s.authenticator, s.ctx = newKeyAuthenticator(all), t.Context()
	var members []client.Object
	for i := range 10_000 {
		ready := fleet.Condition{Type: fleet.ConditionReady, Status: corev1.ConditionTrue}
		if i%50 == 0 {
			ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, "AgentLost", fmt.Sprint("no heartbeat ", i)
		}
		members = append(members, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("workspace-%d", i%20), Name: fmt.Sprintf("edge-%05d", i), ResourceVersion: "1",
			Labels: map[string]string{"provider.cattle.io": []string{"k3s", "rke2"}[i%2]},
		}, Status: fleet.ClusterStatus{
			Conditions: []fleet.Condition{ready}, Agent: fleet.AgentStatus{KubernetesVersion: fmt.Sprintf("v1.3%d.1", i%7)},
		}})
	}
	s.cache.replace(clusters, members)
	for path, most := range map[string]int{
		"/": 150_000, "/?sort=-version&page=40": 150_000, "/?column=labels&column=age&column=why&state=Lost": 150_000, "/?view=wall": 150_000,
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		request.AddCookie(&http.Cookie{Name: ownersCookie(request), Value: s.authenticator.(*keyAuthenticator).key})
		request.Header.Set("Accept-Encoding", "gzip")
		recorder, began := httptest.NewRecorder(), time.Now()
		s.Handler().ServeHTTP(recorder, request)
		took := time.Since(began)
		t.Logf("%s: %d bytes in %s", path, recorder.Body.Len(), took)
		compressed := recorder.Header().Get("Content-Encoding") == "gzip"
		if recorder.Code != http.StatusOK || !compressed || recorder.Body.Len() > most || took > 5*time.Second {
			t.Errorf("%s: %d, %d bytes in %s", path, recorder.Code, recorder.Body.Len(), took)
		}
	}
}
