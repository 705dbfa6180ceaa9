package cli

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/muster-fleet/muster/internal/testterminal"
)

func TestWhatDoctorSaysFitsOnATerminal(t *testing.T) {
	t.Parallel()
	const columns = 60
	shown, terminal := testterminal.New(t, columns)
	text := make(chan string)
	go func() {
		all, _ := io.ReadAll(shown) // it ends with an error when the terminal is closed
		text <- string(all)
	}()
	command := NewCommand("muster", genericiooptions.IOStreams{In: strings.NewReader(""), Out: terminal, ErrOut: io.Discard})
	command.SetArgs([]string{"doctor", "--context", "c", "--kubeconfig", at(t, "https://nobody.invalid:6443", nil).kubeconfig})
	if err := command.ExecuteContext(t.Context()); err == nil {
		t.Error("doctor finds nothing wrong with a name that cannot be resolved")
	}
	if err := terminal.Close(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(<-text, "\r\n")
	for _, line := range lines {
		if utf8.RuneCountInString(line) > columns {
			t.Errorf("a line is longer than the %d columns of the terminal: %s", columns, line)
		}
	}
	if whole := strings.Join(strings.Fields(strings.Join(lines, " ")), " "); !strings.Contains(whole,
		"the name nobody.invalid cannot be resolved") {
		t.Errorf("it says:\n%s", strings.Join(lines, "\n"))
	}
}

func TestARemovalIsConfirmedByYesOnly(t *testing.T) {
	for typed, agreed := range map[string]bool{"yes\n": true, "y\n": false, "\n": false, "no\n": false, "\x04": false} {
		shown, terminal := testterminal.New(t, 80)
		if _, err := shown.WriteString(typed); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		change := &changer{IOStreams: genericiooptions.IOStreams{In: terminal, ErrOut: &said}}
		if err := change.ask(t.Context(), "Bundle team/web", ""); (err == nil) != agreed ||
			!strings.Contains(said.String(), "Type yes to confirm") {
			t.Errorf("%q: %v, asked by %q", typed, err, &said)
		}
	}
	_, terminal := testterminal.New(t, 80)
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	change := &changer{IOStreams: genericiooptions.IOStreams{In: terminal, ErrOut: io.Discard}}
	if err := change.ask(interrupted, "Bundle team/web", ""); err == nil || err.Error() != "interrupted; change not confirmed" {
		t.Errorf("interrupted: %v", err)
	}
}
