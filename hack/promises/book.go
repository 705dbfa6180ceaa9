package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	source  = "hack/promises/promises.yaml"
	results = "hack/promises/results.json"
	written = "docs/promises.md"
)

// area is a heading with its promises.
type area struct {
	Area     string    `json:"area"`
	Promises []promise `json:"promises"`
}

// promise is a sentence with its tests, or a figure with its day, page and command.
type promise struct {
	Promise string   `json:"promise"`
	Tests   []string `json:"tests"`
	Figure  string   `json:"figure"`
	Date    string   `json:"date"`
	Page    string   `json:"page"`
	Command string   `json:"command"`
}

// result is the last run of a test.
type result struct {
	Date    string  `json:"date"`
	Commit  string  `json:"commit"`
	Seconds float64 `json:"seconds"`
	Outcome string  `json:"outcome"`
}

// book holds the promises, the last results by test, and the packages of the tests.
type book struct {
	areas    []area
	results  map[string]result
	packages map[string]string
}

func write(ctx context.Context, run bool, from string) error {
	b, err := read(".")
	if err != nil {
		return err
	}
	var failed error
	if run || from != "" {
		if run {
			failed = b.run(ctx)
		} else if err := b.take(from); err != nil {
			return err
		}
		encoded, err := json.MarshalIndent(b.results, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(results, append(encoded, '\n'), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(failed, os.WriteFile(written, b.page(), 0o644))
}

// read reads the promises and results below a directory, and checks them.
func read(root string) (*book, error) {
	b := &book{results: map[string]result{}, packages: map[string]string{}}
	text, err := os.ReadFile(filepath.Join(root, source))
	if err == nil {
		err = yaml.UnmarshalStrict(text, &b.areas)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", source, err)
	}
	if text, err = os.ReadFile(filepath.Join(root, results)); err == nil {
		err = json.Unmarshal(text, &b.results)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading %s: %w", results, err)
	}
	if err := b.findTests(root); err != nil {
		return nil, err
	}
	return b, b.check(root)
}

var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)

// findTests fills the packages of all tests.
func (b *book) findTests(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != root:
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, match := range testFunction.FindAllSubmatch(text, -1) {
			b.packages[string(match[1])] = "./" + filepath.ToSlash(relative)
		}
		return nil
	})
}

// check returns an error for promises without tests and figures.
func (b *book) check(root string) error {
	var errs []error
	for _, area := range b.areas {
		for _, p := range area.Promises {
			for _, test := range p.Tests {
				if b.packages[test] == "" {
					errs = append(errs, fmt.Errorf("%q names %s, which does not exist", p.Promise, test))
				}
			}
			if len(p.Tests) == 0 && p.Figure == "" || p.Figure != "" && (p.Date == "" || p.Command == "" || p.Page == "") {
				errs = append(errs, fmt.Errorf("%q needs tests, or a figure with date, page and command", p.Promise))
			}
			if p.Page == "" {
				continue
			}
			if text, err := os.ReadFile(filepath.Join(root, "docs", p.Page)); err != nil || p.Date != "" && !bytes.Contains(text, []byte(p.Date)) {
				errs = append(errs, fmt.Errorf("%q: docs/%s has no result of %s (%w)", p.Promise, p.Page, p.Date, errors.Join(err, errNoDate)))
			}
		}
	}
	return errors.Join(errs...)
}

var errNoDate = errors.New("the page must name the day")
