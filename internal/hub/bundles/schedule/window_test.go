package schedule

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// at returns a time of Friday, 2 January 2026, in UTC.
func at(t *testing.T, clock string) time.Time {
	t.Helper()
	got, err := time.Parse(time.RFC3339, clock)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func spec(schedule, duration, location string, targets ...fleet.ScheduleTarget) fleet.ScheduleSpec {
	return fleet.ScheduleSpec{
		Schedule: schedule, Duration: duration, Location: location, Targets: fleet.ScheduleTargets{Clusters: targets},
	}
}

func TestWindowsOpenAndCloseAtTheSecond(t *testing.T) {
	for _, c := range []struct {
		name      string
		of        fleet.ScheduleSpec
		now, next string
		open      bool
	}{
		{"a second before it opens", spec("0 0 22 * * ?", "2h", ""), "2026-01-02T21:59:59Z", "2026-01-02T22:00:00Z", false},
		{"it opens", spec("0 0 22 * * ?", "2h", ""), "2026-01-02T22:00:00Z", "2026-01-03T00:00:00Z", true},
		{"its last second", spec("0 0 22 * * ?", "2h", ""), "2026-01-02T23:59:59Z", "2026-01-03T00:00:00Z", true},
		{"it closes", spec("0 0 22 * * ?", "2h", ""), "2026-01-03T00:00:00Z", "2026-01-03T22:00:00Z", false},
		{"in another zone", spec("0 0 22 * * *", "1h", "America/New_York"), "2026-01-03T03:30:00Z", "2026-01-03T04:00:00Z", true},
		{"1 is a Sunday", spec("0 0 0 ? * 1", "24h", ""), "2026-01-02T12:00:00Z", "2026-01-04T00:00:00Z", false},
		{"6-7 are Friday and Saturday", spec("0 0 0 ? * 6-7", "24h", ""), "2026-01-02T12:00:00Z", "2026-01-04T00:00:00Z", true},
		{"a name of a day", spec("0 0 0 ? * SAT", "24h", ""), "2026-01-02T12:00:00Z", "2026-01-03T00:00:00Z", false},
		{"windows that overlap are one", spec("0 0 20,21,22 * * ?", "90m", ""), "2026-01-02T21:10:00Z", "2026-01-02T23:30:00Z", true},
		{"windows that touch are one", spec("0 0 20,21 * * ?", "1h", ""), "2026-01-02T20:10:00Z", "2026-01-02T22:00:00Z", true},
		{"longer than the time between the starts", spec("0 0 0 * * ?", "48h", ""), "2026-01-02T12:00:00Z", "2028-09-29T00:00:00Z", true},
		{"only on a day that no month has", spec("0 0 0 31 2 ?", "1h", ""), "2026-01-02T12:00:00Z", "", false},
		{"an hour that a summer leaves out", spec("0 30 2 * * ?", "1h", "Europe/Berlin"), "2026-03-29T00:00:00Z", "2026-03-30T00:30:00Z", false},
		{"an hour that comes twice in autumn", spec("0 30 2 * * ?", "1h", "Europe/Berlin"), "2026-10-25T00:45:00Z", "2026-10-25T02:30:00Z", true},
	} {
		w, err := parse(c.of)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		open, change := w.at(at(t, c.now))
		got := ""
		if !change.IsZero() {
			got = change.UTC().Format(time.RFC3339)
		}
		if open != c.open || got != c.next {
			t.Errorf("%s: open %t, next change %s", c.name, open, got)
		}
	}
}

func TestAnInvalidScheduleNamesItsFields(t *testing.T) {
	bad := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	for _, c := range []struct {
		of   fleet.ScheduleSpec
		want []string
	}{
		{spec("", "", ""), []string{`spec.schedule "": `, `spec.duration "": `}},
		{spec("0 22 * * *", "1h", ""), []string{`spec.schedule "0 22 * * *": it has not the six fields`}},
		{spec("0 0 22 * * ? 2026", "1h", ""), []string{"spec.schedule", "six fields"}},
		{spec("@every 1h", "1h", ""), []string{"spec.schedule", "six fields"}},
		{spec("CRON_TZ=UTC 0 0 22 * *", "1h", ""), []string{"spec.schedule", "six fields"}},
		{spec("0 0 22 ? * 0", "1h", ""), []string{"spec.schedule", "the day of the week 0 is not from 1 (Sunday) to 7 (Saturday)"}},
		{spec("0 0 22 ? * 6#3", "1h", ""), []string{"spec.schedule"}},
		{spec("0 0 24 * * ?", "1h", ""), []string{"spec.schedule"}},
		{spec("0 0 22 * * ?", "1d", ""), []string{`spec.duration "1d": it is no duration`}},
		{spec("0 0 22 * * ?", "-1h", ""), []string{"spec.duration", "at least 1s"}},
		{spec("0 0 22 * * ?", "1ms", ""), []string{"spec.duration", "at least 1s"}},
		{spec("0 0 22 * * ?", "1h", "Berlin"), []string{`spec.location "Berlin": it is no IANA time zone`}},
		{spec("0 0 22 * * ?", "1h", "Local"), []string{"spec.location"}},
		{spec("0 0 22 * * ?", "1h", "", fleet.ScheduleTarget{}, fleet.ScheduleTarget{ClusterSelector: bad}),
			[]string{"spec.targets.clusters[1].clusterSelector: ", "Near"}},
	} {
		_, err := parse(c.of)
		for _, part := range c.want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%+v: %v does not say %q", c.of, err, part)
			}
		}
	}
}

