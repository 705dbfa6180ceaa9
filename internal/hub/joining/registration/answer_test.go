package registration

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestAnAnswerIsKeptForAnHourAfterItsGrantByTheHubsClock(t *testing.T) {
	made := time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)
	at := func(minutes time.Duration) *metav1.Time { return &metav1.Time{Time: made.Add(minutes * time.Minute)} }
	for what, row := range map[string]struct {
		granted   *metav1.Time
		now, want time.Duration
	}{
		"granted at once":                               {at(0), 10, 50},
		"an hour over":                                  {at(0), 60, 0},
		"approved after three hours":                    {at(180), 190, 50},
		"the hub's clock is two hours ahead":            {at(120), 130, 50},
		"the hub's clock is two hours behind":           {at(-120), -110, 50},
		"the hub's clock was ahead, and is right now":   {at(120), 0, 60},
		"granted by a hub that did not write down when": {nil, 10, 50},
	} {
		r := &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(made)}}
		r.Status.GrantedAt = row.granted
		if left := answerLeft(r, at(row.now).Time); left != row.want*time.Minute {
			t.Errorf("%s: %s left, want %d minutes", what, left, row.want)
		}
	}
}
