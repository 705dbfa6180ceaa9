package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// livePage is a page of members with these names on a terminal of 120 columns and 7 lines, which
// has room for four members.
func livePage(names ...string) *page {
	members, _ := kindOf("members")
	p := newPage(members, nil, 0, style{width: 120})
	p.height = 7
	p.explain = func(o client.Object) tea.Msg { return explanation{o, "It is " + o.GetName() + ".\nIt is well.\n"} }
	var all changes
	for _, name := range names {
		member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		all = append(all, change{object: member})
	}
	p.draw(time.Now()) // before the members arrive
	p.Update(all)
	return p
}

// keys presses keys, and lets what they start end.
func (p *page) keys(pressed ...string) (left bool) {
	special := map[string]tea.KeyPressMsg{
		"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "down": {Code: tea.KeyDown}, "pgdown": {Code: tea.KeyPgDown},
		"backspace": {Code: tea.KeyBackspace}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl},
	}
	for _, name := range pressed {
		key, named := special[name]
		if !named {
			key = tea.KeyPressMsg{Code: rune(name[0]), Text: name}
		}
		_, command := p.Update(key)
		if command == nil {
			continue
		}
		message := command()
		if _, left = message.(tea.QuitMsg); left {
			return true
		}
		p.Update(message)
	}
	return false
}

// lines are the first words of the lines on the terminal, with the mark of the selected one.
func (p *page) lines() (lines []string) {
	for line := range strings.SplitSeq(p.draw(time.Now()), "\n") {
		words := strings.Fields(line)
		if len(words) > 1 && words[0] == "›" {
			words = []string{"›" + words[1]}
		}
		if len(words) > 0 {
			lines = append(lines, words[0])
		}
	}
	return lines
}

func TestWatchMovesSortsAndFilters(t *testing.T) {
	for keys, want := range map[string]string{
		"":                    "NAME ›a1 b2 c3 d4 5",
		"down j j j":          "NAME b2 c3 d4 ›e5 5",
		"pgdown":              "NAME b2 c3 d4 ›e5 5",
		"G g":                 "NAME ›a1 b2 c3 d4 5",
		"j j k":               "NAME a1 ›b2 c3 d4 5",
		"r":                   "NAME d4 c3 b2 ›a1 5", // it stays selected
		"r g":                 "NAME ›e5 d4 c3 b2 5",
		"/ 3":                 "NAME ›c3 /3▏",
		"/ 3 enter":           "NAME ›c3 1",
		"/ C 3 enter":         "NAME ›c3 1",
		"/ x backspace 2":     "NAME ›b2 /2▏",
		"/ 3 esc":             "NAME a1 b2 ›c3 d4 5",
		"/ z enter":           "NAME No 0",
		"/ z enter enter":     "NAME No 0", // there is nothing to explain
		"j enter":             "Explanation It It q",
		"j enter q":           "NAME a1 ›b2 c3 d4 5",
		"s s s s s s s s s s": "NAME ›a1 b2 c3 d4 5",
	} {
		p := livePage("a1", "b2", "c3", "d4", "e5")
		if p.keys(strings.Fields(keys)...) {
			t.Errorf("%s: it ends", keys)
		}
		if got := strings.Join(p.lines(), " "); got != want {
			t.Errorf("%q shows %q, want %q", keys, got, want)
		}
	}
	for _, end := range []string{"q", "ctrl+c"} {
		if !livePage("a").keys(end) {
			t.Errorf("%s does not end it", end)
		}
	}
}

func TestWatchKeepsTheSelectedMember(t *testing.T) {
	p := livePage("c", "d")
	p.keys("j")
	member := func(name string) client.Object {
		return &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	p.Update(changes{{object: member("a")}, {object: member("b")}, {object: member("c"), gone: true}})
	if diff := cmp.Diff([]string{"NAME", "a", "b", "›d", "3"}, p.lines()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	p.Update(changes{{object: member("d"), gone: true}, {err: errors.New("the hub\x1b[2J is away")}})
	if text := p.draw(time.Now()); !strings.Contains(text, "Not live") || strings.Contains(text, "\x1b") {
		t.Errorf("it shows %q", text)
	}
}

func TestWatchSortsByAge(t *testing.T) {
	bundles, _ := kindOf("bundles")
	p := newPage(bundles, nil, slices.Index(bundles.columns, "AGE"), style{width: 120})
	var all changes
	for name, age := range map[string]time.Duration{"young": time.Minute, "old": 2 * time.Hour, "older": 30 * time.Hour} {
		bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Now().Add(-age))}}
		all = append(all, change{object: bundle})
	}
	p.Update(all)
	if diff := cmp.Diff([]string{"NAME", "›young", "old", "older", "3"}, p.lines()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWatchDrawsOnlyWhatFits(t *testing.T) {
	var names []string
	for i := range 10_000 {
		names = append(names, fmt.Sprintf("member-%05d", i))
	}
	p := livePage(names...)
	p.keys("G")
	lines := strings.Split(p.draw(time.Now()), "\n")
	if len(lines) != p.height || !strings.Contains(lines[4], "member-09999") || !strings.Contains(lines[6], "10000 of 10000 members") {
		t.Errorf("it shows:\n%s", strings.Join(lines, "\n"))
	}
	for _, line := range lines {
		if len([]rune(line)) > 120 {
			t.Errorf("a line is wider than the terminal: %q", line)
		}
	}
}

func TestChangesOfOneMomentAreDrawnTogether(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	defer end()
	changed, batches := make(chan change), make(chan changes)
	go gather(ctx, changed, func(batch changes) { batches <- batch })
	for range 3 {
		changed <- change{}
	}
	if batch := <-batches; len(batch) != 3 {
		t.Errorf("%d changes come together, want 3", len(batch))
	}
	changed <- change{}
	if batch := <-batches; len(batch) != 1 {
		t.Errorf("%d changes come later, want 1", len(batch))
	}
}
