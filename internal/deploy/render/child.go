package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	helm "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/muster-fleet/muster/internal/delivery/chart"
)

// Command is the first argument of a rendering process; the second is its memory in bytes.
const Command = "render-one-chart"

// Asked reports whether this process is a rendering process.
func Asked() bool { return len(os.Args) == 3 && os.Args[1] == Command }

// Main runs a rendering process, and returns its exit code.
func Main() int {
	memory, err := strconv.ParseUint(os.Args[2], 10, 64)
	if err == nil {
		err = confine(memory)
	}
	if err == nil {
		err = serve(os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// serve reads one request and answers it.
func serve(input io.Reader, out io.Writer) error {
	from, to := json.NewDecoder(input), json.NewEncoder(out)
	order := request{}
	if err := from.Decode(&order); err != nil {
		return fmt.Errorf("reading what to render: %w", err)
	}
	loadedChart, values, err := order.Input.Load()
	if err != nil {
		failed := &failure{Text: err.Error(), Archive: errors.Is(err, chart.ErrArchive)}
		errors.As(err, &failed.Unsupported)
		return to.Encode(message{Failed: failed})
	}
	if order.Templates == nil {
		loaded, err := outline(order.Input, loadedChart, values)
		if err != nil {
			return to.Encode(message{Failed: &failure{Text: err.Error()}})
		}
		return to.Encode(message{Loaded: loaded})
	}
	files, err := order.Input.Render(loadedChart, *order.Templates, lookingUp(from, to))
	if err != nil {
		return to.Encode(message{Failed: &failure{Text: err.Error()}})
	}
	return to.Encode(message{Files: files})
}

// outline returns a chart without its templates, files and dependencies, except for definitions.
func outline(input Input, full *helm.Chart, values map[string]any) (*Loaded, error) {
	loaded := &Loaded{Values: values, Hooks: hooks(full)}
	// ProcessDependencies sets values of dependencies in the values of the chart.
	if err := chartutil.ProcessDependencies(full, clone(values)); err != nil {
		return nil, fmt.Errorf("chart dependencies processing failed: %w", err)
	}
	flat := &helm.Chart{Metadata: full.Metadata, Lock: full.Lock, Values: full.Values}
	for _, definition := range full.CRDObjects() {
		name := definition.Name
		if below := strings.TrimPrefix(definition.Filename, full.Name()+"/"); below != name {
			name = "crds/" + below
		}
		flat.Files = append(flat.Files, &common.File{Name: name, Data: definition.File.Data})
	}
	if _, over := chart.Over(input.Files, input.Archive != nil, input.Options); over {
		flat.Templates = []*common.File{stubOf(flat, chart.Kustomized)}
	} else {
		addStubs(flat, full, "")
	}
	loaded.Chart = flat
	return loaded, nil
}

// clone returns a deep copy of values.
func clone(values map[string]any) map[string]any {
	text, err := json.Marshal(values)
	copied := map[string]any{}
	if err == nil {
		err = json.Unmarshal(text, &copied)
	}
	if err != nil {
		return values // they came as JSON
	}
	return copied
}

// addStubs gives a flat chart a stub for each template of a chart and its dependencies.
func addStubs(flat, source *helm.Chart, dir string) {
	for _, one := range source.Templates {
		name := path.Join(dir, one.Name)
		if source.Metadata.Type == "library" || strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		flat.Templates = append(flat.Templates, stubOf(flat, name))
	}
	for _, dependency := range source.Dependencies() {
		addStubs(flat, dependency, path.Join(dir, "charts", dependency.Name()))
	}
}

// stubOf returns the template of a flat chart for the rendered text of a name.
func stubOf(flat *helm.Chart, name string) *common.File {
	text := fmt.Sprintf("{{ %s %q }}", stub, path.Join(flat.Name(), name))
	return &common.File{Name: name, Data: []byte(text)}
}

// hooks returns the maximum number of hooks of a chart.
func hooks(made *helm.Chart) int {
	count := 0
	for _, one := range made.Templates {
		count += strings.Count(string(one.Data), "helm.sh/hook")
	}
	for _, dependency := range made.Dependencies() {
		count += hooks(dependency)
	}
	return count
}

// lookingUp returns the function lookup of templates, answered by the parent process.
func lookingUp(from *json.Decoder, to *json.Encoder) Lookup {
	return func(apiVersion, kind, namespace, name string) (map[string]any, error) {
		if err := to.Encode(message{Lookup: &lookup{apiVersion, kind, namespace, name}}); err != nil {
			return nil, err
		}
		var found answer
		if err := from.Decode(&found); err != nil {
			return nil, err
		}
		if found.Failed != "" {
			return map[string]any{}, errors.New(found.Failed)
		}
		object := map[string]any{}
		return object, utiljson.Unmarshal(found.Object, &object) // keeps whole numbers exact
	}
}
