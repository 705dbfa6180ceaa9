package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var packages = []pkg{
	{module + "/internal/kube", false},
	{module + "/internal/agent", true},
	{module + "/internal/hub/test", true},
	{module + "/internal/hub/members/cluster", true},
}

// commands are what a plan runs, a line each.
func (p plan) commands() []string {
	var lines []string
	for _, j := range append(slices.Clone(p.first), p.planes...) {
		lines = append(lines, strings.ReplaceAll(strings.Join(append(slices.Clone(j.flags), j.packages...), " "), module+"/", ""))
	}
	return lines
}

func TestPlan(t *testing.T) {
	for what, row := range map[string]struct {
		differs diff
		o       options
		want    []string
	}{
		"without differences the commit chooses a third": {diff{revision: "a"}, options{race: raceAuto, parallel: 1}, []string{
			"-race internal/kube", "-race -short internal/agent internal/hub/members/cluster",
			"-timeout=55m -race internal/hub/test", "-timeout=55m internal/agent", "-timeout=55m internal/hub/members/cluster",
		}},
		"a package that differs is among them": {diff{revision: "a", files: []string{"internal/agent/agent.go"}},
			options{race: raceAuto, parallel: 1}, []string{
				"-race internal/kube", "-race -short internal/hub/members/cluster",
				"-timeout=55m -race internal/hub/test", "-timeout=55m -race internal/agent",
				"-timeout=55m internal/hub/members/cluster",
			}},
		"a package above one that differs is among them": {diff{revision: "h",
			files: []string{"internal/hub/members/cluster/leave.go"}},
			options{race: raceAuto, parallel: 1}, []string{
				"-race internal/kube", "-race -short internal/agent",
				"-timeout=55m -race internal/hub/test", "-timeout=55m internal/agent",
				"-timeout=55m -race internal/hub/members/cluster",
			}},
		"all of them": {diff{}, options{race: raceAll, parallel: 1}, []string{
			"-race internal/kube", "-timeout=55m -race internal/hub/test", "-timeout=55m -race internal/agent",
			"-timeout=55m -race internal/hub/members/cluster",
		}},
		"none of them": {diff{files: []string{"internal/agent/agent.go"}}, options{race: raceNone, parallel: 1}, []string{
			"-race internal/kube", "-race -short internal/hub/test internal/agent internal/hub/members/cluster",
			"-timeout=55m internal/hub/test", "-timeout=55m internal/agent", "-timeout=55m internal/hub/members/cluster",
		}},
		"only what differs": {
			diff{
				files: []string{"internal/kube/kube.go", "internal/hub/members/cluster/testdata/a.yaml", "internal/agent/a_test.go"},
				tests: map[string][]string{"internal/agent": {"TestA", "TestB"}},
			},
			options{race: raceAuto, changed: true, parallel: 1}, []string{
				"-race internal/kube", "-race -short internal/agent internal/hub/members/cluster",
				"-timeout=55m -race -run=^(TestA|TestB)$ internal/agent",
			},
		},
		"without a C compiler": {diff{}, options{race: raceAll, parallel: 1, noDetector: true}, []string{
			"internal/kube", "-timeout=55m internal/hub/test", "-timeout=55m internal/agent", "-timeout=55m internal/hub/members/cluster",
		}},
		"what differs, without a C compiler": {
			diff{files: []string{"internal/agent/a_test.go"}, tests: map[string][]string{"internal/agent": {"TestA"}}},
			options{race: raceAuto, changed: true, parallel: 1, noDetector: true}, []string{
				"-short internal/agent", "-timeout=55m -run=^(TestA)$ internal/agent",
			},
		},
		"nothing differs": {diff{}, options{race: raceAuto, changed: true, parallel: 1}, nil},
	} {
		p, err := newPlan(packages, row.differs, row.o)
		if difference := cmp.Diff(row.want, p.commands()); err != nil || difference != "" {
			t.Errorf("%s: %v\n%s", what, err, difference)
		}
	}
	if _, err := newPlan(nil, diff{}, options{race: "some", parallel: 1}); err == nil ||
		!strings.Contains(err.Error(), "say auto, all or none") {
		t.Errorf("-race=some: %v", err)
	}
	if _, err := newPlan(nil, diff{}, options{race: raceAll}); err == nil || !strings.Contains(err.Error(), "at least 1") {
		t.Errorf("-p 0: %v", err)
	}
}

