package policy

import (
	"fmt"
	"go/scanner"
	"go/token"
	"strings"
	"testing"
	"unicode/utf8"
)

// The widths, in characters, of which a tab is one. An entry of the changelog is one line.
const maxCode, maxComment, maxProse, maxEntry = 140, 100, 120, 160

// wideFiles names the files with wider lines, and the number of these. It may only become shorter.
const wideFiles = "internal/policy/testdata/wide.txt"

// TestLinesAreNarrow counts lines of Go beyond 140 columns, comments beyond 100, and prose of
// Markdown beyond 120.
func TestLinesAreNarrow(t *testing.T) {
	found := map[string]int{}
	first := map[string]string{}
	for _, name := range tracked(t) {
		var wide []int
		data := string(read(t, name))
		switch {
		case strings.Contains(name, "testdata/"):
		case name == "CHANGELOG.md":
			wide = wideProse(data, maxEntry)
		case strings.HasSuffix(name, ".go") && !isGenerated([]byte(data)):
			wide = wideCode(data)
		case strings.HasSuffix(name, ".md") && name != "docs/troubleshooting.md" && !strings.HasPrefix(name, "docs/reference/"):
			wide = wideProse(data, maxProse)
		}
		if len(wide) > 0 {
			found[name], first[name] = len(wide), fmt.Sprintf("%s:%d", name, wide[0])
		}
	}
	list{wideFiles, "lines are too wide", "wrap them"}.check(t, found, first)
}

// wideCode returns the numbers of the lines of a Go file that are too wide.
func wideCode(data string) (wide []int) {
	lines := strings.Split(data, "\n")
	comments := commentLines(data, lines)
	for i, line := range lines {
		limit := maxCode
		if comments[i+1] {
			text := strings.TrimPrefix(strings.TrimSpace(line), "//")
			switch {
			case strings.HasPrefix(text, " +"), text != "" && text[0] != ' ' && text[0] != '\t':
				continue // a marker, such as // +kubebuilder, or a directive
			case strings.HasPrefix(text, "\t"), strings.HasPrefix(text, "  "):
				// A diagram, code or a list: it is as wide as code.
			default:
				limit = maxComment
			}
		}
		if utf8.RuneCountInString(line) > limit {
			wide = append(wide, i+1)
		}
	}
	return wide
}

// commentLines are the lines that are a // comment and nothing else. A raw string has none.
func commentLines(data string, lines []string) map[int]bool {
	file := token.NewFileSet().AddFile("", -1, len(data))
	var s scanner.Scanner
	s.Init(file, []byte(data), nil, scanner.ScanComments)
	comments := map[int]bool{}
	for {
		pos, kind, text := s.Scan()
		if kind == token.EOF {
			return comments
		}
		line := file.Line(pos)
		if kind == token.COMMENT && strings.HasPrefix(text, "//") && strings.HasPrefix(strings.TrimSpace(lines[line-1]), "//") {
			comments[line] = true
		}
	}
}

// wideProse returns the numbers of the lines of a Markdown file that are too wide. Tables, code and
// lines with links do not count.
func wideProse(data string, limit int) (wide []int) {
	fence, before := "", ""
	for i, line := range strings.Split(data, "\n") {
		text := strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(text, fence) {
				fence = ""
			}
		case strings.HasPrefix(text, "```"), strings.HasPrefix(text, "~~~"):
			fence = text[:3]
		case strings.HasPrefix(text, "|"), strings.HasPrefix(text, "<"), strings.HasPrefix(text, "#"), strings.Contains(text, "]("):
		case before == "" && strings.HasPrefix(line, "    "): // code
			continue // the line before the code is empty, for the next line of code as well
		case utf8.RuneCountInString(line) > limit:
			wide = append(wide, i+1)
		}
		before = text
	}
	return wide
}
