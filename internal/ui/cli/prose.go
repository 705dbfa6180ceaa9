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

	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/rollout"
	"github.com/muster-fleet/muster/internal/ui/explain"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// prose prints sentences and commands. Members and tenants write parts of the text, so it
// escapes terminal sequences.
type prose struct {
	out io.Writer
	// width is the width of the terminal; 0 without a terminal.
	width int
	// err is the first error of printing.
	err error
}

func newProse(out io.Writer) prose {
	p := prose{out: out}
	if file, ok := out.(*os.File); ok {
		p.width, _, _ = term.GetSize(int(file.Fd()))
	}
	return p
}

// paragraph prints text wrapped at word boundaries with a hanging indent. Use line for
// commands: they stay on one line for copying.
func (p *prose) paragraph(in int, format string, args ...any) {
	p.line("%s", hanging(fmt.Sprintf(format, args...), p.width, in))
}

// narrowest is the minimum width of a line.
const narrowest = 20

// hanging wraps a text at word boundaries to a width, with a hanging indent. A width of 0 keeps
// the text.
func hanging(text string, width, indent int) string {
	if width <= 0 {
		return text
	}
	width = max(width, indent+narrowest)
	var lines strings.Builder
	used := 0
	for i, word := range strings.Split(text, " ") {
		letters := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case used+1+letters > width && used > indent:
			lines.WriteString("\n" + strings.Repeat(" ", indent))
			used = indent
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

// progress prints completed steps with the elapsed time.
type progress struct {
	prose
	begun time.Time
	shown string
	// quiet leaves the steps out.
	quiet bool
}

func newProgress(out io.Writer) progress { return progress{prose: newProse(out), begun: time.Now()} }

// newProgress returns the progress of a command, without steps if the user wants none.
func (h *access) newProgress(out io.Writer) progress {
	p := newProgress(out)
	p.quiet = h.quiet
	return p
}

// stepIn is the indent of a step after its time.
const stepIn = 7

// step prints the present state, unless it is unchanged.
func (p *progress) step(format string, args ...any) {
	if p.quiet {
		return
	}
	if now := fmt.Sprintf(format, args...); now != p.shown {
		p.paragraph(stepIn, "%5s  %s", time.Since(p.begun).Round(time.Second), now)
		p.shown = now
	}
}

// startsWithin is the normal time for a Pod to be scheduled and started.
const startsWithin = 5 * time.Second

// hindrance prints why an installed workload is not running, unless it is still starting.
func (p *progress) hindrance(what string, cause *rollout.Cause) {
	if starting := cause.Reason == rollout.NotStarted || cause.Reason == rollout.Unschedulable; !starting ||
		time.Since(p.begun) > startsWithin {
		p.step("%s does not run yet: %s", what, cause.Message)
	}
}

// finding prints a finding, with the name of its object if named.
func (p *prose) finding(f explain.Same, named bool) {
	p.line("")
	var words []string
	if f.Reason != "" {
		words = append(words, f.Reason)
	} else {
		words = append(words, "To know")
	}
	if named {
		words = append(words, "of "+kube.JoinNames([]string{f.Object()}, 1+f.Others))
	}
	if !f.Since.IsZero() {
		words = append(words, "for "+view.Since(f.Since, time.Now()))
	}
	text := strings.Join(words, ", ")
	if said := view.Why(false, f.Message); said != view.Nothing {
		text += ": " + said
	}
	p.paragraph(2, "%s", text)
	p.advice(f.Finding, "")
}

// advice prints the meaning and the remedy of a finding. The commands are for one member, named
// if others have the same finding.
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
