package dashboard

import (
	"fmt"
	"html"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/muster-fleet/muster/internal/testkube"
	"github.com/muster-fleet/muster/internal/testterminal"
)

// recordedColumns is the width of the recorded terminal.
const recordedColumns = 100

// recorded are the commands of docs/images/terminal.svg, each with a text of its output that makes
// it worth showing.
var recorded = []struct{ command, has string }{
	{"muster get -l region=north", "Lost"},
	{"muster explain stores/oslo", "What to do"},
}

// TestTheRecordingOfTheDocumentation runs the commands of the recording on a terminal, against the
// staged fleet. With MUSTER_PICTURES it renews the recording.
func TestTheRecordingOfTheDocumentation(t *testing.T) {
	r := newRig(t)
	staged(r)
	var outputs []string
	for _, step := range recorded {
		output := r.onTerminal(step.command)
		if !strings.Contains(output, step.has) {
			t.Errorf("docs/images/terminal.svg: %s prints no %q any more:\n%s", step.command, step.has, output)
		}
		outputs = append(outputs, output)
	}
	if dir := os.Getenv("MUSTER_PICTURES"); dir != "" && !t.Failed() {
		r.check(os.WriteFile(filepath.Join(dir, "terminal.svg"), []byte(recording(outputs)), 0o644))
	}
	checkRecording(t)
}

// checkRecording checks that the recording has its commands, and that the README shows it.
func checkRecording(t *testing.T) {
	t.Helper()
	svg, err := os.ReadFile(images + "/terminal.svg")
	if err != nil {
		t.Fatalf("run the test with MUSTER_PICTURES: %v", err)
	}
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "docs/images/terminal.svg") {
		t.Error("README.md does not show docs/images/terminal.svg")
	}
	for _, step := range recorded {
		if !strings.Contains(string(svg), step.command) {
			t.Errorf("docs/images/terminal.svg has no %s: run the test with MUSTER_PICTURES", step.command)
		}
	}
}

// onTerminal returns the output of a command on a terminal, with its colours.
func (r rig) onTerminal(command string) string {
	r.t.Helper()
	shown, terminal := testterminal.New(r.t, recordedColumns)
	output := make(chan string)
	go func() {
		all, _ := io.ReadAll(shown) // it ends with an error when the terminal is closed
		output <- string(all)
	}()
	run := exec.CommandContext(r.t.Context(), testkube.Build(r.t, "muster"), strings.Fields(command)[1:]...)
	run.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(r.Dir, "kubeconfig"), "TERM=xterm-256color", "LANG=C.UTF-8")
	run.Stdout, run.Stderr = terminal, terminal
	if err := run.Run(); err != nil {
		r.t.Errorf("%s: %v", command, err)
	}
	r.check(terminal.Close())
	return strings.ReplaceAll(<-output, "\r\n", "\n")
}

const (
	letterWidth, lineHeight, margin = 8.0, 19.0, 16.0
	// typing is the time to type a command, reading the time until the next one, in seconds.
	typing, reading = 1.2, 3.0
)

// recording returns an SVG that types the commands and shows their outputs one after the other.
// Viewers that reduce motion get all of it at once.
func recording(outputs []string) string {
	var body strings.Builder
	line, at := 0, 0.5
	text := func(class, content string, delay float64) {
		y := margin + lineHeight*float64(line+1)
		fmt.Fprintf(&body, `<text class=%q style="animation-delay:%.1fs" x="%.0f" y="%.0f">%s</text>`+"\n", class, delay, margin, y, content)
		line++
	}
	for i, step := range recorded {
		text("typed", `<tspan class="prompt">$</tspan> `+html.EscapeString(step.command), at)
		at += typing
		for content := range strings.Lines(strings.TrimRight(outputs[i], "\n")) {
			text("output", painted(strings.TrimRight(content, "\n")), at)
		}
		line++
		at += reading
	}
	width, height := 2*margin+letterWidth*recordedColumns, 2*margin+lineHeight*float64(line)
	return fmt.Sprintf(recordingFrame, width, height, typing, recordedColumns, body.String())
}

// recordingFrame takes the width, the height, the seconds and steps of the typing, and the lines.
const recordingFrame = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f"
  font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13.3">
<style>
rect { fill: #14171c; }
text { fill: #d7dce2; white-space: pre; animation: show 0s forwards; opacity: 0; }
.typed { animation: show 0s forwards, type %.1fs steps(%d) forwards; clip-path: inset(0 100%% 0 0); }
.typed { fill: #fff; font-weight: 600; }
.prompt { fill: #6cb6ff; }
.c1 { font-weight: 600; } .c2, .c90 { fill: #8b949e; }
.c31 { fill: #ff7b72; } .c32 { fill: #56d364; } .c33 { fill: #e3b341; } .c36 { fill: #6cb6ff; }
@keyframes show { to { opacity: 1; } }
@keyframes type { to { clip-path: inset(0 -100%% 0 0); } }
@media (prefers-reduced-motion: reduce) { text, .typed { animation: none; opacity: 1; clip-path: none; } }
</style>
<rect width="100%%" height="100%%" rx="8"/>
%s</svg>
`

// escape is a control sequence that sets the look of text (ECMA-48, 8.3.117).
var escape = regexp.MustCompile("\x1b\\[([0-9;]*)m")

// painted returns a line with its looks as classes.
func painted(line string) string {
	var svg strings.Builder
	classes, rest := "", line
	write := func(text string) {
		if !utf8.ValidString(text) || text == "" {
			return
		}
		if classes == "" {
			svg.WriteString(html.EscapeString(text))
			return
		}
		fmt.Fprintf(&svg, `<tspan class=%q>%s</tspan>`, classes, html.EscapeString(text))
	}
	for found := escape.FindStringSubmatchIndex(rest); found != nil; found = escape.FindStringSubmatchIndex(rest) {
		write(rest[:found[0]])
		codes := strings.FieldsFunc(rest[found[2]:found[3]], func(r rune) bool { return r == ';' })
		if classes = ""; len(codes) > 0 && codes[0] != "0" {
			classes = "c" + strings.Join(codes, " c")
		}
		rest = rest[found[1]:]
	}
	write(rest)
	return svg.String()
}

func TestALineKeepsItsColours(t *testing.T) {
	got := painted("a \x1b[31;1m✖ Lost\x1b[0;22m <b>")
	if want := `a <tspan class="c31 c1">✖ Lost</tspan> &lt;b&gt;`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
