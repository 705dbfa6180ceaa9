package cli

import (
	"strings"
	"testing"
)

func TestTaintsAreSetReplacedAndRemovedByKey(t *testing.T) {
	for _, row := range []struct {
		before, said, want string
		refused            bool
	}{
		{"", "gpu=a:NoSchedule", "gpu=a:NoSchedule", false},
		{"gpu=a:NoSchedule,old:NoSchedule", "gpu=b:NoSchedule", "old:NoSchedule,gpu=b:NoSchedule", false},
		{"gpu=a:NoSchedule,old:NoSchedule", "gpu- new:NoSchedule", "old:NoSchedule,new:NoSchedule", false},
		{"gpu=a:NoSchedule", "gpu-", "", false},
		{"gpu=a:NoSchedule", "other-", "gpu=a:NoSchedule", false},
		{"", "gpu=a:NoExecute", "", true},
		{"", "gpu=a", "", true},
		{"", "", "", true},
	} {
		texts, err := taintedBy(row.before, strings.Fields(row.said))
		if got := strings.Join(texts, ","); got != row.want || (err != nil) != row.refused {
			t.Errorf("%q after %q: %q, %v; want %q", row.said, row.before, got, err, row.want)
		}
	}
}
