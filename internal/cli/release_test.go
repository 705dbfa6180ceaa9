package cli

import (
	"testing"

	"github.com/muster-fleet/muster/internal/version"
)

func TestTheChartsAreOfTheVersionOfTheProgram(t *testing.T) {
	built := version.Version
	defer func() { version.Version = built }()
	for set, want := range map[string]string{"v1.2.3": "1.2.3", "75d8a85": "0.0.0-g75d8a85", built: "0.1.0"} {
		version.Version = set
		chart, err := (&helmOn{chartRelease: chartRelease{chart: "fleet"}}).load()
		if err != nil || chart.Metadata.Version != want || chart.Metadata.AppVersion != want {
			t.Errorf("of %s: %v, %+v", set, err, chart.Metadata)
		}
	}
}
