package release

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
)

type values = map[string]any

// made is a revision of a release; what was adopted has the user's own values in its annotation.
func made(version int, status common.Status, config values, own string) *helm.Release {
	revision := &helm.Release{
		Version: version, Info: &helm.Info{Status: status}, Config: config, Chart: &chart.Chart{Metadata: &chart.Metadata{}},
	}
	if own != "" {
		revision.Chart.Metadata.Annotations = map[string]string{annotationOwnValues: own, annotationBundle: "fleet-agent-a"}
	}
	return revision
}

func TestOwnValues(t *testing.T) {
	for _, row := range []struct {
		name    string
		history []*helm.Release
		want    values
	}{
		{"without a release there are none", nil, values{}},
		{"of an installed release they are what was set", []*helm.Release{made(1, "deployed", values{"proxy": "p"}, "")}, values{"proxy": "p"}},
		{"of an adopted one they are what was remembered", []*helm.Release{
			made(1, "superseded", values{"proxy": "p"}, ""), made(2, "deployed", values{"proxy": "p", "hub": "x"}, `{"proxy":"p"}`),
		}, values{"proxy": "p"}},
		{"what failed counts for nothing", []*helm.Release{
			made(1, "deployed", values{"proxy": "p"}, ""), made(2, "failed", values{"proxy": "q"}, ""),
		}, values{"proxy": "p"}},
		{"unless nothing else is there", []*helm.Release{made(1, "failed", values{"proxy": "p"}, "")}, values{"proxy": "p"}},
		{"what an upgrade reused of the hub's is not the user's", []*helm.Release{
			made(1, "superseded", values{"proxy": "p", "agent": values{"env": "hub", "net": true}}, `{"proxy":"p","agent":{"env":"user"}}`),
			made(2, "deployed", values{"proxy": "p", "debug": true, "agent": values{"env": "hub", "net": true, "cpu": "1"}}, ""),
		}, values{"proxy": "p", "debug": true, "agent": values{"env": "user", "cpu": "1"}}},
		{"nor is a group of values that only the hub had", []*helm.Release{
			made(1, "superseded", values{"agent": values{"net": true}}, `{}`), made(2, "deployed", values{"agent": values{"net": true}}, ""),
		}, values{}},
		{"what the user has set since is his", []*helm.Release{
			made(1, "superseded", values{"agent": values{"net": true}}, `{}`), made(2, "deployed", values{"agent": values{"net": false}}, ""),
		}, values{"agent": values{"net": false}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := ownValues(row.history)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheUsersHelmIsWaitedForAndWhatWasCutOffIsNot(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		name string
		last *helm.Release
		age  time.Duration
		busy bool
	}{
		{"a release at rest", made(1, "deployed", nil, ""), 0, false},
		{"an upgrade of the user that goes on", made(1, "pending-upgrade", nil, ""), time.Minute, true},
		{"one that must have been cut off", made(1, "pending-upgrade", nil, ""), time.Hour, false},
		{"an upgrade of ours that was cut off", made(1, "pending-upgrade", nil, "{}"), time.Minute, false},
		{"a rollback, which copies what is ours", made(1, "pending-rollback", nil, "{}"), time.Minute, true},
		{"an uninstallation that goes on", made(1, "uninstalling", nil, ""), time.Minute, true},
		{"one of a revision of ours", made(1, "uninstalling", nil, "{}"), time.Minute, true},
		{"one that must have been cut off", made(1, "uninstalling", nil, ""), time.Hour, false},
	} {
		row.last.Info.LastDeployed, row.last.Info.Deleted = now.Add(-row.age), now.Add(-row.age)
		if row.last.Info.Status == "uninstalling" {
			row.last.Info.LastDeployed = now.Add(-24 * time.Hour)
		}
		if err := busy([]*helm.Release{row.last}, now); (err != nil) != row.busy {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}