func TestAScheduleSelectsAsABundleDoes(t *testing.T) {
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web", Labels: map[string]string{"env": "prod"}}}
	prod := &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	groups := []*fleet.ClusterGroup{{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}}
	for _, c := range []struct {
		name    string
		targets []fleet.ScheduleTarget
		want    bool
	}{
		{"no targets", nil, false},
		{"an empty target", []fleet.ScheduleTarget{{}}, false},
		{"its name", []fleet.ScheduleTarget{{ClusterName: "web"}}, true},
		{"its labels", []fleet.ScheduleTarget{{ClusterName: "other"}, {ClusterSelector: prod}}, true},
		{"its group", []fleet.ScheduleTarget{{ClusterGroup: "prod"}}, true},
		{"its labels and another group", []fleet.ScheduleTarget{{ClusterSelector: prod, ClusterGroup: "test"}}, false},
		{"a selector that nobody understands may mean it", []fleet.ScheduleTarget{
			{ClusterSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}},
		}, true},
	} {
		w, _ := parse(spec("0 0 22 * * ?", "1h", "", c.targets...))
		if got := w.selects(cluster, groups); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestAClusterIsOpenWhileOneOfItsWindowsIs(t *testing.T) {
	now := at(t, "2026-01-02T12:00:00Z")
	valid := func(schedule string) selecting {
		w, err := parse(spec(schedule, "1h", ""))
		if err != nil {
			t.Fatal(err)
		}
		return selecting{windows: w}
	}
	morning, noon, lunch, evening := valid("0 0 8 * * ?"), valid("0 0 12 * * ?"), valid("0 30 11 * * ?"), valid("0 0 20 * * ?")
	never, broken := valid("0 0 0 31 2 ?"), selecting{invalid: true}
	for _, c := range []struct {
		name string
		of   []selecting
		want decision
	}{
		{"no Schedule", nil, decision{}},
		{"one is open", []selecting{noon}, decision{true, true, at(t, "2026-01-02T13:00:00Z")}},
		{"the last of two open ones ends it", []selecting{lunch, noon}, decision{true, true, at(t, "2026-01-02T13:00:00Z")}},
		{"in any order", []selecting{evening, noon, lunch, morning, broken}, decision{true, true, at(t, "2026-01-02T13:00:00Z")}},
		{"the first to start opens it", []selecting{morning, evening}, decision{true, false, at(t, "2026-01-02T20:00:00Z")}},
		{"one never opens", []selecting{never, evening}, decision{true, false, at(t, "2026-01-02T20:00:00Z")}},
		{"an invalid one is closed", []selecting{broken}, decision{scheduled: true}},
		{"none ever opens", []selecting{never, broken}, decision{scheduled: true}},
	} {
		if diff := cmp.Diff(c.want, decide(c.of, now), cmp.AllowUnexported(decision{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
