package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"

	yaml "go.yaml.in/yaml/v3"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/yamlcheck"
)

// maxUnpacked is how many bytes the resources of a Bundle may have together, however small
// they are compressed.
const maxUnpacked = 16 << 20

// maxContent is how many bytes the compressed resources of a Bundle may have: etcd takes requests
// of 1.5 MiB, in which they are base64, and some room is left for the rest of the object.
const maxContent = (1536 - 16) << 10 / 4 * 3

// pack checks the resources of a Bundle and makes their Content. The error says what the
// author has to change.
func pack(resources []fleet.BundleResource, large begin) (*fleet.Content, error) {
	if err := checkResources(resources, large); err != nil {
		return nil, err
	}
	content, err := delivery.Pack(resources)
	if err != nil {
		return nil, err
	}
	if size := len(content.Content); size > maxContent {
		total := 0
		for _, r := range resources {
			total += len(r.Content)
		}
		return nil, fmt.Errorf("%d resources of %d KiB take %d KiB compressed, and a Content holds %d KiB: make it two Bundles, the second with "+
			"dependsOn, or a Helm chart in a repository",
			len(resources), total>>10, size>>10, maxContent>>10)
	}
	return content, nil
}

// hasChart says whether there is a Helm chart among the resources, so that none is fetched.
func hasChart(resources []fleet.BundleResource) bool {
	return slices.ContainsFunc(resources, func(r fleet.BundleResource) bool { return path.Base(r.Name) == "Chart.yaml" })
}

// checkResources finds what no agent could make sense of, before any of them gets it.
func checkResources(resources []fleet.BundleResource, large begin) error {
	charts := map[string]bool{}
	names := map[string]bool{}
	for i, r := range resources {
		if r.Name != "" && names[r.Name] {
			return fmt.Errorf("resources[%d]: there is another resource %s", i, r.Name)
		}
		names[r.Name] = true
		if path.Base(r.Name) == "Chart.yaml" {
			charts[path.Dir(r.Name)] = true
		}
	}
	var problems []error
	room := maxUnpacked
	for i, r := range resources {
		if r.Name == "" {
			r.Name = fmt.Sprintf("resources[%d]", i)
		}
		file, err := delivery.FileWithin(r, room)
		if room -= len(file); errors.As(err, new(delivery.TooLargeError)) {
			return fmt.Errorf("%s: the resources of a Bundle may unpack to %d MiB together: make it several Bundles, or a Helm chart in a "+
				"repository", r.Name, maxUnpacked>>20)
		}
		if err == nil && isYAML(resources[i].Name) && !isTemplate(r.Name, charts) {
			if err = checkYAML(file, large); err != nil {
				err = fmt.Errorf("%s: %w", r.Name, err)
			}
		}
		if err != nil {
			problems = append(problems, err)
		}
		if len(problems) == maxProblems {
			break
		}
	}
	return errors.Join(problems...)
}

// maxProblems is how many wrong resources are named at once.
const maxProblems = 3

// isYAML says whether a resource is meant to be YAML; upstream's bundles of plain YAML may
// leave the name out.
func isYAML(name string) bool {
	return name == "" || strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// isTemplate says whether a file is below the templates of a chart, where it becomes YAML only
// when it is rendered.
func isTemplate(name string, charts map[string]bool) bool {
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		if path.Base(dir) == "templates" && charts[path.Dir(dir)] {
			return true
		}
		if dir == "." || dir == "/" {
			return false
		}
	}
}

// maxTree is how large a document may be to be parsed, largeTree one of which only one is parsed at
// a time: with as many values as yamlcheck allows, the tree takes 60 MiB. A larger one can be no
// object of Kubernetes; the agent says what is wrong with it.
const maxTree, largeTree = 1 << 20, 64 << 10

// oneLarge is held while a large document is checked.
var oneLarge sync.Mutex

// begin is called before a large document is checked, and what it returns afterwards.
type begin func() (end func())

// checkYAML parses all documents of a file, one after the other. The error names the line from
// which on it is wrong.
func checkYAML(file []byte, large begin) error {
	before := 0
	for document := range yamlcheck.Documents(file) {
		if err := checkDocument(document, before, large); err != nil {
			return err
		}
		before += bytes.Count(document, []byte("\n"))
	}
	return nil
}

// checkDocument parses a document that comes after so many lines.
func checkDocument(document []byte, before int, large begin) error {
	err := yamlcheck.CheckNodes(document)
	if err != nil {
		return fmt.Errorf("line %d: %w", before+1, err)
	}
	switch {
	case len(document) > maxTree:
		return nil
	case len(document) > largeTree:
		err = parseLarge(document, large)
	default:
		err = parse(document)
	}
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(aliasesError)):
		return fmt.Errorf("line %d: %w", before+1, err)
	}
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	var reported int
	if _, err := fmt.Sscanf(message, "line %d:", &reported); err == nil {
		_, message, _ = strings.Cut(message, ": ")
	}
	line := max(reported, 1)
	if len(document) <= largeTree {
		line = firstBadLine(document, reported)
	}
	return fmt.Errorf("invalid YAML: line %d: %s", before+line, message)
}

// parseLarge parses a large document when no other one is parsed.
func parseLarge(document []byte, large begin) error {
	oneLarge.Lock()
	defer oneLarge.Unlock()
	defer large()()
	return parse(document)
}

// maxSteps is how far from the line that the parser reports the true one is looked for.
const maxSteps = 30

// firstBadLine returns the line after the longest part of the file that is good. The parser reports
// a line nearby: sometimes the one before, and for what is never closed one further down.
func firstBadLine(file []byte, reported int) int {
	lines := bytes.SplitAfter(file, []byte("\n"))
	for good := min(reported+1, len(lines)-1); good >= max(reported-maxSteps, 0); good-- {
		if parse(bytes.Join(lines[:good], nil)) == nil {
			return good + 1
		}
	}
	return max(reported, 1)
}

func parse(file []byte) error {
	decoder := yaml.NewDecoder(bytes.NewReader(file))
	for {
		var document yaml.Node
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := yamlcheck.CheckAliases(&document); err != nil {
			return aliasesError{err}
		}
	}
}

// aliasesError is what is wrong with the aliases of a document that is YAML.
type aliasesError struct{ error }
