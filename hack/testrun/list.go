package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
)

// list returns the packages of the module with tests.
func list(ctx context.Context) ([]pkg, error) {
	output, err := output(ctx, "go", "list", "-json=ImportPath,TestGoFiles,XTestGoFiles,TestImports,XTestImports", "./...")
	if err != nil {
		return nil, err
	}
	var packages []pkg
	for decoder := json.NewDecoder(strings.NewReader(output)); ; {
		var p struct {
			ImportPath                                           string
			TestGoFiles, XTestGoFiles, TestImports, XTestImports []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading what go list says: %w", err)
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
			packages = append(packages, pkg{p.ImportPath, slices.Contains(append(p.TestImports, p.XTestImports...), testkit)})
		}
	}
}

// differences returns the differences from a base. Without git there is none.
func differences(ctx context.Context, base string) (diff, error) {
	if _, err := os.Stat(".git"); errors.Is(err, fs.ErrNotExist) {
		return diff{}, nil // a source archive has no history
	}
	revision, err := output(ctx, "git", "rev-parse", "HEAD")
	if err != nil {
		return diff{}, err
	}
	d := diff{revision: strings.TrimSpace(revision), tests: map[string][]string{}}
	if base == "" {
		base = defaultBase(ctx, d.revision)
	}
	changed, err := output(ctx, "git", "diff", "--name-only", "--diff-filter=d", base)
	if err != nil {
		return diff{}, err
	}
	added, err := output(ctx, "git", "ls-files", "--others", "--exclude-standard")
	if err != nil {
		return diff{}, err
	}
	d.files = strings.Fields(changed + added)
	for _, file := range d.files {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return diff{}, err
		}
		d.tests[path.Dir(file)] = append(d.tests[path.Dir(file)], testsIn(string(text))...)
	}
	return d, nil
}

// defaultBase returns the last commit that the branch shares with origin/main. On main itself it is
// the commit before, or HEAD if there is none.
func defaultBase(ctx context.Context, head string) string {
	base, err := output(ctx, "git", "merge-base", "HEAD", "origin/main")
	if base = strings.TrimSpace(base); err == nil && base != head {
		return base
	}
	if _, err := output(ctx, "git", "rev-parse", "--verify", "--quiet", "HEAD~1"); err == nil {
		return "HEAD~1"
	}
	return "HEAD"
}

var testDeclaration = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// testsIn returns the names of the tests in a Go file.
func testsIn(text string) []string {
	var names []string
	for _, match := range testDeclaration.FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	return names
}

// output runs a command and returns its output.
func output(ctx context.Context, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	text, err := command.Output()
	var exited *exec.ExitError
	if errors.As(err, &exited) {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, exited.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return string(text), nil
}
