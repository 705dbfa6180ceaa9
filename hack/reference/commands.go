package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/muster-fleet/muster/internal/ui/cli"
)

// commands returns the page of muster's commands. cobra/doc would repeat two dozen flags for every
// command.
func commands() (string, error) {
	// The defaults of some flags are in the user's directory.
	if err := os.Setenv("HOME", "~"); err != nil {
		return "", err
	}
	root := cli.NewCommand("muster", genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard})
	root.InitDefaultCompletionCmd()
	var page strings.Builder
	fmt.Fprintf(&page, "# Commands of muster\n\n%s<!-- page not run: hack/docs/testdata/examples.sh runs the examples -->\n\n%s\n",
		generated, root.Long)
	describe(&page, root)
	fmt.Fprintf(&page, "\n## Flags of all commands\n\n```text\n%s```\n", root.PersistentFlags().FlagUsages())
	return page.String(), nil
}

func describe(page *strings.Builder, command *cobra.Command) {
	for _, child := range command.Commands() {
		if child.Hidden && child.Example == "" || child.Name() == "help" {
			continue // a hidden command with an example lacks only room on the page of muster --help
		}
		description := child.Long
		if description == "" {
			description = child.Short
		}
		if child.Parent().Name() == "completion" {
			continue // the same for each shell
		}
		child.InitDefaultHelpFlag()
		child.Flags().Lookup("help").Hidden = true
		fmt.Fprintf(page, "\n## %s\n\n%s\n", child.CommandPath(), withBlocks(strings.TrimSpace(description)))
		if child.Runnable() {
			fmt.Fprintf(page, "\n```text\n%s\n```\n", child.UseLine())
		}
		if child.Example != "" {
			fmt.Fprintf(page, "\n```sh\n%s\n```\n", unindented(child.Example))
		}
		if flags := child.NonInheritedFlags(); flags.HasAvailableFlags() {
			fmt.Fprintf(page, "\n```text\n%s```\n", flags.FlagUsages())
		}
		describe(page, child)
	}
}

// withBlocks puts the indented lines of a description into blocks, since a page would join them.
func withBlocks(description string) string {
	var text strings.Builder
	inside, before := false, ""
	for line := range strings.Lines(description) {
		switch indented := strings.HasPrefix(line, "  "); {
		case inside && !indented:
			text.WriteString("```\n")
			inside = false
		case !inside && indented && (before == "" || strings.HasSuffix(before, ":")): // else a list item goes on
			text.WriteString(map[bool]string{true: "\n", false: ""}[before != ""] + "```text\n")
			inside = true
		}
		text.WriteString(line)
		before = strings.TrimSpace(line)
	}
	if inside {
		text.WriteString("\n```")
	}
	return text.String()
}

func unindented(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}
