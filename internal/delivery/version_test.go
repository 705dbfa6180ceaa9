package delivery

import (
	"strings"
	"testing"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestAVersionThatSeveralChartsMeetIsRefused(t *testing.T) {
	for version, refused := range map[string]bool{
		"": false, "1.2.3": false, "v1.2.3": false, "1.2.3-rc.1": false, "1.2.3+k3s1": false, "1.0.0-next.x": false, "latest": false,
		"1.x.x": true, "1.x": true, "1": true, "1.2": true, "x": true, "*": true, "1.2.*": true, "^1.2.3": true,
		"~1.2": true, ">=1.0.0 <2.0.0": true,
		"1.0.0 - 2.0.0": true, "1.0.0 || 2.0.0": true, "=1.2.3": true, "!=1.2.3": true, "v1.x": true, "1.X.X": true, "1.x.x-0": false,
	} {
		err := CheckChartVersion(&fleet.HelmOptions{Chart: "web", Version: version})
		if (err != nil) != refused || err != nil && !strings.Contains(err.Error(), "write the one") {
			t.Errorf("%q: %v", version, err)
		}
	}
	if err := CheckChartVersion(nil); err != nil {
		t.Error(err)
	}
}
