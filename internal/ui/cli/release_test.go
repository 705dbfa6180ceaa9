package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	chartcommon "helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube/fake"
	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"

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
		{"v1.2.3", "1.2.3", false}, {"v1.2.3", "1.2.2", false}, {"v1.2.3", "0.0.0-gabc1234", false}, {"abc1234", "1.2.3", false},
		{built, "9.0.0", false},
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

// inMemory is Helm for the hub's chart with releases in memory.
func inMemory(t *testing.T) *helmOn {
	t.Helper()
	configuration := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	capabilities := *chartcommon.DefaultCapabilities
	capabilities.KubeVersion = chartcommon.KubeVersion{Version: "v" + oldest, Major: "1", Minor: "28"}
	configuration.Releases, configuration.Capabilities = storage.Init(driver.NewMemory()), &capabilities
	configuration.KubeClient = &fake.PrintingKubeClient{Out: io.Discard}
	return &helmOn{Configuration: configuration, chartRelease: chartRelease{"fleet", "cattle-fleet-system"}}
}

func TestAFirstInstallThatFailedIsGoneOnWithAsItWasAskedFor(t *testing.T) {
	on := inMemory(t)
	works := on.KubeClient
	on.KubeClient = &fake.FailingKubeClient{
		PrintingKubeClient: fake.PrintingKubeClient{Out: io.Discard}, WaitError: errors.New("the connection is lost"),
	}
	if _, err := on.deploy(t.Context(), map[string]any{"apiServerURL": "https://hub",
		"controller": map[string]any{"replicas": 2}}); err == nil || !strings.Contains(err.Error(), "the connection is lost") {
		t.Fatalf("the first install ends with %v", err)
	}
	on.KubeClient = works
	ttl := map[string]any{"required": true}
	made, err := on.deploy(t.Context(), map[string]any{"controller": map[string]any{"registrationTokenTTL": ttl}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"apiServerURL": "https://hub", "controller": map[string]any{"replicas": 2, "registrationTokenTTL": ttl}}
	if diff := cmp.Diff(want, made.Config); diff != "" {
		t.Errorf("its values (-want +got):\n%s", diff)
	}
}

func TestWhatWasSetIsWhatTheNextRevisionGoesOnWith(t *testing.T) {
	revision := func(status common.Status, address string) *helm.Release {
		return &helm.Release{Info: &helm.Info{Status: status}, Config: map[string]any{"apiServerURL": address}}
	}
	for name, row := range map[string]struct {
		revisions []*helm.Release
		want      string
	}{
		"the first install failed": {[]*helm.Release{revision(common.StatusFailed, "a")}, "a"},
		"the newest is deployed": {
			[]*helm.Release{revision(common.StatusSuperseded, "a"), revision(common.StatusDeployed, "b")}, "b",
		},
		"an upgrade failed, and the one before is deployed": {
			[]*helm.Release{revision(common.StatusDeployed, "a"), revision(common.StatusFailed, "b")}, "a",
		},
		"a rollback failed, and none is deployed": {
			[]*helm.Release{revision(common.StatusSuperseded, "a"), revision(common.StatusFailed, "b")}, "b",
		},
	} {
		if got := basis(row.revisions).Config["apiServerURL"]; got != row.want {
			t.Errorf("%s: %v instead of %s", name, got, row.want)
		}
	}
}

func TestValuesOfSomebodyElsesChartAreNotGoneOnWith(t *testing.T) {
	on := inMemory(t)
	theirs := &helm.Release{Name: "fleet", Namespace: "cattle-fleet-system", Version: 1, Info: &helm.Info{Status: common.StatusDeployed},
		Chart:  &chartv2.Chart{Metadata: &chartv2.Metadata{Name: "fleet", Home: "https://theirs"}},
		Config: map[string]any{"apiServerURL": "https://hub"}}
	if err := on.Releases.Create(theirs); err != nil {
		t.Fatal(err)
	}
	if has, err := on.values(); err != nil || len(has) > 0 {
		t.Errorf("%v, %v", has, err)
	}
}

func TestAChangeThatWasMadeWhenTimeRanOutIsNoFailure(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	if err := whenFree(ctx, func(context.Context) error { interrupt(); return nil }); err != nil {
		t.Errorf("it was made, and ends with %v", err)
	}
	if err := whenFree(ctx, func(context.Context) error { t.Error("one is begun"); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("the one that is not begun ends with %v", err)
	}
	ctx, interrupt = context.WithCancel(t.Context())
	busy := busyError{errors.New("somebody else changes it")}
	if err := whenFree(ctx, func(context.Context) error { interrupt(); return busy }); !errors.Is(err, busy) {
		t.Errorf("it was not made, and ends with %v", err)
	}
}
