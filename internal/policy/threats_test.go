package policy

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// named matches the names of tests in a page.
var named = regexp.MustCompile("`(Test\\w+)`")

// testFunctions are the names of all tests.
func testFunctions(t *testing.T) map[string]bool {
	t.Helper()
	exists, function := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, name := range tracked(t) {
		if !isTest(name) {
			continue
		}
		for _, match := range function.FindAllSubmatch(read(t, name), -1) {
			exists[string(match[1])] = true
		}
	}
	return exists
}

// TestPagesNameTestsThatExist finds the names of renamed and deleted tests in all pages.
func TestPagesNameTestsThatExist(t *testing.T) {
	exists := testFunctions(t)
	for _, name := range tracked(t) {
		if !strings.HasSuffix(name, ".md") {
			continue
		}
		for number, line := range strings.Split(string(read(t, name)), "\n") {
			for _, test := range named.FindAllStringSubmatch(line, -1) {
				if !exists[test[1]] {
					t.Errorf("%s:%d: there is no %s", name, number+1, test[1])
				}
			}
		}
	}
}

// TestEveryFeatureOfMembersNamesATestThatExists reads the table of features by kind of member.
func TestEveryFeatureOfMembersNamesATestThatExists(t *testing.T) {
	exists, rows := testFunctions(t), 0
	_, table, _ := strings.Cut(string(read(t, "docs/concepts.md")), "| muster | dashboard | test |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if cells[0] == "---" {
			continue
		}
		rows++
		if len(cells) != 7 || !slices.Contains([]string{"button", "shown", "YAML", "–"}, cells[5]) {
			t.Errorf("docs/concepts.md: want seven columns, and button, shown, YAML or – for the dashboard: %s", line)
			continue
		}
		if test := named.FindStringSubmatch(cells[6]); test == nil || !exists[test[1]] {
			t.Errorf("docs/concepts.md: no such test: %s", line)
		}
	}
	if rows < 20 {
		t.Errorf("the table has %d rows", rows)
	}
}

// TestEveryThreatNamesATest finds rows of the threat model without a test of the defense.
func TestEveryThreatNamesATest(t *testing.T) {
	rows := 0
	for number, line := range strings.Split(string(read(t, "docs/threat-model.md")), "\n") {
		if row := strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| who |") && !strings.HasPrefix(line, "| ---"); row {
			rows++
			if cells := strings.Split(strings.Trim(line, "| "), " | "); len(cells) != 4 || !named.MatchString(cells[3]) {
				t.Errorf("docs/threat-model.md:%d: want who, what he tries, what stops it, and a test: %s", number+1, line)
			}
		}
	}
	if rows == 0 {
		t.Error("docs/threat-model.md has no rows")
	}
}
