package policy

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/muster-fleet/muster"
)

// tracked lists the files of the repository, those not yet committed included, by slash-separated path.
func tracked(t *testing.T) []string {
	t.Helper()
	command := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		t.Skipf("this is no git checkout: %v", err)
	}
	var files []string
	for _, name := range strings.Split(strings.TrimRight(string(out), "\x00"), "\x00") {
		if info, err := os.Stat(filepath.Join(root, name)); err == nil && info.Mode().IsRegular() {
			files = append(files, name)
		}
	}
	return files
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func lines(data []byte) int { return bytes.Count(data, []byte("\n")) }

func isTest(name string) bool { return strings.HasSuffix(name, "_test.go") }

func isGenerated(data []byte) bool {
	head, _, _ := bytes.Cut(data, []byte("\npackage "))
	return bytes.Contains(head, []byte("// Code generated ")) && bytes.Contains(head, []byte("DO NOT EDIT."))
}

// goFile is one parsed file.
type goFile struct {
	name   string
	data   []byte
	syntax *ast.File
	files  *token.FileSet
}

// goFiles parses every Go file that is neither a test nor test data.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	return parsedFiles(t, false)
}

func testFiles(t *testing.T) []goFile {
	t.Helper()
	return parsedFiles(t, true)
}

func parsedFiles(t *testing.T, tests bool) []goFile {
	t.Helper()
	var parsed []goFile
	for _, name := range tracked(t) {
		if !strings.HasSuffix(name, ".go") || isTest(name) != tests || strings.Contains(name, "testdata/") {
			continue
		}
		data := read(t, name)
		files := token.NewFileSet()
		syntax, err := parser.ParseFile(files, name, data, parser.ParseComments)
		if err != nil {
			t.Errorf("%s does not parse: %v", name, err)
			continue
		}
		parsed = append(parsed, goFile{name: name, data: data, syntax: syntax, files: files})
	}
	return parsed
}

func (f goFile) dir() string { return filepath.ToSlash(filepath.Dir(f.name)) }
