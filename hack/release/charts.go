package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/repo/v1"

	"github.com/muster-fleet/muster/charts"
)

// packCharts writes all charts with this version as a repository. Helm can use it from a server, or
// from OCI registries after a push.
func (r *release) packCharts() error {
	dir := filepath.Join(r.out, "charts")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	names, err := fs.ReadDir(charts.FS, ".")
	if err != nil {
		return err
	}
	for _, name := range names {
		chart, err := charts.Load(name.Name())
		if err != nil {
			return err
		}
		chart.Metadata.Version, chart.Metadata.AppVersion = r.version, r.version
		chart.StampModTimes(r.created)
		saved, err := util.Save(chart, dir)
		if err != nil {
			return fmt.Errorf("packing the chart %s: %w", name.Name(), err)
		}
		fmt.Println(saved)
	}
	index, err := repo.IndexDirectory(dir, r.url)
	if err != nil {
		return fmt.Errorf("making the index of the charts: %w", err)
	}
	index.Generated = r.created
	for _, versions := range index.Entries {
		for _, version := range versions {
			version.Created = r.created
		}
	}
	index.SortEntries()
	return index.WriteFile(filepath.Join(dir, "index.yaml"), 0o644)
}
