package placement

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// targets reads members from words such as a:wanted,exists,available.
func targets(text string) []target {
	var read []target
	for _, word := range strings.Fields(text) {
		name, flags, _ := strings.Cut(word, ":")
		t := target{name: name}
		for _, flag := range strings.Split(flags, ",") {
			*map[string]*bool{
				"wanted": &t.wanted, "exists": &t.exists, "current": &t.upToDate, "works": &t.works, "available": &t.available,
				"idle": &t.unreachable, "going": &t.deleting, "paused": &t.paused,
			}[flag] = true
		}
		t.works = t.works || t.available
		read = append(read, t)
	}
	return read
}

func listed(targets []target) string {
	var all []string
	for _, t := range targets {
		all = append(all, t.name)
	}
	return strings.Join(all, " ")
}

func TestPlanRollout(t *testing.T) {
	const old, done, fresh = "wanted,exists,available", "wanted,exists,current,available", "wanted"
	number := func(unavailable, surge string) *placement.RollingUpdateConfig {
		u, s := intstr.Parse(unavailable), intstr.Parse(surge)
		return &placement.RollingUpdateConfig{MaxUnavailable: &u, MaxSurge: &s}
	}
	for _, c := range []struct {
		name                   string
		config                 *placement.RollingUpdateConfig
		targets                string
		write, remove, waiting string
	}{
		{"all that are new get it at once", nil, "a:" + fresh + " b:" + fresh + " c:" + fresh, "a b c", "", ""},
		{"who is up to date is left alone", nil, "a:" + done, "", "", ""},
		{"one of four at a time by default", nil, "a:" + old + " b:" + old + " c:" + old + " d:" + old, "a", "", "b c d"},
		{"a part is rounded up", nil, "a:" + old + " b:" + old + " c:" + old + " d:" + old + " e:" + old, "a b", "", "c d e"},
		{"never none", number("0", "0"), "a:" + old + " b:" + old, "a", "", "b"},
		{"two at a time", number("2", "0"), "a:" + old + " b:" + old + " c:" + old, "a b", "", "c"},
		{"the next when the first is available", nil, "a:" + done + " b:" + old, "b", "", ""},
		{"not before", nil, "a:wanted,exists,current b:" + old, "", "", "b"},
		{"what does not work is changed at once", nil, "a:wanted,exists b:wanted,exists c:" + old, "a b", "", "c"},
		{"a lost member is in nobody's way", nil, "a:wanted,exists,current,idle b:" + old, "b", "", ""},
		{"and gets nothing new before it is back", nil, "a:wanted,exists,available,idle b:" + old, "b", "", "a"},
		{"nor do all that are lost at once", nil, "a:wanted,exists,idle b:wanted,exists,available,idle c:wanted,exists,idle", "", "", "a b c"},
		{
			"of many that this hub has seen for a moment only, none is changed", number("1", "0"),
			"a:wanted,exists,works b:wanted,exists,works c:wanted,exists,works", "", "", "a b c",
		},
		{"if they have worked for long enough, one is", number("1", "0"), "a:" + old + " b:" + old + " c:" + old, "a", "", "b c"},
		{"the one that was changed last may be changed again", number("1", "0"), "a:wanted,exists,works b:" + old + " c:" + old, "a", "", "b c"},
		{
			"nor is anything removed of them", number("1", "0"), "a:exists,works b:wanted,exists,current,works c:wanted,exists,current,works", "",
			"", "a",
		},
		{
			"a replacement comes with the surge, and the old one goes when it works", number("0", "1"),
			"a:exists,available b:" + fresh + " c:" + done, "b", "a", "",
		},
		{
			"the one that goes waits while too many are unavailable", number("1", "1"),
			"a:exists,available b:wanted,exists,current c:wanted,exists,current", "", "", "a",
		},
		{
			"without a surge the place must be free first", number("1", "0"),
			"a:exists,available b:" + fresh + " c:" + done + " d:wanted,exists,current", "", "", "a b",
		},
		{"with nobody wanted all go", nil, "a:exists,available b:exists,available", "", "a b", ""},
		{"who is not available goes at once", nil, "a:exists b:" + done, "", "a", ""},
		{"what is going is waited for", nil, "a:wanted,exists,going", "", "", "a"},
		{"a paused member keeps what it has", nil, "a:wanted,exists,available,paused b:exists,available,paused", "", "", "b a"},
		{"and others go on", nil, "a:wanted,exists,current,available,paused b:" + old, "b", "", ""},
		{"and is not deleted twice", nil, "a:exists,going", "", "", ""},
	} {
		p := planRollout(targets(c.targets), c.config)
		got := []string{listed(p.write), listed(p.remove), listed(p.waiting)}
		if diff := cmp.Diff([]string{c.write, c.remove, c.waiting}, got); diff != "" {
			t.Errorf("%s: write, remove, waiting (-want +got):\n%s", c.name, diff)
		}
	}
}
