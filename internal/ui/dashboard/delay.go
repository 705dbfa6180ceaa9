package dashboard

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// delayed is a delay of heartbeats, in seconds, in an hour since 1970.
type delayed struct {
	hour    int32
	seconds uint16
}

// unmeasured marks an hour without a measured heartbeat.
const unmeasured = math.MaxUint16

// delays holds the longest delay of a member's heartbeats in each of the last hours, the newest
// hour first. There is one for each member, so it is small.
type delays struct {
	newest  int32
	seconds []uint16
}

// delaysOf returns the delays in the status of a member.
func delaysOf(o client.Object) (d delays) {
	var recorded *clusterv1beta1.HeartbeatDelay
	switch member := o.(type) {
	case *fleet.Cluster:
		recorded = member.Status.HeartbeatDelay
	case *clusterv1beta1.MemberCluster:
		recorded = member.Status.HeartbeatDelay
	}
	if recorded == nil {
		return delays{}
	}
	d = delays{newest: int32(hourOf(recorded.Hour.Time)), seconds: make([]uint16, len(recorded.Seconds))}
	for ago, seconds := range recorded.Seconds {
		if d.seconds[ago] = unmeasured; seconds >= 0 {
			d.seconds[ago] = uint16(min(seconds, unmeasured-1))
		}
	}
	return d
}

// all returns the measured delays.
func (d delays) all() iter.Seq[delayed] {
	return func(yield func(delayed) bool) {
		for ago, seconds := range d.seconds {
			if seconds != unmeasured && !yield(delayed{d.newest - int32(ago), seconds}) {
				return
			}
		}
	}
}

// delayTrends counts the members of each namespace of a resource by their delays. It follows the
// entries of the inventory, so a page need not read all members.
type delayTrends map[trendOf]*delayCounts

// delayCounts has the number of members for each delay in each hour.
type delayCounts struct {
	members map[delayed]int32
	// oldest is the oldest hour since the last removal of hours.
	oldest int64
}

// add adds the delays of an entry, or takes them away with the sign -1. It drops hours no longer in
// the plot.
func (t delayTrends) add(e *entry, sign int32, now time.Time) {
	if e == nil || len(e.delays.seconds) == 0 {
		return
	}
	visible := trendOf{e.resource, e.namespace}
	counts := t[visible]
	if counts == nil {
		counts = &delayCounts{members: map[delayed]int32{}}
		t[visible] = counts
	}
	if oldest := hourOf(now) - plottedHours + 1; counts.oldest != oldest {
		counts.oldest = oldest
		maps.DeleteFunc(counts.members, func(d delayed, _ int32) bool { return int64(d.hour) < oldest })
	}
	for d := range e.delays.all() {
		switch members := counts.members[d] + sign; {
		case int64(d.hour) < counts.oldest:
		case members == 0:
			delete(counts.members, d)
		default:
			counts.members[d] = members
		}
	}
	if len(counts.members) == 0 {
		delete(t, visible)
	}
}

// addDelays adds the number of members for each delay in the namespaces of a resource.
func (r *fleetCache) addDelays(sums map[delayed]int32, resource string, namespaces []*entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range namespaces {
		if of := r.delays[trendOf{resource, e.namespace}]; of != nil {
			for d, members := range of.members {
				sums[d] += members
			}
		}
	}
}

// delayPlot is the picture of the delays in the last hours, of one member or of many.
type delayPlot struct {
	// Bars are the rectangles in a picture of 240 by 100 units. An hour without a measured heartbeat
	// has none.
	Bars []plotBar
	// Series has the maximum of each figure. Hours has the hours since the first measured one, the
	// newest first.
	Series []delaySeries
	Hours  []delayHour
	// Text is the picture in a sentence.
	Text string
}

// delaySeries is a figure of each hour, with its maximum in seconds. Without a class it is not in
// the picture.
type delaySeries struct {
	Class, Label string
	Most         int
}

// longest is the label of the largest figure.
const longest = "longest"

// Text returns the figure with its maximum.
func (s delaySeries) Text() string {
	if s.Label == longest {
		return fmt.Sprintf("%s %d s", s.Label, s.Most)
	}
	return fmt.Sprintf("%s at most %d s", s.Label, s.Most)
}

// delayHour is an hour with its figures, in seconds; without any, no heartbeat was measured.
type delayHour struct {
	At      time.Time
	Figures []int
}

