package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// fails runs muster and returns its error.
func fails(t *testing.T, args ...string) error {
	t.Helper()
	command := NewCommand("muster", genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard})
	command.SetArgs(args)
	err := command.Execute()
	if err == nil {
		t.Fatalf("muster %s succeeds", strings.Join(args, " "))
	}
	return err
}

func TestAMistakeInTheCommandLineIsNamedWithARemedy(t *testing.T) {
	for line, want := range map[string]string{
		"gte":                   "muster has no command gte; did you mean get?",
		"status":                "muster has no command status; use muster get",
		"unjoin edge-1":         "muster has no command unjoin; use muster leave",
		"frobnicate":            "muster has no command frobnicate; see muster --help",
		"token lsit":            "muster token has no command lsit; did you mean list?",
		"tree":                  "muster tree needs the name of a member, for example: muster tree clusters/web",
		"wait a b c":            "c is one argument too many: muster wait takes the name of a member, for example: muster wait",
		"label web":             "muster label needs the name of a member and a label, for example: muster label clusters/web env=prod",
		"token create":          "muster token create needs a name for the token, for example: muster token create web",
		"leave":                 "muster leave needs a name, for example: muster leave clusters/web --orphan",
		"doctor now":            "muster doctor takes no arguments, and got now; see muster doctor --help",
		"get --colour":          "unknown flag: --colour; see muster get --help",
		"get --color blue":      "--color blue: use auto, always, never",
		"wait web --for happy":  "--for happy: use ready, joined, gone",
		"wait web --timeout 0s": "--timeout 0s: use a positive time",
		"version -o yaml":       "--output yaml: use json, or leave the flag out",
		"token show a -o yaml":  "--output yaml: it is command, helm, values or token",
		"explain --full":        "--full needs a name, and text output",
		"get -w --exit-code":    "use muster wait",
	} {
		err := fails(t, strings.Fields(line)...)
		if !strings.Contains(err.Error(), want) || ExitCode(err) != exitUsage {
			t.Errorf("muster %s ends with %d: %v, want %q", line, ExitCode(err), err, want)
		}
	}
}

func TestOtherNamesAreOfCommandsThatExist(t *testing.T) {
	root := NewCommand("muster", genericiooptions.IOStreams{Out: io.Discard})
	for name, other := range otherNames {
		if command, _, err := root.Find(strings.Fields(other)); err != nil || command == root {
			t.Errorf("%s: muster %s does not exist: %v", name, other, err)
		}
		if command, _, err := root.Find([]string{name}); err == nil && command != root {
			t.Errorf("muster %s exists, and needs no other name", name)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for _, row := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("refused"), 1},
		{fmt.Errorf("x: %w", usageError{errors.New("y")}), 2},
		{fmt.Errorf("%w: 3 checks", errNotWell), 3},
		{fmt.Errorf("x: %w", timedOut{errors.New("y")}), 4},
		{errPartly, 5},
		{errors.Join(errPartly, errNotWell), 5}, // what is not listed may have problems, too
	} {
		if got := ExitCode(row.err); got != row.want {
			t.Errorf("%v: %d, want %d", row.err, got, row.want)
		}
	}
}
