package work

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

func TestAPlacedWorkIsRemovedAtOnceOnlyIfTheHubDeletesIt(t *testing.T) {
	placed := map[string]string{placement.LabelParentCRP: "web"}
	for _, c := range []struct {
		name string
		work metav1.ObjectMeta
		want time.Duration
	}{
		{"deleted by the hub", metav1.ObjectMeta{Labels: placed, Annotations: map[string]string{placement.AnnotationRemoved: "true"}}, 0},
		{"evicted", metav1.ObjectMeta{Labels: placed, Annotations: map[string]string{placement.AnnotationEvicted: "1"}}, 0},
		{"deleted by somebody else: the hub may write it again", metav1.ObjectMeta{Labels: placed}, time.Minute},
		{"of no placement", metav1.ObjectMeta{}, 3 * time.Second},
	} {
		if got := pause(&placement.Work{ObjectMeta: c.work}); got != c.want {
			t.Errorf("%s: it is removed after %s, want %s", c.name, got, c.want)
		}
	}
}
