package registration

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestOfTwoRequestsOneIsTheNewerWhateverIsWrittenToThem(t *testing.T) {
	second := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	request := func(uid string, created time.Time, asked time.Duration) *fleet.ClusterRegistration {
		r := &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), CreationTimestamp: metav1.NewTime(created)}}
		if asked >= 0 {
			r.Spec.RequestedAt = new(metav1.NewMicroTime(second.Add(asked)))
		}
		return r
	}
	const unsaid = time.Duration(-1)
	for _, c := range []struct {
		name         string
		older, newer *fleet.ClusterRegistration
	}{
		{"a second later", request("b", second, 900*time.Millisecond), request("a", second.Add(time.Second), 0)},
		{"in the same second the agent asked later", request("b", second, time.Millisecond), request("a", second, 2*time.Millisecond)},
		{"nobody says when", request("a", second, unsaid), request("b", second, unsaid)},
	} {
		for _, written := range []func(){
			func() {},
			func() { c.older.ResourceVersion, c.newer.ResourceVersion = "9", "8" },
			func() { c.older.Status.Granted = true },
			func() { c.older.Status.Granted, c.newer.Status.Granted = false, true },
		} {
			if written(); !newer(c.newer, c.older) || newer(c.older, c.newer) {
				t.Errorf("%s: %+v is not newer than %+v", c.name, c.newer, c.older)
			}
		}
	}
}
