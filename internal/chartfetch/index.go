package chartfetch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/repo/v1"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/yamlcheck"
)

// find looks a chart up in the index of its repository.
func (f *Fetcher) find(ctx context.Context, options fleet.HelmOptions) (*repo.ChartVersion, error) {
	text, err := f.get(ctx, strings.TrimSuffix(options.Repo, "/")+"/index.yaml")
	if err != nil {
		return nil, err
	}
	index, err := parseIndex(text, options.Chart)
	if err != nil {
		return nil, fmt.Errorf("reading the index of the repository: %w", err)
	}
	version, err := index.Get(options.Chart, options.Version)
	if err != nil {
		return nil, fmt.Errorf("looking it up in the index of the repository: %w", err)
	}
	return version, nil
}

// parseIndex parses the index of a repository. Of a large one it parses only the versions of a
// chart: the tree of 20 MiB takes 350 MiB.
func parseIndex(text []byte, chart string) (*repo.IndexFile, error) {
	if tooLarge := yamlcheck.Check(text); tooLarge != nil {
		if text = versionsOf(text, chart); text == nil {
			return nil, fmt.Errorf("it is too large, and not in the form of helm repo index: %w", tooLarge)
		}
		if err := yamlcheck.Check(text); err != nil {
			return nil, fmt.Errorf("the versions of chart %s: %w", chart, err)
		}
	}
	index := repo.NewIndexFile()
	if err := yaml.Unmarshal(text, index); err != nil {
		return nil, err
	}
	for name, versions := range index.Entries {
		index.Entries[name] = slices.DeleteFunc(versions, func(v *repo.ChartVersion) bool { return v == nil || v.Metadata == nil })
	}
	index.SortEntries()
	return index, nil
}

// versionsOf returns an index with only the versions of a chart; nil for an index in a form unknown
// to Helm.
func versionsOf(index []byte, chart string) []byte {
	if bytes.HasPrefix(bytes.TrimSpace(index), []byte("{")) {
		return versionsInJSON(index, chart)
	}
	return versionsInYAML(index, chart)
}

// versionsInYAML cuts the lines of a chart out of an index in block style.
func versionsInYAML(index []byte, chart string) []byte {
	only := []byte("entries:\n")
	within, wanted, indent := false, false, -1
	for line := range bytes.Lines(index) {
		rest := bytes.TrimLeft(line, " ")
		column := len(line) - len(rest)
		switch {
		case len(bytes.TrimSpace(rest)) == 0 || rest[0] == '#': // no key
		case column == 0:
			within, wanted = strings.TrimSpace(string(line)) == "entries:", false
		case within && (indent < 0 || column == indent) && rest[0] != '-':
			indent = column
			key, _, _ := strings.Cut(string(rest), ":")
			wanted = strings.Trim(key, `"' `) == chart
		}
		if wanted {
			only = append(only, line...)
		}
	}
	if indent < 0 {
		return nil
	}
	return only
}

// versionsInJSON keeps the versions of a chart in an index in JSON.
func versionsInJSON(index []byte, chart string) []byte {
	var versions json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader(index))
	err := fields(decoder, func(key string) error {
		if key != "entries" {
			return decoder.Decode(&skipped{})
		}
		return fields(decoder, func(key string) error {
			if key != chart {
				return decoder.Decode(&skipped{})
			}
			return decoder.Decode(&versions)
		})
	})
	if err != nil {
		return nil
	}
	if versions == nil {
		return []byte("{}")
	}
	return fmt.Appendf(nil, `{"entries":{%q:%s}}`, chart, versions)
}

// skipped is a dropped JSON value.
type skipped struct{}

// UnmarshalJSON keeps nothing.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

// fields calls a function for each key of a JSON object. The function reads the value.
func fields(decoder *json.Decoder, each func(key string) error) error {
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('{') {
		return errors.Join(errors.New("it is not a JSON object"), err)
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return err
		}
		if err := each(fmt.Sprint(key)); err != nil {
			return err
		}
	}
	_, err := decoder.Token()
	return err
}
