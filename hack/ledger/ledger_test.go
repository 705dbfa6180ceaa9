package ledger

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	status = Line{Who: "hub", Verb: "patch", Resource: "clusters/status"}
	secret = Line{Who: "hub", Verb: "create", Resource: "secrets"}
	asked  = Line{Who: "token", Verb: "get", Resource: "clusterregistrations", Code: 403}
)

func TestATableNamesTheLinesThatGrewAndOnlyShrinks(t *testing.T) {
	table := Table{status: {Count: 2}, asked: {Count: 3, Reason: "the authorizer lags"}}
	for name, row := range map[string]struct {
		measured      map[Line]int
		grown, shrunk []string
		after         Table
	}{
		"the same":       {map[Line]int{status: 2, asked: 3}, nil, nil, table},
		"a request more": {map[Line]int{status: 3, asked: 3}, []string{"hub patch clusters/status: 3, before 2"}, nil, table},
		"a new line":     {map[Line]int{status: 2, secret: 1}, []string{"hub create secrets: 1, before 0"}, nil, table},
		"a refusal more": {map[Line]int{status: 2, asked: 4}, []string{"token get clusterregistrations 403: 4, before 3"}, nil, table},
		"a request less": {map[Line]int{status: 1, asked: 3}, nil, []string{"hub patch clusters/status: 1, before 2"},
			Table{status: {Count: 1}, asked: table[asked]}},
		"a line less":        {map[Line]int{asked: 3}, nil, []string{"hub patch clusters/status: 0, before 2"}, Table{asked: table[asked]}},
		"fewer with a cause": {map[Line]int{status: 2}, nil, nil, table},
	} {
		grown, shrunk := table.Compare(row.measured)
		if diff := cmp.Diff([][]string{row.grown, row.shrunk}, [][]string{grown, shrunk}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(row.after, table.Shrink(row.measured)); diff != "" {
			t.Errorf("%s, the table after it (-want +got):\n%s", name, diff)
		}
	}
}

func TestATableIsReadAsItWasWritten(t *testing.T) {
	table := Table{status: {Count: 2}, secret: {Count: 1}, asked: {Count: 3, Reason: "the authorizer lags"}}
	text := table.Text()
	const want = `# hub: 3 writes, 0 other requests
  2 hub patch clusters/status
  1 hub create secrets
# token: 0 writes, 0 other requests
  3 token get clusterregistrations 403 # at most: the authorizer lags
`
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("the text (-want +got):\n%s", diff)
	}
	read, err := Parse("# a comment\n\n" + text)
	if diff := cmp.Diff(table, read); diff != "" || err != nil {
		t.Errorf("the table (-want +got):\n%s%v", diff, err)
	}
	for _, wrong := range []string{"2 hub patch", "two hub patch clusters", "2 hub patch clusters x", "1 hub get secrets 403 5"} {
		if _, err := Parse(wrong); err == nil {
			t.Errorf("%q is read", wrong)
		}
	}
}

func TestTheFewestOfSeveralJoinsCount(t *testing.T) {
	got := Fewest(map[Line]int{status: 3, secret: 1, asked: 1}, map[Line]int{status: 2, secret: 1})
	if diff := cmp.Diff(map[Line]int{status: 2, secret: 1}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestTheDocumentsHaveTheSumsOfTheTables compares docs/benchmarks.md with the tables.
func TestTheDocumentsHaveTheSumsOfTheTables(t *testing.T) {
	page, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range []string{"native", "legacy", "import", "membercluster"} {
		text, err := os.ReadFile(way + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		table, err := Parse(string(text))
		if err != nil {
			t.Fatal(err)
		}
		if table.Text() != string(text) {
			t.Errorf("%s.txt is not in its own format; it should be:\n%s", way, table.Text())
		}
		written, read := table.Sum("hub")
		agents := 0
		for line, entry := range table {
			if slices.Contains([]string{"agent", "identity", "token"}, line.Who) && line.Code == 0 {
				agents += entry.Count
			}
		}
		row := fmt.Sprintf("| `%s` | %d | %d | %d |", way, written, read, agents)
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/benchmarks.md has no row %s", row)
		}
	}
}
