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

// maxUnpacked limits the total bytes of a Bundle's resources, regardless of their compressed
// size.
const maxUnpacked = 16 << 20

// maxContent limits the compressed bytes of a Bundle's resources. etcd accepts requests of 1.5
// MiB; the resources are base64 in them, and the rest of the object needs some room.
const maxContent = (1536 - 16) << 10 / 4 * 3

// pack checks the resources of a Bundle and creates their Content. The error names the necessary
// change by the author.
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

// hasChart reports whether the resources contain a Helm chart; the agent then fetches none.
func hasChart(resources []fleet.BundleResource) bool {
	return slices.ContainsFunc(resources, func(r fleet.BundleResource) bool { return path.Base(r.Name) == "Chart.yaml" })
}

// checkResources finds resources unusable for every agent, before any agent gets them.
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

// maxProblems limits the invalid resources named at once.
const maxProblems = 3

// isYAML reports whether a resource is meant to be YAML. Upstream's bundles of plain YAML may
// omit the name.
func isYAML(name string) bool {
	return name == "" || strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// isTemplate reports whether a file is in the templates of a chart. It becomes YAML only after
// rendering.
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

// maxTree limits the size of a parsed document. Above largeTree, only one document is parsed at a
// time: with all values allowed by yamlcheck, its tree takes 60 MiB. A document above maxTree
// cannot be an object of Kubernetes; the agent reports the error.
const maxTree, largeTree = 1 << 20, 64 << 10

// oneLarge is held during the check of a large document.
var oneLarge sync.Mutex

// begin is called before the check of a large document, and its result after it.
type begin func() (end func())

// checkYAML parses all documents of a file, one after the other. The error names the first wrong
// line.
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

// checkDocument parses a document after the given number of lines.
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

// parseLarge parses a large document while no other one is parsed.
func parseLarge(document []byte, large begin) error {
	oneLarge.Lock()
	defer oneLarge.Unlock()
	defer large()()
	return parse(document)
}

// maxSteps limits the distance between the line reported by the parser and the wrong line.
const maxSteps = 30

// firstBadLine returns the line after the longest valid part of the file. The parser reports a
// nearby line: sometimes the one before, and for an unclosed construct one further down.
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

// aliasesError is an error in the aliases of a valid YAML document.
type aliasesError struct{ error }
