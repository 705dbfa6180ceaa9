package release

import (
	"testing"

	"helm.sh/helm/v4/pkg/release/common"
)

func TestAReleaseIsUninstalledOnlyByALaterCommand(t *testing.T) {
	for name, row := range map[string]struct {
		installed
		now  map[int]common.Status
		gone bool
	}{
		"unchanged":                       {installed{newest: 2}, map[int]common.Status{1: "superseded", 2: "deployed"}, false},
		"being upgraded":                  {installed{newest: 2}, map[int]common.Status{2: "deployed", 3: "pending-upgrade"}, false},
		"its history is deleted":          {installed{newest: 2}, map[int]common.Status{3: "pending-upgrade"}, true},
		"the newest is being removed":     {installed{newest: 2}, map[int]common.Status{2: "uninstalling", 3: "pending-upgrade"}, true},
		"the deployer's is being removed": {installed{newest: 2}, map[int]common.Status{2: "deployed", 3: "uninstalling"}, true},
		"removed, with its history kept":  {installed{newest: 2}, map[int]common.Status{1: "superseded", 2: "uninstalled"}, true},
		"removed before, and installed by other means": {
			installed{newest: 2, ended: true}, map[int]common.Status{1: "superseded", 2: "uninstalled", 3: "pending-install"}, false,
		},
		"removed before and again": {installed{newest: 2, ended: true}, map[int]common.Status{2: "uninstalled", 3: "uninstalling"}, true},
	} {
		if err := row.removed(row.now); (err != nil) != row.gone {
			t.Errorf("%s: %v", name, err)
		}
	}
}
