package schedule

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// The windows of a Cluster:
//
//	 Always ◄── no Schedule selects it ──► Closed ──── one window starts ────► Open
//	(no Window)                              ▲                                  │
//	                                         └────── the last window ends ──────┘

// selecting is a Schedule of a Cluster. An invalid one opens no window.
type selecting struct {
	windows
	invalid bool
}

// decision reports whether the Schedules allow changes on a Cluster now.
type decision struct {
	// scheduled reports whether a Schedule selects the Cluster, open whether a window is open.
	scheduled, open bool
	// change is the time when open changes next; zero if it does not.
	change time.Time
}

// decide returns the decision of the Schedules of a Cluster. One open window is enough.
func decide(schedules []selecting, now time.Time) decision {
	d := decision{scheduled: len(schedules) > 0}
	for _, s := range schedules {
		if s.invalid {
			continue
		}
		switch open, change := s.at(now); {
		case open && !d.open, open && change.After(d.change):
			d.open, d.change = true, change
		case !open && !d.open:
			d.change = kube.Earlier(d.change, change)
		}
	}
	return d
}

// describe writes the decision into the status of a Cluster.
func describe(before fleet.ClusterStatus, d decision, now time.Time) (scheduled, active bool, window *fleet.ClusterWindow) {
	if !d.scheduled {
		return false, false, nil
	}
	window = &fleet.ClusterWindow{Since: metav1.NewTime(now.Truncate(time.Second))}
	if was := before.Window; was != nil && before.Scheduled && before.ActiveSchedule == d.open {
		window.Since = was.Since
	}
	if !d.open && !d.change.IsZero() {
		opens := metav1.NewTime(d.change)
		window.Opens = &opens
	}
	return true, d.open, window
}
