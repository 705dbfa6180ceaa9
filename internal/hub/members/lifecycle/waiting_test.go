package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/muster-fleet/muster/internal/hub/members/liveness"
)

func TestTwoAgentsAreShownWhileOneOfThemWaits(t *testing.T) {
	began := time.Unix(1000, 0)
	const budget = 30 * time.Second
	waits := func(since, last time.Duration) *liveness.Waiting {
		return &liveness.Waiting{Waiter: "bbbbbbbb_pod", Holder: "aaaaaaaa_pod", Since: began.Add(since), Last: began.Add(last)}
	}
	for _, row := range []struct {
		name     string
		waiting  *liveness.Waiting
		recorded string
		now      time.Duration
		// says is a part of the message, "" for none; until is when it is decided again.
		says  string
		until time.Duration
	}{
		{"nobody waits", nil, "", time.Minute, "", 0},
		{"a pod that is being replaced waits for two periods", waits(60*time.Second, 80*time.Second), "", 80 * time.Second, "", 0},
		{
			"another agent has waited for three", waits(60*time.Second, 90*time.Second), "", 90 * time.Second,
			`"aaaaaaaa_pod" sends heartbeats, and "bbbbbbbb_pod" waits`, 120 * time.Second,
		},
		{"it goes on", waits(60*time.Second, 5*time.Minute), "two agents", 5 * time.Minute, "do this", 5*time.Minute + budget},
		{"it has stopped", nil, "two agents", 6 * time.Minute, "", 0},
		{"a hub that was restarted has not watched for long enough to know", nil, "two agents", 29 * time.Second, "two agents", budget},
		{
			"a hub that was restarted has seen it again", waits(10*time.Second, 10*time.Second), "two agents", 10 * time.Second,
			`"bbbbbbbb_pod" waits`, 40 * time.Second,
		},
		{"a hub that was restarted has watched for long enough", nil, "two agents", budget, "", 0},
	} {
		o := Observed{Liveness: liveness.Observation{Waiting: row.waiting, Budget: budget}}
		got, want := o.Rival(row.recorded, "do this", began, began.Add(row.now)), time.Time{}
		if row.until != 0 {
			want = began.Add(row.until)
		}
		if (got.Message != "") != (row.says != "") || !strings.Contains(got.Message, row.says) || !got.Until.Equal(want) {
			t.Errorf("%s: got %q until %s, want %q until %s", row.name, got.Message, got.Until, row.says, want)
		}
	}
}
