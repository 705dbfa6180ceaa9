package schedule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the hub's image has no time zones

	"github.com/robfig/cron/v3"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/selection"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// shortest is the shortest window. A cron expression has whole seconds.
	shortest = time.Second
	// maxJoined limits the windows joined into one. A longer series is joined again at its end.
	maxJoined = 1000
	// maxQuoted limits the quoted input in an error.
	maxQuoted = 200
)

// windows are the windows of a Schedule, and its Clusters.
type windows struct {
	starts   cron.Schedule
	duration time.Duration
	targets  []selection.Criteria
	// unknown is true if a selector is invalid. Any Cluster may then be selected.
	unknown bool
}

// parse returns the windows of a Schedule. An error names the fields. The targets are valid even
// then.
func parse(spec fleet.ScheduleSpec) (windows, error) {
	var w windows
	var problems []error
	problem := func(field, value string, err error) {
		problems = append(problems, fmt.Errorf("spec.%s %q: %s", field, kube.Clip(value, maxQuoted), kube.Clip(err.Error(), maxQuoted)))
	}
	for i, t := range spec.Targets.Clusters {
		criteria, err := selection.New(t.ClusterName, t.ClusterSelector, t.ClusterGroup, t.ClusterGroupSelector)
		if err != nil {
			problems = append(problems, fmt.Errorf("spec.targets.clusters[%d].%s", i, kube.Clip(err.Error(), maxQuoted)))
			w.unknown = true
			continue
		}
		w.targets = append(w.targets, criteria)
	}
	location, err := time.LoadLocation(spec.Location)
	if err != nil || spec.Location == "Local" {
		problem("location", spec.Location, errors.New("it is no IANA time zone such as Europe/Berlin"))
		location = time.UTC
	}
	if w.duration, err = time.ParseDuration(spec.Duration); err != nil {
		problem("duration", spec.Duration, errors.New("it is no duration such as 2h30m"))
	} else if w.duration < shortest {
		problem("duration", spec.Duration, fmt.Errorf("a window lasts at least %s", shortest))
	}
	if w.starts, err = parseCron(spec.Schedule, location); err != nil {
		problem("schedule", spec.Schedule, err)
	}
	return w, errors.Join(problems...)
}

var parser = cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// parseCron parses the six fields of a cron expression. The library counts days of the week from
// 0, Rancher Fleet from 1.
func parseCron(text string, location *time.Location) (cron.Schedule, error) {
	fields := strings.Fields(text)
	if len(fields) != 6 || strings.Contains(fields[0], "=") {
		return nil, errors.New("it has not the six fields second, minute, hour, day of month, month, day of week")
	}
	days, err := fromSunday(fields[5])
	if err != nil {
		return nil, err
	}
	fields[5] = days
	parsed, err := parser.Parse(strings.Join(fields, " "))
	if err != nil {
		return nil, err
	}
	parsed.(*cron.SpecSchedule).Location = location
	return parsed, nil
}

// fromSunday lowers the numbers of days of the week by one, steps excepted.
func fromSunday(field string) (string, error) {
	parts := strings.Split(field, ",")
	for i, part := range parts {
		days, step, stepped := strings.Cut(part, "/")
		ends := strings.Split(days, "-")
		for j, end := range ends {
			day, err := strconv.Atoi(end)
			if err != nil {
				continue // a name, or a mistake for the library to report
			}
			if day < 1 || day > 7 {
				return "", fmt.Errorf("the day of the week %d is not from 1 (Sunday) to 7 (Saturday)", day)
			}
			ends[j] = strconv.Itoa(day - 1)
		}
		if parts[i] = strings.Join(ends, "-"); stepped {
			parts[i] += "/" + step
		}
	}
	return strings.Join(parts, ","), nil
}

// usesGroups reports whether ClusterGroups matter to the Schedule.
func (w windows) usesGroups() bool {
	for _, t := range w.targets {
		if t.UsesGroups() {
			return true
		}
	}
	return false
}

// selects reports whether the Schedule selects, or may select, a Cluster in these groups.
func (w windows) selects(cluster *fleet.Cluster, groups []*fleet.ClusterGroup) bool {
	if w.unknown {
		return true
	}
	for _, t := range w.targets {
		if t.Matches(cluster, groups) {
			return true
		}
	}
	return false
}

// next returns the start of the first window after the open one; zero if none follows.
func (w windows) next(d decision) time.Time {
	if d.open {
		return w.starts.Next(d.change)
	}
	return d.change
}

// at reports whether a window is open, and returns the time of the next change. The change is the
// end of the open window, or the start of the next one. The time is zero if no window follows.
func (w windows) at(now time.Time) (open bool, change time.Time) {
	start := w.starts.Next(now.Add(-w.duration))
	if start.IsZero() || start.After(now) {
		return false, start
	}
	end := start.Add(w.duration)
	for range maxJoined { // overlapping or adjacent windows are one
		next := w.starts.Next(end.Add(-w.duration))
		if next.IsZero() || next.After(end) {
			break
		}
		end = next.Add(w.duration)
	}
	return true, end
}
