package dashboard

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
)

// TestADrainOfADeadProcessIsShownAsStopped ages the last sign of life of a drain after the cache
// has read the member.
func TestADrainOfADeadProcessIsShownAsStopped(t *testing.T) {
	drainedAt := func(seen time.Time) *clusterv1beta1.MemberCluster {
		progress := membership.DrainProgress{Moved: 2, Total: 5, Seen: metav1.NewTime(seen)}
		return &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", Annotations: map[string]string{
			fleet.AnnotationCordoned: "true", fleet.AnnotationDrainProgress: progress.Value(), "other": "x"}}}
	}
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
