package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// git runs git in a repository without the settings of this machine.
func git(t *testing.T, root string, args ...string) {
	t.Helper()
	command := exec.Command("git", append([]string{"-C", root, "-c", "user.name=ada", "-c", "user.email=ada@example.com"}, args...)...)
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func TestTheSiteHasItsReleasesAndLeadsFromPageToPage(t *testing.T) {
	root, out := t.TempDir(), t.TempDir()
	git(t, root, "init", "--quiet")
	commit := func(tag string, pages map[string]string) {
		t.Helper()
		for name, text := range pages {
			write(t, root, name, text)
		}
		git(t, root, "add", ".")
		git(t, root, "commit", "--quiet", "--message", tag)
		git(t, root, "tag", tag)
	}
	commit("v0.9.0", map[string]string{contents: "# Contents\n\n- [A](a.md)\n", "docs/a.md": "# A of 0.9\n\n[dead](#dead)\n"})
	commit("v0.10.0-rc.1", map[string]string{"docs/a.md": "# A candidate\n"})
	commit("v0.10.0", map[string]string{"docs/a.md": "# A of 0.10\n"})
	write(t, root, contents, "# Contents\n\n- [A](a.md)\n- [B](how-to/b.md)\n")
	write(t, root, "docs/a.md", "# A of main\n")
	write(t, root, "docs/how-to/b.md", "# B of main\n")
	tags, err := releases(root)
	if err != nil || strings.Join(tags, " ") != "v0.10.0 v0.9.0" {
		t.Fatalf("the releases are %v: %v", tags, err)
	}
	if _, err := build(root, out, tags...); err != nil {
		t.Fatal(err)
	}
	for name, wants := range map[string][]string{
		"a.html": {
			"A of main", `href="a.html" aria-current="true">main`, `href="v0.10.0/a.html">v0.10.0`, `href="v0.9.0/a.html">v0.9.0`,
		},
		"how-to/b.html": {"B of main", `href="b.html" aria-current="true">main`, `href="../v0.10.0/index.html">v0.10.0`},
		"v0.9.0/a.html": {
			"A of 0.9", `href="../a.html">main`, `href="../v0.10.0/a.html">v0.10.0`, `href="a.html" aria-current="true">v0.9.0`,
		},
		"v0.10.0/search-index.js": {"A of 0.10"}, "v0.10.0/style.css": {"--text"},
	} {
		data, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(data), want) {
				t.Errorf("%s has no %q:\n%s", name, want, data)
			}
		}
	}
	if _, err := build(root, out); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(out, "a.html")); err != nil || strings.Contains(string(data), "versions") {
		t.Errorf("a site without releases has a choice of them: %v\n%s", err, data)
	}
	if _, err := build(root, out, "v7.0.0"); err == nil || !strings.Contains(err.Error(), "v7.0.0") {
		t.Errorf("a tag that does not exist: %v", err)
	}
}
