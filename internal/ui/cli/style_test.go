package cli

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/muster-fleet/muster/internal/ui/view"
)

func draw(t *testing.T, s style, rows ...[]string) []string {
	t.Helper()
	var text strings.Builder
	table := newTable(&text, kinds[0], false, s)
	table.printHeader()
	for _, row := range rows {
		table.print(row)
	}
	if err := table.flush(); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

var (
	wellRow = []string{"clusters/web", "Cluster", "Ready", "3/3", "5/5", "v1.36.3", "online", "v0.1.0", "6d", "-", "-", "-", "-", "-"}
	illRow  = []string{"clusters/" + strings.Repeat("long", 6), "Cluster", "Lost", "1/1", "5/5", "v1.36.3", "5m", "v0.1.0", "6d",
		"-", "-", "-", "-", "no heartbeat " + strings.Repeat("for a long time ", 9)}
)

func TestStatesAreColouredAndAligned(t *testing.T) {
	lines := draw(t, style{colored: true, marked: true}, wellRow, illRow)
	plain := draw(t, style{}, wellRow, illRow)
	if !strings.Contains(lines[1], "\x1b[32m● Ready\x1b[0m") || !strings.Contains(lines[2], "\x1b[31;1m✖ Lost\x1b[") {
		t.Errorf("the lines are %q", lines)
	}
	if strings.ContainsAny(strings.Join(lines, ""), "\ue000\ue001\ue002\ue003\ue00f") || strings.Contains(strings.Join(plain, ""), "●") {
		t.Errorf("the lines are %q and %q", lines, plain)
	}
	bare := strings.NewReplacer("\x1b[32m", "", "\x1b[31;1m", "", "\x1b[0;22m", "", "\x1b[0m", "")
	at := strings.Index(bare.Replace(lines[0]), "NODES")
	for i, cell := range []string{"3/3", "1/1"} {
		if line := []rune(bare.Replace(lines[i+1])); string(line[at:at+3]) != cell {
			t.Errorf("column NODES is not aligned: %q", lines)
		}
	}
}

func TestATableFitsOnTheTerminal(t *testing.T) {
	for _, width := range []int{40, 60, 80, 100, 200} {
		lines := draw(t, style{width: width}, wellRow, illRow)
		for _, line := range lines {
			if got := utf8.RuneCountInString(line); got > width {
				t.Errorf("on %d columns a line has %d: %q", width, got, line)
			}
		}
		if width >= 80 && (!strings.Contains(lines[0], "WHY") || !strings.Contains(lines[2], "no heart") || !strings.HasSuffix(lines[2], "…")) {
			t.Errorf("on %d columns the reason is cut off: %q", width, lines)
		}
		if hides := !strings.Contains(lines[0], "KIND"); hides != (width < 200) {
			t.Errorf("on %d columns the columns are %q", width, lines[0])
		}
	}
}

func TestAnExactFitIsNotCut(t *testing.T) {
	if got := (style{width: 5}).paint("12345   "); got != "12345" {
		t.Errorf("it is %q", got)
	}
	if got := (style{width: 5}).paint("123456"); got != "1234…" {
		t.Errorf("it is %q", got)
	}
}

func TestEachStateHasASeverity(t *testing.T) {
	for want, states := range map[view.Severity][]string{
		view.SeverityOK:      {"Ready", "Available", "Granted", "Approved"},
		view.SeverityProblem: {"Lost", "NotReady", "ErrApplied", "NotAvailable", "Revoked"},
		view.SeverityWaiting: {"Pending", "WaitingForApproval", "New", "UsedUp", "Leaving", "OutsideWindow"},
	} {
		for _, state := range states {
			if got := view.SeverityOf(state); got != want {
				t.Errorf("%s: %d, want %d", state, got, want)
			}
		}
	}
}
