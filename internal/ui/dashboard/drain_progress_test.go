package dashboard

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// drainedAt is a member with a drain whose last sign of life was at a time.
func drainedAt(seen time.Time) *clusterv1beta1.MemberCluster {
	progress := membership.DrainProgress{Moved: 2, Total: 5, Seen: metav1.NewTime(seen)}
	return &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", Annotations: map[string]string{
		fleet.AnnotationCordoned: "true", fleet.AnnotationDrainProgress: progress.Value(), "other": "x"}}}
}

// TestADrainOfADeadProcessIsShownAsStopped ages the last sign of life of a drain after the cache
// has read the member.
func TestADrainOfADeadProcessIsShownAsStopped(t *testing.T) {
	now := time.Now()
	for want, seen := range map[string]time.Time{
		"draining: 2 of 5 placements moved":          now.Add(-time.Minute),
		"drain stopped at 2 of 5 placements 10m ago": now.Add(-10 * time.Minute),
		"drain stopped at 2 of 5 placements 0s ago":  now.Add(time.Hour), // by a wrong clock
		"drain stopped at 2 of 5 placements 91s ago": now.Add(-91 * time.Second),
	} {
		e := entryOf(memberClusters, slim(drainedAt(seen)))
		if why := e.Why(); !strings.Contains(why, want) {
			t.Errorf("a member seen %s ago says %q, want %q", now.Sub(seen), why, want)
		}
	}
	kept := slim(drainedAt(now)).(*clusterv1beta1.MemberCluster)
	if len(kept.Annotations) != 2 || kept.Annotations["other"] != "" {
		t.Errorf("the cache keeps %v", kept.Annotations)
	}
	for text, annotations := range map[string]map[string]string{
		"not cordoned": {fleet.AnnotationDrainProgress: drainedAt(now).Annotations[fleet.AnnotationDrainProgress]},
		"malformed":    {fleet.AnnotationCordoned: "true", fleet.AnnotationDrainProgress: "{"},
		"too many":     {fleet.AnnotationCordoned: "true", fleet.AnnotationDrainProgress: `{"moved":7,"total":5,"seen":"2026-01-02T03:04:05Z"}`},
	} {
		if p := membership.DrainOf(&metav1.ObjectMeta{Annotations: annotations}); p != nil {
			t.Errorf("%s: there is %+v", text, p)
		}
	}
}

// TestTheTableNamesTheDecisionsOfUsers has both kinds of members pass through the cache of the
// dashboard, which drops the other annotations and the spec.
func TestTheTableNamesTheDecisionsOfUsers(t *testing.T) {
	quarantined := time.Now().Add(-20 * time.Minute).UTC()
	for want, marks := range map[string]map[string]string{
		"cordoned: no new deliveries":                     {fleet.AnnotationCordoned: "true"},
		"cordoned: no new deliveries; draining: 2 of 5 p": drainedAt(time.Now()).Annotations,
		"paused: nothing changes":                         {fleet.AnnotationPaused: "true"},
		"tainted: old:NoSchedule":                         {fleet.AnnotationTaints: "old:NoSchedule"},
		"tainted: muster/lost:NoSchedule":                 {fleet.AnnotationLost: quarantined.Format(time.RFC3339)},
		"quarantined for 20m by ada (traffic): only heartb": {
			fleet.AnnotationQuarantined: "true", fleet.AnnotationQuarantinedBy: "ada", fleet.AnnotationQuarantineReason: "traffic",
		},
	} {
		cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "web", Annotations: maps.Clone(marks)}}
		member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", Annotations: maps.Clone(marks)}}
		if strings.HasPrefix(want, "quarantined") {
			cluster.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionQuarantined, Status: corev1.ConditionTrue,
				Reason: reasons.Quarantined, LastTransitionTime: quarantined.Format(time.RFC3339)}}
			member.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionQuarantined, Status: metav1.ConditionTrue,
				Reason: reasons.Quarantined, LastTransitionTime: metav1.NewTime(quarantined)}}
		}
		cluster.Annotations[fleet.AnnotationDisplayName], member.Annotations[fleet.AnnotationDisplayName] = "Shop", "Shop"
		shows(t, want, map[string]client.Object{clusters: cluster, memberClusters: member})
	}
	shows(t, "paused: nothing changes", map[string]client.Object{
		clusters: &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "web",
			Annotations: map[string]string{fleet.AnnotationDisplayName: "Shop"}}, Spec: fleet.ClusterSpec{Paused: true}},
	})
}

// shows checks that the table, the wall and a search by the name for people show a text for each
// member.
func shows(t *testing.T, want string, members map[string]client.Object) {
	t.Helper()
	s, all := remembered()
	s.authenticator, s.ctx = newKeyAuthenticator(all), t.Context()
	for resource, member := range members {
		if err := s.cache.store(resource).Add(member); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"/", "/?view=wall", "/?name=shop"} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		request.AddCookie(&http.Cookie{Name: ownersCookie(request), Value: s.authenticator.(*keyAuthenticator).key})
		recorder := httptest.NewRecorder()
		s.Handler().ServeHTTP(recorder, request)
		text := recorder.Body.String()
		if path != "/?view=wall" {
			_, text, _ = strings.Cut(text, "<tbody>")
		}
		if n := strings.Count(text, "title=\""+want) + strings.Count(text, ": "+want); n != len(members) {
			t.Errorf("%s: %d of %d members have %q", path, n, len(members), want)
		}
	}
}

// TestAQuarantineGetsOlderOnThePage reads the member long before the page.
func TestAQuarantineGetsOlderOnThePage(t *testing.T) {
	at := time.Now()
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "web", Labels: map[string]string{"a": "b"}}}
	cluster.Status.Conditions = []fleet.Condition{{
		Type: fleet.ConditionQuarantined, Status: corev1.ConditionTrue, Reason: reasons.Quarantined,
		LastTransitionTime: at.UTC().Format(time.RFC3339),
	}}
	e := entryOf(clusters, slim(cluster))
	cluster.Status.Conditions[0].LastTransitionTime = at.Add(-time.Hour).UTC().Format(time.RFC3339) // as an hour later
	if why := e.Why(); !strings.HasPrefix(why, "quarantined for 60m") {
		t.Errorf("it is %q", why)
	}
}
