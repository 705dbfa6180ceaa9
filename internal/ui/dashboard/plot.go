package dashboard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// plottedHours is the number of hours in the plot.
const plottedHours = 24

// plottedReasons lists the changes in the plot, from the axis upwards; the last one is below the
// axis.
var plottedReasons = [...]clusterv1beta1.HistoryReason{
	clusterv1beta1.HistoryJoined, clusterv1beta1.HistoryBack, clusterv1beta1.HistoryLost,
}

// perReason holds a number for each of the plotted reasons.
type perReason [len(plottedReasons)]int

// happened is a number of changes of a member in an hour since 1970.
type happened struct {
	hour   int64
	reason int
	count  int
}

func hourOf(at time.Time) int64 { return at.Unix() / int64(time.Hour/time.Second) }

// happenedTo returns the plotted changes of a member. Several changes may share an entry of the
// history: the first counts in its hour, and the others in the hour of the last one.
func happenedTo(o client.Object, now time.Time) (changes []happened) {
	oldest := hourOf(now) - plottedHours
	add := func(at time.Time, reason, count int) {
		if hour := hourOf(at); hour > oldest && count > 0 {
			changes = append(changes, happened{hour, reason, count})
		}
	}
	entries := view.HistoryOf(o)
	for i := range entries {
		if reason := slices.Index(plottedReasons[:], entries[i].Reason); reason >= 0 {
			add(entries[i].Time.Time, reason, 1)
			add(entries[i].Last(), reason, entries[i].Changes()-1)
		}
	}
	return changes
}

// trends counts changes by hour, for each namespace of a resource. It follows the entries of the
// inventory, so a page need not read all members.
type trends map[trendOf]map[int64]perReason

// trendOf identifies the members visible together.
type trendOf struct{ resource, namespace string }

// add adds the changes of an entry, or takes them away with the sign -1. It drops hours no longer
// in the plot.
func (t trends) add(e *entry, sign int, now time.Time) {
	if e == nil || len(e.changes) == 0 {
		return
	}
	visible, oldest := trendOf{e.resource, e.namespace}, hourOf(now)-plottedHours
	if t[visible] == nil {
		t[visible] = map[int64]perReason{}
	}
	for _, change := range e.changes {
		if change.hour <= oldest {
			continue
		}
		sums := t[visible][change.hour]
		sums[change.reason] += sign * change.count
		t[visible][change.hour] = sums
	}
	maps.DeleteFunc(t[visible], func(hour int64, sums perReason) bool { return hour <= oldest || sums == perReason{} })
	if len(t[visible]) == 0 {
		delete(t, visible)
	}
}

// count adds an entry to the plots, or takes it away with the sign -1. The caller has the lock.
func (r *fleetCache) count(e *entry, sign int) {
	r.trends.add(e, sign, time.Now())
	r.delays.add(e, int32(sign), time.Now())
}

// trend returns the changes of the namespaces of a resource with changes or delays, each as an
// entry of its own without a name.
func (r *fleetCache) trend(resource string) (namespaces []*entry, hours map[string]map[int64]perReason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hours = map[string]map[int64]perReason{}
	for of, counts := range r.trends {
		if of.resource == resource {
			namespaces, hours[of.namespace] = append(namespaces, &entry{namespace: of.namespace}), maps.Clone(counts)
		}
	}
	for of := range r.delays {
		if of.resource == resource && hours[of.namespace] == nil {
			namespaces = append(namespaces, &entry{namespace: of.namespace})
		}
	}
	return namespaces, hours
}

// plot is the picture of the changes in the last hours.
type plot struct {
	// Bars are the rectangles in a picture of 240 by 100 units, Axis is the height of the axis.
	Bars []plotBar
	Axis float64
	// Series has the total of each change; Hours has the hours with any, the newest first.
	Series []plotSeries
	Hours  []plotHour
	// Text is the picture in a sentence.
	Text string
	// Delay is the picture of the delays of heartbeats; nil without any.
	Delay *delayPlot
}

// plotBar is a rectangle of the plot.
type plotBar struct {
	Class               string
	X, Y, Width, Height float64
}

// plotSeries is a change with its number in all hours.
type plotSeries struct {
	Class, Label string
	Total        int
}

// plotHour is an hour with its numbers.
type plotHour struct {
	At     time.Time
	Counts perReason
}

// plotOf returns the plot of all members a visitor may see, or of one workspace.
func (s *Server) plotOf(ctx context.Context, v *visitor, workspace string, now time.Time) (*plot, error) {
	sums, delays := map[int64]perReason{}, map[delayed]int32{}
	for _, resource := range fleetResources[:2] {
		namespaces, hours := s.cache.trend(resource)
		seen, err := v.seen(ctx, resource, namespaces)
		if err != nil {
			return nil, err
		}
		if workspace != "" {
			seen = slices.DeleteFunc(slices.Clone(seen), func(e *entry) bool { return e.namespace != workspace })
		}
		s.cache.addDelays(delays, resource, seen)
		for _, e := range seen {
			for hour, counts := range hours[e.namespace] {
				sum := sums[hour]
				for reason, count := range counts {
					sum[reason] += count
				}
				sums[hour] = sum
			}
		}
	}
	p := draw(sums, now)
	p.Delay = delaysOfFleet(delays, now)
	return p, nil
}

// The sizes of the picture.
const (
	plotHeight = 100.0
	hourWidth  = 10.0
	barWidth   = 8.0
)

// draw returns the plot of some sums by hour.
func draw(sums map[int64]perReason, now time.Time) *plot {
	const below = len(plottedReasons) - 1
	p, newest := &plot{}, hourOf(now)
	var totals perReason
	up, down := 0, 0
	for hour := newest; hour > newest-plottedHours; hour-- {
		counts := sums[hour]
		above := 0
		for reason, count := range counts {
			totals[reason] += count
			if reason != below {
				above += count
			}
		}
		up, down = max(up, above), max(down, counts[below])
		if (counts != perReason{}) {
			p.Hours = append(p.Hours, plotHour{time.Unix(hour*int64(time.Hour/time.Second), 0).UTC(), counts})
		}
	}
	unit := plotHeight / float64(max(1, up+down))
	p.Axis = float64(up) * unit
	for _, hour := range p.Hours {
		x := float64(plottedHours-1-(newest-hourOf(hour.At)))*hourWidth + (hourWidth-barWidth)/2
		top := p.Axis
		for reason, count := range hour.Counts {
			bar := plotBar{Class: plotClass(reason), X: x, Y: p.Axis, Width: barWidth, Height: float64(count) * unit}
			if reason != below {
				top -= bar.Height
				bar.Y = top
			}
			if count > 0 {
				p.Bars = append(p.Bars, bar)
			}
		}
	}
	var texts []string
	for reason, total := range totals {
		label := strings.ToLower(string(plottedReasons[reason]))
		p.Series = append(p.Series, plotSeries{plotClass(reason), label, total})
		texts = append(texts, fmt.Sprintf("%d %s", total, label))
	}
	p.Text = strings.Join(texts, ", ") + " in the last 24 hours"
	return p
}

func plotClass(reason int) string { return "p-" + strings.ToLower(string(plottedReasons[reason])) }
