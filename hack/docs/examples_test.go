package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// examples is a script of the examples of the help and of the README, with what has
// to be so before each.
const examples = "testdata/examples.sh"

// notInScript are the examples that take agents of other systems; the tests of internal/ui/cli run
// muster migrate with them.
const notInScript = "muster migrate "

func TestEveryExampleOfTheHelpIsInTheScript(t *testing.T) {
	run := linesOfScript(t)
	s, err := load(checkout)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, b := range blocks(s.pages["docs/reference/commands.md"]) {
		for line := range strings.Lines(b.text) {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, "muster ") || strings.HasPrefix(line, notInScript) {
				continue
			}
			found++
			if !slices.Contains(run, line) {
				t.Errorf("%s does not run an example of the help: %s", examples, line)
			}
		}
	}
	if found < 40 {
		t.Errorf("the help has %d examples only", found)
	}
}

// TestEveryCommandOfTheReadmeIsRun finds those with which the README begins, of muster and to
// install with Helm, in the script or on a page.
func TestEveryCommandOfTheReadmeIsRun(t *testing.T) {
	run := linesOfScript(t)
	s, err := load(checkout)
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range ran["pages"].pages {
		for _, b := range blocks(s.pages[source]) {
			for line := range strings.Lines(strings.ReplaceAll(b.text, "\\\n", " ")) {
				run = append(run, strings.Join(strings.Fields(line), " "))
			}
		}
	}
	found := 0
	for line := range strings.Lines(string(s.pages["README.md"].text)) {
		line, _, _ = strings.Cut(line, " #")
		line, indented := strings.CutPrefix(line, "    ")
		if line = strings.TrimSpace(line); !indented || !strings.HasPrefix(line, "muster ") && !strings.HasPrefix(line, "helm -n ") {
			continue
		}
		found++
		if !slices.Contains(run, line) {
			t.Errorf("neither %s nor a page runs a command of the README: %s", examples, line)
		}
	}
	if found < 8 {
		t.Errorf("the README has %d commands only", found)
	}
}

// TestEveryManifestOfTheExamplesIsRun finds the path of each file below examples in the commands of
// a page that is run.
func TestEveryManifestOfTheExamplesIsRun(t *testing.T) {
	s, err := load(checkout)
	if err != nil {
		t.Fatal(err)
	}
	commands := ""
	for _, one := range ran {
		for _, source := range one.pages {
			for _, b := range blocks(s.pages[source]) {
				if !strings.HasPrefix(b.comment, "not run") {
					commands += b.text
				}
			}
		}
	}
	files, err := os.ReadDir(checkout + "/examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.Contains(commands, "examples/"+file.Name()) {
			t.Errorf("no page applies examples/%s", file.Name())
		}
	}
	if len(files) < 4 {
		t.Errorf("there are %d examples only", len(files))
	}
}

// linesOfScript are the commands of the script of examples.
func linesOfScript(t *testing.T) []string {
	t.Helper()
	script, err := os.ReadFile(examples)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(script)) {
		all = append(all, strings.TrimSuffix(strings.TrimSpace(line), " &"))
	}
	return all
}

// TestTheExamplesOfTheHelpWork runs each example as a user would, one after the other, with a hub,
// clusters that join and leave, and a hub to move to. It takes some minutes.
func TestTheExamplesOfTheHelpWork(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs control planes")
	}
	t.Parallel()
	script, err := os.ReadFile(examples)
	if err != nil {
		t.Fatal(err)
	}
	newReader(t, "examples", "hub", "edge-1", "edge-2", "new-hub").run(t, "kubectl config use-context hub\n"+string(script))
}
