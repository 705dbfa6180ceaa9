package charts

import (
	"fmt"
	"io/fs"
	"regexp"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

// Load reads one of the charts as Helm does.
func Load(name string) (*chart.Chart, error) {
	directory, err := fs.Sub(FS, name)
	if err != nil {
		return nil, err
	}
	var files []*archive.BufferedFile
	err = fs.WalkDir(directory, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(directory, path)
		files = append(files, &archive.BufferedFile{Name: path, Data: data})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the embedded chart %s: %w", name, err)
	}
	return loader.LoadFiles(files)
}

var position = regexp.MustCompile(`^.*\((?:fleet|fleet-agent|fleet-crd|member-agent)/[^)]*\): `)

// Sentence returns the message of a chart's validation, without its position in the chart.
func Sentence(err error) string { return position.ReplaceAllString(err.Error(), "") }
