package policy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestThePictureIsTheTree compares the tree in ARCHITECTURE.md with the directories. The packages
// of an area of the hub, and of the programs on a member, come after the colon. The areas are all
// directories of internal/hub.
func TestThePictureIsTheTree(t *testing.T) {
	_, picture, _ := strings.Cut(string(read(t, "ARCHITECTURE.md")), "## The tree\n\n```\n")
	picture, _, _ = strings.Cut(picture, "```")
	// A line that goes on with the one before begins where the descriptions do.
	picture = regexp.MustCompile(`\n {20,}`).ReplaceAllString(picture, " ")
	var areas []string
	under := map[int]string{}
	for line := range strings.Lines(picture) {
		words := strings.Fields(line)
		depth := len(line) - len(strings.TrimLeft(line, " "))
		var names []string
		for len(words) > 0 && strings.HasSuffix(words[0], "/") {
			names, words = append(names, strings.TrimSuffix(words[0], "/")), words[1:]
		}
		for _, name := range names {
			dir := filepath.Join(under[depth-2], name)
			if depth == 0 {
				dir = name
			}
			if !isDirectory(dir) {
				t.Errorf("ARCHITECTURE.md has %s, which does not exist", dir)
			}
			under[depth] = dir
			if under[depth-2] == "internal/hub" && depth == 4 {
				areas = append(areas, name)
			}
		}
		_, list, _ := strings.Cut(strings.Join(words, " "), ": ")
		if dir := under[depth]; dir != "internal/delivery" &&
			(depth == 4 && len(names) == 1 && list != "" || dir == "internal/agent" || dir == "internal/deploy" || dir == "internal/ui") {
			compare(t, dir, strings.Split(list, ", "))
		}
	}
	compare(t, "internal/hub", areas)
}

// compare reports packages that the picture has and the directory lacks, or the other way around.
func compare(t *testing.T, dir string, listed []string) {
	t.Helper()
	var there []string
	entries, err := os.ReadDir(filepath.Join(root, dir))
	if err != nil {
		return // it was reported
	}
	for _, entry := range entries {
		if entry.IsDir() && !slices.Contains([]string{"testdata", "rbac", "rules", "assets", "templates"}, entry.Name()) ||
			entry.IsDir() && slices.Contains(listed, entry.Name()) {
			there = append(there, entry.Name())
		}
	}
	for _, name := range listed {
		if !slices.Contains(there, name) {
			t.Errorf("ARCHITECTURE.md says that %s has %s", dir, name)
		}
	}
	for _, name := range there {
		if !slices.Contains(listed, name) {
			t.Errorf("%s/%s is not in the tree of ARCHITECTURE.md", dir, name)
		}
	}
}

// TestPathsOfThePagesExist looks for the paths of CODEOWNERS, and for those that the pages
// for contributors name.
func TestPathsOfThePagesExist(t *testing.T) {
	for line := range strings.Lines(string(read(t, ".github/CODEOWNERS"))) {
		if path, _, owned := strings.Cut(line, " "); owned && strings.HasPrefix(path, "/") {
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf(".github/CODEOWNERS names %s, which does not exist", path)
			}
		}
	}
	path := regexp.MustCompile("`((?:internal|api|cmd|charts|docs|hack|e2e|crash|bench)/[-\\w/.]+)`")
	for _, page := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md", "AGENTS.md", "MAINTAINERS.md"} {
		for _, match := range path.FindAllStringSubmatch(string(read(t, page)), -1) {
			if _, err := os.Stat(filepath.Join(root, match[1])); err != nil {
				t.Errorf("%s names %s, which does not exist", page, match[1])
			}
		}
	}
}

func isDirectory(name string) bool {
	info, err := os.Stat(filepath.Join(root, name))
	return err == nil && info.IsDir()
}
