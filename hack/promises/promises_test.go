package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestThePageHasAllPromises(t *testing.T) {
	root := filepath.Join("..", "..")
	b, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, written))
	if err != nil || string(page) != string(b.page()) {
		t.Errorf("%s is out of date (%v): run go run ./hack/promises", written, err)
	}
}

func TestAPromiseThatNothingShowsIsRefused(t *testing.T) {
	for content, want := range map[string]string{
		"[{area: A, promises: [{promise: x}]}]":                                                        "needs tests, or a figure",
		"[{area: A, promises: [{promise: x, figure: 1 s, date: 2026-01-01, page: p.md}]}]":             "needs tests, or a figure",
		"[{area: A, promises: [{promise: x, tests: [TestGone]}]}]":                                     "names TestGone, which does not exist",
		"[{area: A, promises: [{promise: x, figure: 1, date: '2000-01-01', page: p.md, command: c}]}]": "p.md has no result of 2000-01-01",
		"[{area: A, promise: x}]": "reading hack/promises/promises.yaml",
	} {
		root := t.TempDir()
		for name, text := range map[string]string{source: content, "docs/p.md": "measured on 2026-01-01"} {
			file := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := read(root); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", content, err, want)
		}
	}
}

func TestTheWorstResultOfAPromiseIsShown(t *testing.T) {
	b := &book{results: map[string]result{
		"TestOld": {Date: "2026-01-01", Commit: "a", Outcome: passed}, "TestNew": {Date: "2026-02-02", Commit: "b", Outcome: passed},
		"TestBad": {Date: "2026-02-02", Commit: "b", Outcome: failed},
	}}
	for tests, want := range map[string]string{
		"TestOld TestNew":           "passed on 2026-01-01 at a",
		"TestOld TestBad":           "`TestBad`: failed on 2026-02-02 at b",
		"TestOld TestNever TestBad": "not tried yet",
	} {
		if got := b.outcome(strings.Fields(tests)); got != want {
			t.Errorf("%s: %q, want %q", tests, got, want)
		}
	}
}
