package cli

import (
	"strings"
	"testing"

	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	helm "helm.sh/helm/v4/pkg/release/v1"

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

func TestANewerReleaseIsNotReplacedByAnOlderOne(t *testing.T) {
	built := version.Version
	defer func() { version.Version = built }()
	for _, c := range []struct {
		program, has string
		refused      bool
	}{
		{"v1.2.3", "1.2.4", true}, {"v1.2.3", "1.3.0-rc.1", true}, {"v1.2.3-rc.1", "1.2.3", true},
		{"v1.2.3", "1.2.3", false}, {"v1.2.3", "1.2.2", false}, {"v1.2.3", "0.0.0-gabc1234", false}, {"abc1234", "1.2.3", false}, {built, "9.0.0", false},
	} {
		version.Version = c.program
		on := &helmOn{chartRelease: chartRelease{"fleet", "cattle-fleet-system"}}
		chart, err := on.load()
		if err != nil {
			t.Fatal(err)
		}
		last := &helm.Release{Chart: &chartv2.Chart{Metadata: &chartv2.Metadata{Home: chart.Metadata.Home, Version: c.has}}}
		err = on.checkOwn(last, chart)
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "is of version "+c.has+", and this muster brings ") {
			t.Errorf("muster %s over %s: %v", c.program, c.has, err)
		}
	}
}
