package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/muster-fleet/muster/internal/rollout"
	"github.com/muster-fleet/muster/internal/ui/explain"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// prose prints sentences and commands. Members and tenants write some of it, which may not command a terminal.
type prose struct {
	out io.Writer
	// width is that of the terminal; 0 if it is none.
	width int
	// err is the first that printing had.
	err error
}

func newProse(out io.Writer) prose {
	p := prose{out: out}
	if file, ok := out.(*os.File); ok {
		p.width, _, _ = term.GetSize(int(file.Fd()))
	}
	return p
}

// paragraph prints sentences, of which a terminal shows whole words, and what does not fit into the first line further in. A command is printed by line, so that
// it can be copied as one.
func (p *prose) paragraph(in int, format string, args ...any) {
	p.line("%s", hanging(fmt.Sprintf(format, args...), p.width, in))
}

// narrowest is how many letters a line at least has.
const narrowest = 20

// hanging breaks a text between words into lines of at most width letters, of which all but the first begin further in. It does nothing if width is 0.
func hanging(text string, width, in int) string {
	if width <= 0 {
		return text
	}
	width = max(width, in+narrowest)
	var lines strings.Builder
	used := 0
	for i, word := range strings.Split(text, " ") {
		letters := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case used+1+letters > width && used > in:
			lines.WriteString("\n" + strings.Repeat(" ", in))
			used = in
		default:
			lines.WriteByte(' ')
			used++
		}
		lines.WriteString(word)
		used += letters
	}
	return lines.String()
}

func (p *prose) line(format string, args ...any) {
	if p.err == nil {
		p.err = printers.WriteEscaped(p.out, fmt.Sprintf(format, args...)+"\n")
	}
}

// progress prints what is so far done, with how long that took.
type progress struct {
	prose
	begun time.Time
	shown string
}

func newProgress(out io.Writer) progress { return progress{prose: newProse(out), begun: time.Now()} }

// stepIn is how far in the sentence of a step begins, after its time.
const stepIn = 7

// step prints what is so now, unless it was so before.
func (p *progress) step(format string, args ...any) {
	if now := fmt.Sprintf(format, args...); now != p.shown {
		p.paragraph(stepIn, "%5s  %s", time.Since(p.begun).Round(time.Second), now)
		p.shown = now
	}
}

// startsWithin is how long it is no cause for concern that a Pod was not scheduled or started yet.
const startsWithin = 5 * time.Second

// hindrance prints why something that was installed does not run, if it should by now.
func (p *progress) hindrance(what string, cause *rollout.Cause) {
	if starting := cause.Reason == rollout.NotStarted || cause.Reason == rollout.Unschedulable; !starting || time.Since(p.begun) > startsWithin {
		p.step("%s does not run yet: %s", what, cause.Message)
	}
}

// finding prints a finding, with its object if that is not what the user asked about.
func (p *prose) finding(f explain.Finding, named bool) {
	p.line("")
	var words []string
	if f.Reason != "" {
		words = append(words, f.Reason)
	} else {
		words = append(words, "To know")
	}
	if named {
		words = append(words, "of "+f.Object())
	}
	if !f.Since.IsZero() {
		words = append(words, "for "+view.Since(f.Since, time.Now()))
	}
	text := strings.Join(words, ", ")
	if said := view.Why(false, f.Message); said != view.Nothing {
		text += ": " + said
	}
	p.paragraph(2, "%s", text)
	p.advice(f, "")
}

// advice prints what a finding means and what to do; with the commands for one member, named if others have the same.
func (p *prose) advice(f explain.Finding, one string) {
	if f.Means != "" {
		p.paragraph(2, "  %s", f.Means)
	}
	if f.Remedy != "" {
		p.paragraph(2, "  What to do: %s", f.Remedy)
	}
	if one != "" && len(f.OnHub)+len(f.OnMember) > 0 {
		p.line("  For %s:", one)
	}
	for _, command := range f.OnHub {
		p.line("    on the hub:    %s", command)
	}
	for _, command := range f.OnMember {
		p.line("    on the member: %s", command)
	}
}
