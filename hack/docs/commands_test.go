package main

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark/ast"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/muster-fleet/muster/internal/ui/cli"
)

// block is commands of a page. An HTML comment right before it may say where it is
// run, or why it is not.
type block struct {
	line    int
	text    string
	comment string
}

// blocks are the fenced blocks of a page that say sh, and comments that begin with setup, whose
// commands readers do not see.
func blocks(p *page) []block {
	var all []block
	said := ""
	lineOf := func(node ast.Node) int {
		if node.Lines().Len() == 0 {
			return 0
		}
		return strings.Count(string(p.text[:node.Lines().At(0).Start]), "\n") + 1
	}
	_ = ast.Walk(p.tree, func(node ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		if !entering || node.Type() != ast.TypeBlock {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.HTMLBlock:
			raw := string(node.Lines().Value(p.text))
			if node.HasClosure() {
				raw += string(node.ClosureLine.Value(p.text))
			}
			said = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(raw), "<!--"), "-->"))
			if commands, is := strings.CutPrefix(said, "setup\n"); is {
				all, said = append(all, block{line: lineOf(node), text: commands + "\n"}), ""
			}
		case *ast.FencedCodeBlock:
			if string(node.Language(p.text)) == "sh" {
				all = append(all, block{line: lineOf(node), text: string(node.Lines().Value(p.text)), comment: said})
			}
			said = ""
		default:
			said = ""
		}
		return ast.WalkContinue, nil
	})
	return all
}

// notRun is why the commands of a page are not run; empty if they are.
func notRun(p *page) string {
	match := regexp.MustCompile(`<!-- page not run: (.*?) -->`).FindSubmatch(p.text)
	if match == nil {
		return ""
	}
	return string(match[1])
}

// TestEveryCommandOfThePagesIsOne parses the commands of all pages without running them. It parses
// the commands of muster by muster's own flags and arguments.
func TestEveryCommandOfThePagesIsOne(t *testing.T) {
	s, err := load(checkout)
	if err != nil {
		t.Fatal(err)
	}
	checked, inline := 0, regexp.MustCompile("`((?:muster|kubectl|helm) [^`]*)`")
	for _, source := range s.sources() {
		p := s.pages[source]
		for _, b := range blocks(p) {
			check := exec.CommandContext(t.Context(), "bash", "-n")
			check.Stdin = strings.NewReader(b.text)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s:%d: bash does not take it: %v\n%s", source, b.line, err, out)
			}
			if strings.HasPrefix(b.comment, "not run") && !strings.HasPrefix(b.comment, "not run: ") {
				t.Errorf("%s:%d: say why it is not run", source, b.line)
			}
		}
		if source == "docs/troubleshooting.md" || strings.HasPrefix(source, "docs/decisions/") || source == "CHANGELOG.md" {
			continue // templates of commands, with words in the place of names; and the past
		}
		for _, line := range commandLines(string(p.text), inline) {
			checked++
			if err := plausible(line); err != nil {
				t.Errorf("%s: %s: %v", source, line, err)
			}
		}
	}
	if checked < 200 {
		t.Errorf("the pages have %d commands only", checked)
	}
}

// commandLines are the lines of a page that begin with one of the programs, with those that
// continue them, and such commands in its text.
func commandLines(text string, inline *regexp.Regexp) []string {
	var all []string
	text = regexp.MustCompile("(?s)```text\n.*?```").ReplaceAllString(text, "")
	text = strings.ReplaceAll(regexp.MustCompile(`<([a-z-]+)>`).ReplaceAllString(text, "$1"), "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
		if strings.HasPrefix(line, "muster installs ") {
			continue // how muster describes itself
		}
		if match := regexp.MustCompile(`^(muster|kubectl|helm) (-|[a-z])[^|]`).MatchString(line); match && !strings.Contains(line, "`") {
			all = append(all, line)
			continue
		}
		for _, match := range inline.FindAllStringSubmatch(line, -1) {
			all = append(all, match[1])
		}
	}
	return all
}

var verbs = map[string][]string{
	"kubectl": {
		"annotate", "apply", "auth", "config", "cp", "create", "delete", "describe", "exec", "get", "label", "logs", "muster", "patch",
		"port-forward", "replace", "rollout", "run", "scale", "version", "wait",
	},
	"helm": {
		"get", "history", "install", "list", "pull", "push", "repo", "rollback", "show", "status", "template", "test", "uninstall", "upgrade",
		"version",
	},
}

// plausible says what is wrong with a command.
func plausible(line string) error {
	words, err := split(line)
	if err != nil {
		return err
	}
	if words[0] != "muster" {
		if strings.HasPrefix(words[1], "--") && len(words) == 2 {
			return nil // a flag that a sentence is about
		}
		for i := 1; i < len(words); i++ {
			if slices.Contains(verbs[words[0]], words[i]) {
				return nil
			}
		}
		return fmt.Errorf("%s has no such command", words[0])
	}
	root := cli.NewCommand("muster", genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard})
	root.InitDefaultCompletionCmd()
	command, rest, err := root.Find(words[1:])
	if err != nil {
		return err
	}
	command.InitDefaultHelpFlag()
	command.InitDefaultVersionFlag()
	if err := command.ParseFlags(rest); err != nil {
		return err
	}
	// In a sentence the name of a command may stand alone.
	if arguments := command.Flags().Args(); len(arguments) > 0 {
		return command.ValidateArgs(arguments)
	}
	return nil
}

// split is the words of a simple command, up to a comment, a pipe or what redirects.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune
	begun, depth := false, 0
	end := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
scan:
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case r == ' ' && depth == 0:
			end()
		case !begun && strings.ContainsRune("#|<>;&", r), begun && depth == 0 && r == ';':
			break scan
		default:
			switch r {
			case '(':
				depth++
			case ')':
				depth--
			}
			begun = true
			word.WriteRune(r)
		}
	}
	end()
	if quote != 0 || depth != 0 {
		return nil, errors.New("a quote or bracket does not end")
	}
	return words, nil
}
