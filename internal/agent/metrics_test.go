package agent

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/muster-fleet/muster/internal/delivery/protocol"
)

func TestWorksAreShownAsTheyStandAndManifestsAddUp(t *testing.T) {
	registry := Metrics()
	countWorks(protocol.Tally{Works: map[string]int{"Pending": 2}, Manifests: map[string]int{"applied": 3, "failed": 1}})
	countWorks(protocol.Tally{Works: map[string]int{"Available": 1, "Failing": 1}, Manifests: map[string]int{"applied": 2}})
	want := `
# HELP muster_agent_manifests_total Manifests of Works, by action: applied, failed, compared or removed.
# TYPE muster_agent_manifests_total counter
muster_agent_manifests_total{result="applied"} 5
muster_agent_manifests_total{result="failed"} 1
# HELP muster_agent_works Works of this member, by state: Pending, Failing, Applied, Available or Compared.
# TYPE muster_agent_works gauge
muster_agent_works{state="Available"} 1
muster_agent_works{state="Failing"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "muster_agent_works", "muster_agent_manifests_total"); err != nil {
		t.Error(err)
	}
}
