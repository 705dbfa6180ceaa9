package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const checkout = "../.."

// made is the site, made once for a test.
func made(t *testing.T) string {
	t.Helper()
	out := t.TempDir()
	if _, err := build(checkout, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEveryLinkOfTheSiteLeadsSomewhere(t *testing.T) {
	out, links, ids := made(t), map[string][]string{}, map[string]map[string]bool{}
	attribute, id := regexp.MustCompile(`(?:href|src)="([^"]*)"`), regexp.MustCompile(`\sid="([^"]*)"`)
	walk(t, out, func(name string, data string) {
		if path.Ext(name) != ".html" {
			return
		}
		ids[name] = map[string]bool{}
		for _, match := range id.FindAllStringSubmatch(data, -1) {
			if ids[name][match[1]] {
				t.Errorf("%s has the id %s twice", name, match[1])
			}
			ids[name][match[1]] = true
		}
		for _, match := range attribute.FindAllStringSubmatch(data, -1) {
			links[name] = append(links[name], match[1])
		}
	})
	if len(ids) < 50 {
		t.Errorf("the site has %d pages only", len(ids))
	}
	for name, all := range links {
		for _, to := range all {
			if strings.HasPrefix(to, "http://") || strings.HasPrefix(to, "https://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			file, anchor, _ := strings.Cut(to, "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(filepath.Join(out, target)); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, to)
			} else if anchor != "" && !ids[target][anchor] {
				t.Errorf("%s links to %s, where there is no such heading", name, to)
			}
		}
	}
}

func TestALinkThatLeadsNowhereEndsTheBuild(t *testing.T) {
	for what, page := range map[string]string{
		"a page that does not exist":  "# A\n\n[b](b.md)\n",
		"a heading that is not there": "# A\n\n[b](#b)\n",
		"a name that would be HTML":   "# A\n\nfleet-member-<name>\n",
	} {
		root := t.TempDir()
		write(t, root, contents, "# Contents\n\n- [A](a.md)\n")
		write(t, root, "docs/a.md", page)
		if _, err := build(root, filepath.Join(root, "site")); err == nil || !strings.Contains(err.Error(), "docs/a.md") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestTheSiteAsksNobody: a script, a style or an image of another host would be a request to it,
// and fetch does not work for files.
func TestTheSiteAsksNobody(t *testing.T) {
	loads := regexp.MustCompile(`<(?:script|link|img|iframe)[^>]*(?:src|href)="(?:[a-z]+:)?//|@import|url\(|fetch\(|XMLHttpRequest`)
	walk(t, made(t), func(name string, data string) {
		if name != "search-index.js" {
			if found := loads.FindString(data); found != "" && path.Ext(name) != ".svg" {
				t.Errorf("%s has %s", name, found)
			}
		}
	})
}

func TestEveryPageOfTheDocumentationIsInItsContents(t *testing.T) {
	s, err := load(checkout)
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, c := range s.order {
		for _, e := range c.Entries {
			if slices.Contains(listed, e.Place) {
				t.Errorf("%s lists %s twice", contents, e.Place)
			}
			listed = append(listed, e.Place)
		}
	}
	files, err := fs.Glob(os.DirFS(checkout), "docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	below, err := fs.Glob(os.DirFS(checkout), "docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, below...) {
		if !strings.HasPrefix(file, "docs/decisions/") && !slices.Contains(listed, place(file, true)) {
			t.Errorf("%s does not list %s", contents, file)
		}
	}
}

func TestTheFirstPageHasThePictureAndThreeCommands(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(made(t), "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(data), "<main")
	first, _, found := strings.Cut(text, "First steps")
	if !found || !strings.Contains(first, `src="images/dashboard-fleet.png"`) {
		t.Errorf("the first page does not begin with the picture: %s", first)
	}
	first = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(first, "")
	for _, want := range []string{"make demo", "source .demo/env", "muster get"} {
		if !strings.Contains(first, want) {
			t.Errorf("the first page does not begin with %s", want)
		}
	}
}

func TestTheSearchKnowsEveryHeading(t *testing.T) {
	out := made(t)
	data, err := os.ReadFile(filepath.Join(out, "search-index.js"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`window.searchIndex = [`, `"u":"how-to/bundles.html#drift"`, `"t":"muster join"`, `"u":"quick-start.html#join-a-cluster"`,
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the index has no %s", want)
		}
	}
}

func walk(t *testing.T, dir string, visit func(name, data string)) {
	t.Helper()
	files := os.DirFS(dir)
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		visit(name, string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	if err := save(root, name, []byte(text)); err != nil {
		t.Fatal(err)
	}
}