func TestEveryPackageIsChosenBySomeCommit(t *testing.T) {
	for _, p := range packages {
		count := 0
		for revision := range 300 {
			if chosen(string(rune('a'+revision)), p.path) {
				count++
			}
		}
		if count < 60 || count > 140 {
			t.Errorf("%s is chosen by %d of 300 commits", p.path, count)
		}
	}
}

func TestTestsOfAFileAreItsTestsOnly(t *testing.T) {
	text := "package a\n\nfunc TestMain(m *testing.M) {}\nfunc TestA(t *testing.T) {}\nfunc BenchmarkB(b *testing.B) {}\nfunc (r rig) " +
		"TestC(t *testing.T) {}\n\tfunc TestD(t *testing.T) {}\n"
	if got := testsIn(text); !slices.Equal(got, []string{"TestA"}) {
		t.Errorf("got %v", got)
	}
}

const events = `{"Action":"build-output","ImportPath":"p","Output":"a.go:1: broken\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    quiet\n"}
{"Action":"output","Package":"p","Test":"TestA/part","Output":"    part\n"}
{"Action":"pass","Package":"p","Test":"TestA/part","Elapsed":1}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":2}
{"Action":"attr","Package":"p","Test":"TestB","Key":"waited","Value":"0.75"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    loud\n"}
{"Action":"output","Package":"p","Test":"TestB/part","Output":"    its part\n"}
{"Action":"fail","Package":"p","Test":"TestB/part","Elapsed":1}
{"Action":"fail","Package":"p","Test":"TestB","Elapsed":1}
{"Action":"output","Package":"p","Test":"TestC","Output":"    unfinished\n"}
no event
{"Action":"output","Package":"p","Output":"panic\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t3s\n"}
{"Action":"fail","Package":"p","Elapsed":3}
{"Action":"output","Package":"q","Output":"PASS\n"}
{"Action":"output","Package":"q","Output":"ok  \tq\t3s\n"}
{"Action":"pass","Package":"q","Elapsed":3}
`

func TestWhatFailedTestsSaidIsPrinted(t *testing.T) {
	var out bytes.Buffer
	r := &runner{out: &out, waited: map[string]float64{}}
	r.read(strings.NewReader(events))
	want := "a.go:1: broken\n    loud\n    its part\nno event\n    unfinished\npanic\nFAIL\tp\t3s\nok  \tq\t3s\n"
	if difference := cmp.Diff(want, out.String()); difference != "" {
		t.Error(difference)
	}
	results := []result{{name: "p TestA", outcome: "pass", seconds: 2}, {name: "p TestB", outcome: "fail", seconds: 0.25}}
	if !slices.Equal(r.results, results) {
		t.Errorf("the results are %v, want %v", r.results, results)
	}
	if !r.failed() {
		t.Error("a test failed, and the run did not")
	}
}

func TestAFailureIsReportedWithAnExcerpt(t *testing.T) {
	for output, want := range map[string]string{
		"":                         "",
		"=== RUN   TestA\npanic\n": "",
		"=== RUN   TestA\n    a_test.go:1: broken\n        more\n":                "a_test.go:1: broken",
		"    a_test.go:1: one\n    a.go:2: two\n    b.go:3: three\n":              "a_test.go:1: one\na.go:2: two\nb.go:3: three",
		"    a_test.go:1: broken\n    program.go:9: hub printed:\n        more\n": "a_test.go:1: broken",
		"    a.go:0: a\n" + strings.Repeat("    a.go:1: b\n",
			9) + "    a.go:2: c\n": "a.go:0: a\n" + strings.Repeat("a.go:1: b\n", 6) + "a.go:2: c",
	} {
		if got := excerpt(output); got != want {
			t.Errorf("of %q it says %q, want %q", output, got, want)
		}
	}
}

