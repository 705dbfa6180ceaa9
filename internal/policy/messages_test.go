package policy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// minMessageWords is the number of words from which a string literal counts as a sentence.
const minMessageWords = 4

// messages lists the string literals of a file with at least minMessageWords words. Literals
// joined by + are one message, with x for each value between them.
func messages(f goFile) (found []sentence) {
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		expression, is := node.(ast.Expr)
		if !is {
			return true
		}
		text, isText := literal(expression)
		if !isText {
			return true
		}
		if s := (sentence{f.files.Position(node.Pos()).Line, plainText(text)}); s.words() >= minMessageWords {
			found = append(found, s)
		}
		return false
	})
	return found
}

// literal returns the text of a string literal, or of a sum with one.
func literal(expression ast.Expr) (string, bool) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text, true
		}
	case *ast.BinaryExpr:
		left, isLeft := literal(e.X)
		right, isRight := literal(e.Y)
		if e.Op != token.ADD || !isLeft && !isRight {
			return "", false
		}
		if !isLeft {
			left = "x"
		}
		if !isRight {
			right = "x"
		}
		return left + right, true
	}
	return "", false
}

// messageFaults lists the words in sentences that are out.
func messageFaults(name string, sentences []sentence) (faults []string) {
	for _, s := range sentences {
		for _, p := range outPhrases {
			if word := p.out.FindString(s.text); word != "" {
				faults = append(faults, fmt.Sprintf("%s:%d: %q is out; write: %s: %.80s", name, s.line, word, p.better, s.text))
			}
		}
	}
	return faults
}

// TestMessagesArePlainEnglish checks the string literals of Go code, which users read as messages,
// help, Events and logs.
func TestMessagesArePlainEnglish(t *testing.T) {
	found, first := map[string]int{}, map[string]string{}
	for _, f := range goFiles(t) {
		if faults := messageFaults(f.name, messages(f)); len(faults) > 0 && !isGenerated(f.data) {
			found[f.dir()] += len(faults)
			first[f.dir()] = strings.Join(append(faults, first[f.dir()]), "\n")
		}
	}
	list{"internal/policy/testdata/messages.txt", "words in messages are out", "use the words of the remedy"}.check(t, found, first)
}

var (
	templateComment = regexp.MustCompile(`(?s)\{\{-?\s*/\*(.*?)\*/`)
	yamlComment     = regexp.MustCompile(`(?m)^\s*#+ ?(.*)$`)
)

// chartComments lists the sentences of the comments of a chart's file.
func chartComments(text string) (all []sentence) {
	for _, at := range templateComment.FindAllStringSubmatchIndex(text, -1) {
		all = append(all, sentencesOf(plainText(text[at[2]:at[3]]), 1+strings.Count(text[:at[2]], "\n"))...)
	}
	var paragraph []string
	begin := 0
	for i, line := range append(strings.Split(text, "\n"), "") {
		if m := yamlComment.FindStringSubmatch(line); m != nil && strings.TrimSpace(m[1]) != "" {
			if len(paragraph) == 0 {
				begin = i + 1
			}
			paragraph = append(paragraph, m[1])
			continue
		}
		all = append(all, sentencesOf(plainText(strings.Join(paragraph, "\n")), begin)...)
		paragraph = nil
	}
	return all
}

// TestChartCommentsArePlainEnglish checks the comments of values, templates and notes of charts.
func TestChartCommentsArePlainEnglish(t *testing.T) {
	found, first := map[string]int{}, map[string]string{}
	for _, name := range tracked(t) {
		extension := filepath.Ext(name)
		if !strings.HasPrefix(name, "charts/") || extension != ".yaml" && extension != ".tpl" && extension != ".txt" {
			continue
		}
		if faults := proseFaults(name, chartComments(string(read(t, name)))); len(faults) > 0 {
			found[name], first[name] = len(faults), strings.Join(faults, "\n")
		}
	}
	list{"internal/policy/testdata/chart-comments.txt", "faults of prose in comments", "use the words of the remedy"}.check(t, found, first)
}

func TestMessageFaultsAreFound(t *testing.T) {
	for source, want := range map[string]string{
		`"nobody has sent a heartbeat"`:       `p.go:3: "nobody" is out`,
		`"a member is " + "that of " + name`:  `p.go:3: "that of" is out`,
		`name + " is what was told to " + to`: `p.go:3: "told" is out`,
		`"nobody"`:                            "",
		`"the hub deletes the member"`:        "",
	} {
		files := token.NewFileSet()
		syntax, err := parser.ParseFile(files, "p.go", "package p\n\nvar x = "+source, 0)
		if err != nil {
			t.Fatal(err)
		}
		faults := strings.Join(messageFaults("p.go", messages(goFile{name: "p.go", syntax: syntax, files: files})), "\n")
		if !strings.HasPrefix(faults, want) || want == "" && faults != "" {
			t.Errorf("%s: %q, want %q", source, faults, want)
		}
	}
	for text, want := range map[string]string{
		"a: 1\n# The hub waits.\n# Nobody asks.\n": `3: "Nobody" is out`, "{{- /* It is that of x. */ -}}\n": `1: "that of" is out`,
	} {
		if faults := strings.Join(proseFaults("v", chartComments(text)), "\n"); !strings.Contains(faults, want) {
			t.Errorf("%q: %q, want %q", text, faults, want)
		}
	}
}
