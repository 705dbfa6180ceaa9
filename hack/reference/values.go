package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

var chartsOf = []struct{ name, what string }{
	{"fleet", "The hub. Changes of its settings take effect at once, without a restart. Other values of Rancher Fleet's chart are accepted " +
		"and ignored; the notes that `helm install` prints name them."},
	{"fleet-agent", "The agent of a Cluster. Other values of Rancher Fleet's chart are accepted and ignored; the notes name them."},
	{"member-agent", "The agent of a MemberCluster. Other values of KubeFleet's chart are accepted and ignored, and named by the notes; " +
		"`useCAAuth: true` and `config.provider: azure` are refused."},
}

// values returns the page of the charts' values, from the comments in values.yaml and from their
// schema.
func values() (string, error) {
	var page strings.Builder
	page.WriteString("# Values of the charts\n\n" + generated + "`fleet-crd`, which installs the kinds, has no values.\n")
	for _, chart := range chartsOf {
		data, err := os.ReadFile("charts/" + chart.name + "/values.yaml")
		if err != nil {
			return "", err
		}
		var document yaml.Node
		if err := yaml.Unmarshal(data, &document); err != nil {
			return "", err
		}
		data, err = os.ReadFile("charts/" + chart.name + "/values.schema.json")
		if err != nil {
			return "", err
		}
		var s schema
		if err := json.Unmarshal(data, &s); err != nil {
			return "", fmt.Errorf("the schema of %s: %w", chart.name, err)
		}
		fmt.Fprintf(&page, "\n## %s\n\n%s\n\n| value | default | may be | meaning |\n| --- | --- | --- | --- |\n", chart.name, chart.what)
		if err := (table{page: &page, defs: s.Defs}).rows("", document.Content[0], s, ""); err != nil {
			return "", fmt.Errorf("charts/%s/values.yaml: %w", chart.name, err)
		}
	}
	return page.String(), nil
}

// schema is the part of JSON schema used by the charts.
type schema struct {
	Ref         string            `json:"$ref"`
	Description string            `json:"description"`
	Enum        []string          `json:"enum"`
	Defs        map[string]schema `json:"$defs"`
	Properties  map[string]schema `json:"properties"`
}

// table is the table of a chart's values.
type table struct {
	page *strings.Builder
	defs map[string]schema
}

// rows writes the rows of a map. A value without a comment uses the comment of the line above, of
// its schema or of its group. A value with fixed choices does not use the line above.
func (t table) rows(prefix string, node *yaml.Node, s schema, group string) error {
	shared, last := "", 0
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		path := prefix + key.Value
		property := resolve(s.Properties[key.Value], t.defs)
		description := comment(key.HeadComment, key.Value)
		if description == "" && key.Line == last+1 && len(property.Enum) == 0 {
			description = shared
		}
		if description == "" && value.Kind != yaml.MappingNode {
			description = property.Description
		}
		shared, last = description, key.Line
		inner := value.Kind == yaml.MappingNode && len(value.Content) > 0
		if description == "" && group == "" && !inner {
			return fmt.Errorf("line %d: %s has no comment", key.Line, path)
		}
		allowed := property.Description
		if len(property.Enum) > 0 {
			allowed = "`" + strings.Join(property.Enum, "`, `") + "`"
		}
		if allowed == description {
			allowed = ""
		}
		if inner && !concrete(path) {
			if description != "" {
				fmt.Fprintf(t.page, "| `%s` | | | %s |\n", path, cell(description))
			}
			if err := t.rows(path+".", value, property, group+description); err != nil {
				return err
			}
			continue
		}
		fallback, err := inline(value)
		if err != nil {
			return err
		}
		fmt.Fprintf(t.page, "| `%s` | %s | %s | %s |\n", path, code(fallback), cell(allowed), cell(description))
	}
	return nil
}

// concrete reports whether a map is one value rather than a group of values.
func concrete(path string) bool { return strings.HasSuffix(path, "resources") }

func resolve(s schema, defs map[string]schema) schema {
	if name, is := strings.CutPrefix(s.Ref, "#/$defs/"); is {
		return defs[name]
	}
	return s
}

// comment returns a comment without its marks, and without example lines of the value itself.
func comment(head, key string) string {
	var paragraph []string
	// Of several comments with blank lines between them, the last one belongs to the key.
	for line := range strings.Lines(head[strings.LastIndex(head, "\n\n")+1:]) {
		text := strings.TrimPrefix(strings.TrimSpace(line), "#")
		line = strings.TrimSpace(text)
		switch {
		case strings.HasPrefix(line, key+": "):
		case strings.HasPrefix(text, "   "):
			paragraph = append(paragraph, "`"+line+"`")
		default:
			paragraph = append(paragraph, line)
		}
	}
	return strings.TrimSpace(strings.Join(paragraph, " "))
}

// inline returns a default on one line.
func inline(node *yaml.Node) (string, error) {
	var value any
	if err := node.Decode(&value); err != nil {
		return "", err
	}
	if text, is := value.(string); is {
		return text, nil
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	text := strings.TrimSpace(out.String())
	if len(text) > 120 {
		text = "see values.yaml"
	}
	return text, err
}
