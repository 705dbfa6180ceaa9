package dashboard

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

func TestTheStatesOfAMemberOverTime(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	ago := func(minutes int) metav1.Time { return metav1.NewTime(now.Add(-time.Duration(minutes) * time.Minute)) }
	entry := func(reason clusterv1beta1.HistoryReason, minutes int) clusterv1beta1.HistoryEntry {
		return clusterv1beta1.HistoryEntry{Time: ago(minutes), Reason: reason}
	}
	last := ago(50)
	flaps := entry(clusterv1beta1.HistoryLost, 60)
	flaps.Count, flaps.LastTime = 5, &last
	for name, row := range map[string]struct {
		history []clusterv1beta1.HistoryEntry
		want    string
	}{
		"a new member":  {nil, ""},
		"only a cordon": {[]clusterv1beta1.HistoryEntry{entry(clusterv1beta1.HistoryCordoned, 10)}, ""},
		"it has joined": {[]clusterv1beta1.HistoryEntry{entry(clusterv1beta1.HistoryJoined, 90)},
			"waits 0+100 ok 100+900 | Online 90m, Awaited 10m"},
		"it was lost, and a cordon changes nothing": {[]clusterv1beta1.HistoryEntry{
			entry(clusterv1beta1.HistoryJoined, 90), entry(clusterv1beta1.HistoryLost, 50), entry(clusterv1beta1.HistoryCordoned, 40),
			entry(clusterv1beta1.HistoryBack, 25),
		}, "waits 0+100 ok 100+400 critical 500+250 ok 750+250 | Online 65m, Lost 25m, Awaited 10m"},
		"the oldest entries are dropped": {[]clusterv1beta1.HistoryEntry{
			entry(clusterv1beta1.HistoryLost, 50), entry(clusterv1beta1.HistoryRevoked, 25),
		}, "critical 0+500 critical 500+500 | Lost 25m, Revoked 25m"},
		"it flaps": {[]clusterv1beta1.HistoryEntry{
			entry(clusterv1beta1.HistoryJoined, 90), flaps, entry(clusterv1beta1.HistoryBack, 40),
		}, "waits 0+100 ok 100+300 warn 400+100 critical 500+100 ok 600+400 | Online 70m, Awaited 10m, Lost 10m, Unsteady 10m"},
		"a quarantine": {[]clusterv1beta1.HistoryEntry{
			entry(clusterv1beta1.HistoryQuarantined, 20), entry(clusterv1beta1.HistoryQuarantineEnded, 10),
		}, "warn 0+500 ok 500+500 | Online 10m, Quarantined 10m"},
		"a moment is wide enough to see": {[]clusterv1beta1.HistoryEntry{
			entry(clusterv1beta1.HistoryBack, 1000), entry(clusterv1beta1.HistoryLost, 0),
		}, "ok 0+1000 critical 997+3 | Online 16h, Lost 0s"},
	} {
		member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: ago(100)}}
		member.Status.History = row.history
		got := ""
		if b := bandsOf(member, now); b != nil {
			for _, s := range b.Bar {
				got += fmt.Sprintf("%s %.0f+%.0f ", s.Tone, s.X, s.Width)
			}
			got += "| " + b.Text
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