// nearlyAll is the share of members, in percent, with at most the upper delay in the picture. A
// large fleet always has some slow members, which would hide all others.
const nearlyAll = 99

// delaysOfFleet returns the plot of the delays of many members; nil without any.
func delaysOfFleet(members map[delayed]int32, now time.Time) *delayPlot {
	figures := map[int64][]int{}
	byHour := map[int64][]delayed{}
	for d := range members {
		byHour[int64(d.hour)] = append(byHour[int64(d.hour)], d)
	}
	for hour, sorted := range byHour {
		slices.SortFunc(sorted, func(a, b delayed) int { return int(a.seconds) - int(b.seconds) })
		figures[hour] = []int{atMostDelayed(sorted, members, 50), atMostDelayed(sorted, members, nearlyAll), atMostDelayed(sorted, members, 100)}
	}
	return drawDelays(figures, now, delaySeries{Class: "p-median", Label: "median"},
		delaySeries{Class: "p-most", Label: fmt.Sprintf("%d of 100 members", nearlyAll)}, delaySeries{Label: longest})
}

// atMostDelayed returns the delay that a share of the members, in percent, does not exceed. The
// delays are of one hour and in their order.
func atMostDelayed(sorted []delayed, members map[delayed]int32, percent int) (seconds int) {
	total, seen := 0, 0
	for _, d := range sorted {
		total += int(members[d])
	}
	for _, d := range sorted {
		if seen*100 < total*percent {
			seconds = int(d.seconds)
		}
		seen += int(members[d])
	}
	return seconds
}

// delaysOfMember returns the plot of the delays of one member; nil without any.
func delaysOfMember(record client.Object, now time.Time) *delayPlot {
	figures := map[int64][]int{}
	for d := range delaysOf(record).all() {
		figures[int64(d.hour)] = []int{int(d.seconds)}
	}
	return drawDelays(figures, now, delaySeries{Class: "p-median", Label: longest})
}

// leastScale is the least height of the picture in seconds: the shortest heartbeat period.
const leastScale = 10

// drawDelays returns the plot of some figures by hour, in the order of their size.
func drawDelays(figures map[int64][]int, now time.Time, series ...delaySeries) *delayPlot {
	p, newest := &delayPlot{Series: series}, hourOf(now)
	scale, missing := leastScale, 0
	for hour := newest - plottedHours + 1; hour <= newest; hour++ {
		measured := figures[hour]
		if measured == nil && len(p.Hours) == 0 {
			continue
		}
		p.Hours = append(p.Hours, delayHour{time.Unix(hour*int64(time.Hour/time.Second), 0).UTC(), measured})
		if measured == nil && hour < newest {
			missing++
		}
		for i, seconds := range measured {
			if series[i].Most = max(series[i].Most, seconds); series[i].Class != "" {
				scale = max(scale, seconds)
			}
		}
	}
	if len(p.Hours) == 0 {
		return nil
	}
	slices.Reverse(p.Hours)
	p.bars(newest, scale)
	texts := make([]string, len(series))
	for i, s := range series {
		texts[i] = s.Text()
	}
	p.Text = "heartbeat delay in the last 24 hours: " + strings.Join(texts, ", ")
	if missing > 0 {
		p.Text += fmt.Sprintf("; hours without a measured heartbeat: %d", missing)
	}
	return p
}

// bars adds the rectangles: for each measured hour a part of the axis, and the figures above each
// other.
func (p *delayPlot) bars(newest int64, scale int) {
	const axis = 1.0
	unit := (plotHeight - axis) / float64(scale)
	for _, hour := range p.Hours {
		if hour.Figures == nil {
			continue
		}
		x := float64(plottedHours-1-(newest-hourOf(hour.At))) * hourWidth
		p.Bars = append(p.Bars, plotBar{Class: "axis", X: x, Y: plotHeight - axis, Width: hourWidth, Height: axis})
		below := 0
		for i, seconds := range hour.Figures {
			if p.Series[i].Class == "" || seconds == below {
				continue
			}
			p.Bars = append(p.Bars, plotBar{
				Class: p.Series[i].Class, X: x + (hourWidth-barWidth)/2, Y: plotHeight - axis - float64(seconds)*unit,
				Width: barWidth, Height: float64(seconds-below) * unit,
			})
			below = seconds
		}
	}
}
