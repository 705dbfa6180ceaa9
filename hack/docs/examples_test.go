package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// examples is a script of the examples of the help, with what has to be so before each.
const examples = "testdata/examples.sh"

// notInScript are the examples that take agents of other systems; the tests of internal/cli run muster migrate with them.
const notInScript = "muster migrate "

func TestEveryExampleOfTheHelpIsInTheScript(t *testing.T) {
	script, err := os.ReadFile(examples)
	if err != nil {
		t.Fatal(err)
	}
	var run []string
	for line := range strings.Lines(string(script)) {
		run = append(run, strings.TrimSuffix(strings.TrimSpace(line), " &"))
	}
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

func TestTheExamplesOfTheHelpWork(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs control planes")
	}
	script, err := os.ReadFile(examples)
	if err != nil {
		t.Fatal(err)
	}
	newReader(t, "examples", "hub", "edge-1", "new-hub").run(t, "kubectl config use-context hub\n"+string(script))
}
