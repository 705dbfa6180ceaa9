package bundle

import (
	"testing"
	"time"
)

func TestManyAgentsHaveMoreTimeForTheirFirstReports(t *testing.T) {
	for _, c := range []struct {
		deployments int
		ofAgent     bool
		want        time.Duration
	}{
		{1, false, 2020 * time.Millisecond},
		{1000, false, 22 * time.Second},
		{10000, false, 30 * time.Second},
		{1, true, 30 * time.Second},
	} {
		if got := reportsWithin(c.deployments, c.ofAgent); got != c.want {
			t.Errorf("%d deployments, of an agent %v: %s, want %s", c.deployments, c.ofAgent, got, c.want)
		}
	}
}
