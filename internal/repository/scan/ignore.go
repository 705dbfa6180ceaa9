package scan

import (
	"bytes"
	"fmt"
	"path"
	"strings"
)

// ignoreFile lists, in its directory, patterns of files outside all Bundles.
const ignoreFile = ".fleetignore"

// ignored are the patterns of an ignoreFile. They hold for its directory and those below.
type ignored struct {
	dir      string
	patterns []string
}

// visible returns the tree without ignored files, and without the directories of Git.
func visible(t Tree) (Tree, error) {
	var rules []ignored
	for _, name := range t.Paths {
		if path.Base(name) != ignoreFile {
			continue
		}
		text, err := t.readWhole(name)
		if err != nil {
			return Tree{}, err
		}
		patterns, err := parseIgnored(name, text)
		if err != nil {
			return Tree{}, err
		}
		rules = append(rules, ignored{path.Dir(name), patterns})
	}
	shown := Tree{Read: t.readWhole, Submodules: t.Submodules, Broken: t.Broken}
	for _, name := range t.Paths {
		if path.Base(name) != ignoreFile && !hidden(name, rules) {
			shown.Paths = append(shown.Paths, name)
		}
	}
	return shown, nil
}

// parseIgnored reads an ignoreFile. As in Rancher Fleet, a line is a pattern of package path, and
// a backslash keeps a trailing blank or the meaning of a first #.
func parseIgnored(name string, text []byte) (patterns []string, err error) {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		pattern := strings.TrimRight(string(line), "\r\n")
		for strings.HasSuffix(pattern, " ") && !strings.HasSuffix(pattern, `\ `) {
			pattern = strings.TrimSuffix(pattern, " ")
		}
		if pattern == "" || strings.HasPrefix(pattern, "#") {
			continue
		}
		pattern = strings.TrimSuffix(pattern, "/")
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, fmt.Errorf("%s:%d: %s is no valid pattern: %w", name, number, pattern, err)
		}
		patterns = append(patterns, pattern)
	}
	return patterns, nil
}

// hidden reports whether a file, or one of its directories, is ignored.
func hidden(name string, rules []ignored) bool {
	for part := name; part != "."; part = path.Dir(part) {
		if path.Base(part) == ".git" {
			return true
		}
		for _, rule := range rules {
			if rule.dir != "." && !strings.HasPrefix(part, rule.dir+"/") {
				continue
			}
			for _, pattern := range rule.patterns {
				if match(pattern, relative(rule.dir, part)) {
					return true
				}
			}
		}
	}
	return false
}

// match compares a pattern with a path from the directory of the ignoreFile, and with its last
// element.
func match(pattern, name string) bool {
	whole, _ := path.Match(strings.TrimPrefix(pattern, "/"), name)
	last, _ := path.Match(pattern, path.Base(name))
	return whole || last
}
