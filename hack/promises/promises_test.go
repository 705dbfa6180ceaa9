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

func TestResultsOfARunOfAllTestsAreStored(t *testing.T) {
	b := &book{
		areas:    []area{{Promises: []promise{{Tests: []string{"TestHere", "TestAway", "TestGone"}}}}},
		packages: map[string]string{"TestHere": "./a", "TestAway": "./b", "TestGone": "./a"},
		results:  map[string]result{"TestGone": {Commit: "old"}},
	}
	file := filepath.Join(t.TempDir(), "results.json")
	text := `{"Commit": "new", "Tests": [{"Package": "a", "Test": "TestHere", "Outcome": "pass", "Seconds": 1.23},
		{"Package": "a", "Test": "TestAway", "Outcome": "pass"},
		{"Package": "a", "Test": "TestOfNoPromise", "Outcome": "fail"}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.take(file); err != nil {
		t.Fatal(err)
	}
	here := b.results["TestHere"]
	if here.Commit != "new" || here.Outcome != passed || here.Seconds != 1.2 || b.results["TestGone"].Commit != "old" || len(b.results) != 2 {
		t.Errorf("the results are %+v", b.results)
	}
}