// TestADataRaceIsReportedOnce has the report of a race in the output of two tests. All running
// tests of the package fail.
func TestADataRaceIsReportedOnce(t *testing.T) {
	line := func(test, text string) string {
		return fmt.Sprintf(`{"Action":"output","Package":"p","Test":%q,"Output":%q}`+"\n", test, text+"\n")
	}
	raced := "    testing.go:1712: race detected during execution of test"
	var out bytes.Buffer
	r := &runner{out: io.Discard, waited: map[string]float64{}}
	r.read(strings.NewReader(line("TestA", "quiet") + line("TestA", raceEnds) + line("TestA", raceBegins) + line("TestA", "Write at 0x1") +
		line("TestB", "  p.F()") + line("TestB", raceEnds) + line("TestB", "later") + line("TestA", raced) + line("TestB", raced) +
		line("TestB", "    hub_test.go:1: the hub logged") + line("TestC", "    c_test.go:1: broken") +
		line("TestC", raceBegins) + strings.Repeat(line("TestC", "  p.G()"), 2*maxStackLines) + line("TestC", "") +
		line("TestC", "Previous write at 0x2") + line("TestC", "") + line("TestC", "Goroutine 1") +
		`{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"fail","Package":"p","Test":"TestC"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t3s\n"}
{"Action":"fail","Package":"p"}
`))
	r.report(&out, 0, 0)
	want := "failed: p TestC\n    c_test.go:1: broken\nfailed: 2 tests that ran during a data race\n" +
		"data race in p:\nWrite at 0x1\n  p.F()\ndata race in p:\n" + strings.Repeat("  p.G()\n", maxStackLines-1) +
		"Previous write at 0x2\n" +
		"0 passed, 3 failed, 0 skipped\n"
	if got := out.String(); !strings.HasSuffix(got, want) {
		t.Errorf("the report is\n%s", got)
	}
}

func TestReport(t *testing.T) {
	usage := filepath.Join(t.TempDir(), "usage")
	if err := os.WriteFile(usage, []byte("etcd 1.50\netcd 2.00\ntest:hub 30.00\nmuster-agent 1\nmuster-deployer 2\nother 9\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r := &runner{used: map[string]float64{}, ended: []result{{name: "internal/hub/test", seconds: 50}}, results: []result{
		{name: "internal/hub/test TestA", outcome: "skip"}, {name: "internal/hub/test TestA", outcome: "pass", seconds: 7},
		{name: "internal/hub/test TestB", outcome: "skip"},
		{name: "internal/kube TestC", outcome: "fail", seconds: 1, said: "a_test.go:1: broken\nb_test.go:2: left"},
	}}
	if err := addUsage(r.used, usage); err != nil {
		t.Fatal(err)
	}
	r.report(&out, time.Minute, 40*time.Second)
	for _, want := range []string{
		"     7.0  internal/hub/test TestA\n", "    50.0  internal/hub/test\n", "       4  etcd\n", "      30  tests\n",
		"       3  agents\n",
		"      24  compilers and the rest\n      60  in all, within 40 seconds\n",
		"\nfailed: internal/kube TestC\n    a_test.go:1: broken\n    b_test.go:2: left\n1 passed, 1 failed, 1 skipped\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report has no %q:\n%s", want, &out)
		}
	}
	if err := addUsage(r.used, filepath.Join(t.TempDir(), "none")); err != nil {
		t.Errorf("a job without control planes: %v", err)
	}
}

func TestOnlyTheRaceDetectorIsCompiledWithCgo(t *testing.T) {
	for name, row := range map[string]struct {
		flags             []string
		args, environment string
	}{
		"without it": {[]string{"-timeout=55m"}, "test -json -ldflags=-s -vet=off -trimpath -timeout=55m a b", "CGO_ENABLED=0"},
		"with it":    {[]string{"-timeout=55m", "-race"}, "test -json -ldflags=-s -vet=off -trimpath -timeout=55m -race a b", "CGO_ENABLED=1"},
	} {
		args, environment := job{flags: row.flags, packages: []string{"a", "b"}}.command()
		if got := strings.Join(args, " "); got != row.args || strings.Join(environment, " ") != row.environment {
			t.Errorf("%s: %s with %v", name, got, environment)
		}
	}
}

func TestTheResultOfEachTestIsWritten(t *testing.T) {
	r := &runner{results: []result{{name: "internal/kube TestClip", outcome: "pass", seconds: 0.5}}}
	file := filepath.Join(t.TempDir(), "results.json")
	if err := r.write(file, "abc"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"Commit": "abc"`,
		`"Package": "internal/kube"`, `"Test": "TestClip"`, `"Outcome": "pass"`, `"Seconds": 0.5`} {
		if !bytes.Contains(text, []byte(part)) {
			t.Errorf("the file has no %s: %s", part, text)
		}
	}
}
