package cli

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// printed returns the output of muster for some arguments, without a kubeconfig.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	command := NewCommand("muster", genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
	command.SetArgs(args)
	if err := command.Execute(); err != nil {
		t.Fatalf("muster %s: %v", strings.Join(args, " "), err)
	}
	return out.String()
}

func TestHelpFitsOnOneScreenInGroups(t *testing.T) {
	help := printed(t, "--help")
	if lines := strings.Count(help, "\n"); lines > 45 {
		t.Errorf("muster --help has %d lines, want at most 45:\n%s", lines, help)
	}
	groups := []string{"Install", "Join", "Look", "Decide", "Leave", "Help"}
	before := -1
	for _, title := range groups {
		at := strings.Index(help, "\n"+title+":\n")
		if at <= before {
			t.Errorf("muster --help does not show group %s, or not in the order %v:\n%s", title, groups, help)
		}
		before = at
	}
	for _, command := range NewCommand("muster", genericiooptions.IOStreams{Out: io.Discard}).Commands() {
		if !command.Hidden && (!strings.Contains(help, "\n  "+command.Name()+" ") || command.GroupID == "") {
			t.Errorf("muster --help does not show %s in a group:\n%s", command.Name(), help)
		}
	}
	for line := range strings.Lines(help) {
		if len(line) > 100 {
			t.Errorf("a line of muster --help has %d columns: %s", len(line), line)
		}
	}
}

func TestHelpOfACommandIsShownBothWays(t *testing.T) {
	if printed(t, "help", "get") != printed(t, "get", "--help") {
		t.Error("muster help get does not show the help of muster get")
	}
}

func TestOptionsListsTheFlagsThatHelpHides(t *testing.T) {
	listed := printed(t, "options")
	root := NewCommand("muster", genericiooptions.IOStreams{Out: io.Discard})
	var every func(*cobra.Command)
	every = func(command *cobra.Command) {
		help := printed(t, append(strings.Fields(command.CommandPath())[1:], "--help")...)
		root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
			own := command.LocalNonPersistentFlags().Lookup(f.Name)
			if shows := strings.Contains(help, " --"+f.Name+" "+f.Value.Type()+" "); shows && own == nil {
				t.Errorf("%s --help shows --%s, which muster options lists", command.CommandPath(), f.Name)
			}
			if !strings.Contains(listed, " --"+f.Name+" ") {
				t.Errorf("muster options does not list --%s", f.Name)
			}
		})
		if !strings.Contains(help, `Use "muster options"`) {
			t.Errorf("%s --help does not name muster options:\n%s", command.CommandPath(), help)
		}
		for _, child := range command.Commands() {
			every(child)
		}
	}
	every(root)
}

func TestAllNamespacesIsAcceptedWhereACommandLooksInWorkspaces(t *testing.T) {
	// These commands write to one workspace or to none, or concern the whole hub.
	without := []string{"init", "migrate", "join", "move", "token", "bundle", "options", "use", "version", "help", "backup", "restore", "hub"}
	for i := range NewCommand("muster", genericiooptions.IOStreams{Out: io.Discard}).Commands() {
		command := NewCommand("muster", genericiooptions.IOStreams{Out: io.Discard}).Commands()[i] // flags of its own
		err := command.ParseFlags([]string{"-A"})
		if accepts := err == nil; accepts == slices.Contains(without, command.Name()) {
			t.Errorf("muster %s -A: %v", command.Name(), err)
		}
		if err != nil {
			continue
		}
		if err := command.PreRunE(command, nil); err != nil {
			t.Errorf("muster %s -A: %v", command.Name(), err)
		}
		if err := command.ParseFlags([]string{"-n", "team"}); err != nil {
			t.Fatal(err)
		}
		if err := command.PreRunE(command, nil); err == nil {
			t.Errorf("muster %s accepts -A with -n", command.Name())
		}
	}
}
