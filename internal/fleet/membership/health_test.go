package membership

import (
	"testing"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

func TestTheHealthChangesAfterEnoughResultsInARow(t *testing.T) {
	three := &clusterv1beta1.HealthCheck{FailureThreshold: 3, SuccessThreshold: 2}
	for name, row := range map[string]struct {
		thresholds    *clusterv1beta1.HealthCheck
		results, want string // f is a failure, s a success; u is unhealthy, h healthy
	}{
		"each result counts":                   {nil, "fsffs", "uhuuh"},
		"an empty setting":                     {&clusterv1beta1.HealthCheck{}, "fs", "uh"},
		"only a failure threshold":             {&clusterv1beta1.HealthCheck{FailureThreshold: 2}, "ffs", "huh"},
		"failures in a row":                    {three, "fffffss", "hhuuuuh"},
		"a success begins the failures again":  {three, "ffsfff", "hhhhhu"},
		"a failure begins the successes again": {three, "fffsfss", "hhuuuuh"},
	} {
		var s Streak
		got := ""
		for _, result := range row.results {
			before := s
			s = s.Add(result == 'f', row.thresholds)
			got += map[bool]string{true: "u", false: "h"}[s.Unhealthy]
			if s.Pending() && s.Unhealthy != before.Unhealthy {
				t.Errorf("%s: a change is pending after it took place", name)
			}
		}
		if got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}
