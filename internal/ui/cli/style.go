package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/fatih/color"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/muster-fleet/muster/internal/ui/view"
)

// The values of the flag --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

var colors = []string{colorAuto, colorAlways, colorNever}

// addColor adds the flag --color.
func (h *access) addColor(command *cobra.Command) {
	command.PersistentFlags().StringVar(&h.color, "color", colorAuto,
		"Colour of states: auto for terminals without the variable NO_COLOR, always, or never")
	complete(command, "color", cobra.FixedCompletions(colors, cobra.ShellCompDirectiveNoFileComp))
}

// addQuiet adds the flag --quiet.
func (h *access) addQuiet(command *cobra.Command) {
	command.PersistentFlags().BoolVar(&h.quiet, "quiet", false, "Print results and errors only, without the steps before")
}

// checkColor returns an error for another value of the flag.
func (h *access) checkColor() error {
	if !slices.Contains(colors, h.color) {
		return usageError{fmt.Errorf("--color %s: use %s", h.color, strings.Join(colors, ", "))}
	}
	return nil
}

// style is the look of a table.
type style struct {
	// colored colors the states; marked puts a symbol before each, readable without color.
	colored, marked bool
	// width is the width of the terminal; 0 without one.
	width int
}

// styleOf returns the style for an output. A pipe gets neither colour nor symbols.
func (h *access) styleOf(out io.Writer) style {
	file, ok := out.(*os.File)
	terminal := ok && term.IsTerminal(int(file.Fd()))
	s := style{colored: h.color == colorAlways}
	if terminal {
		s.width, _, _ = term.GetSize(int(file.Fd()))
		plain := os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb"
		s.colored = s.colored || cmp.Or(h.color, colorAuto) == colorAuto && !plain
	}
	s.marked = (terminal || s.colored) && speaksUTF8(os.Getenv)
	return s
}

// A painted cell begins with the rune of its severity and ends with unpaint. All runes are of the
// private use area, and no cell of an object has one. Each is one column wide while the table is
// aligned.
const (
	paintHeader = '\uE000'
	unpaint     = '\uE00F'
)

var looks = map[view.Severity]struct {
	paint  rune
	symbol string
	color  *color.Color
}{
	view.SeverityWaiting: {'\uE001', "◐ ", color.New(color.FgYellow)},
	view.SeverityOK:      {'\uE002', "● ", color.New(color.FgGreen)},
	view.SeverityProblem: {'\uE003', "✖ ", color.New(color.FgRed, color.Bold)},
}

// stateCell returns the cell of a state.
func (s style) stateCell(state string) string {
	look := looks[view.SeverityOf(state)]
	if s.marked {
		state = look.symbol + state
	}
	if s.colored {
		state = string(look.paint) + state + string(unpaint)
	}
	return state
}

// headerCell returns the header of the states.
func (s style) headerCell(name string) string {
	if s.colored {
		return string(paintHeader) + name + string(unpaint)
	}
	return name
}

// paintedCell matches a painted cell. The end of a line may cut it.
var paintedCell = regexp.MustCompile("[\uE000-\uE003][^\uE00F]*\uE00F?")

// paint cuts an aligned line to the width, and colours its painted cells.
func (s style) paint(line string) string {
	line = s.cut(strings.TrimRight(line, " "))
	return paintedCell.ReplaceAllStringFunc(line, func(painted string) string {
		text := strings.TrimRight(painted, string(unpaint))
		for _, look := range looks {
			if rest, is := strings.CutPrefix(text, string(look.paint)); is {
				look.color.EnableColor()
				return look.color.Sprint(rest)
			}
		}
		return strings.TrimLeft(text, string(paintHeader))
	})
}

// cut shortens a line to the width.
func (s style) cut(line string) string {
	isPaint := func(letter rune) bool { return letter >= paintHeader && letter <= unpaint }
	visible := 0
	for _, letter := range line {
		if !isPaint(letter) {
			visible++
		}
	}
	if s.width <= 0 || visible <= s.width {
		return line
	}
	var short strings.Builder
	left := s.width - 1
	for _, letter := range line {
		if !isPaint(letter) {
			if left == 0 {
				break
			}
			left--
		}
		short.WriteRune(letter)
	}
	return short.String() + "…"
}
