package policy

import (
	"regexp"
	"strings"
	"testing"
)

// TestEveryThreatNamesATestThatExists: a row of the threat model whose test was renamed or deleted
// promises what nobody checks.
func TestEveryThreatNamesATestThatExists(t *testing.T) {
	exists, function := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, name := range tracked(t) {
		if !isTest(name) {
			continue
		}
		for _, match := range function.FindAllSubmatch(read(t, name), -1) {
			exists[string(match[1])] = true
		}
	}
	named := regexp.MustCompile("`(Test\\w+)`")
	rows := 0
	for number, line := range strings.Split(string(read(t, "docs/threat-model.md")), "\n") {
		tests := named.FindAllStringSubmatch(line, -1)
		for _, test := range tests {
			if !exists[test[1]] {
				t.Errorf("docs/threat-model.md:%d: there is no %s", number+1, test[1])
			}
		}
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
