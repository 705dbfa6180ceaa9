package fleetyaml

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/muster-fleet/muster/internal/nearest"
)

// maxErrors bounds the errors of one file.
const maxErrors = 10

// checker compares a tree of YAML with a type of Go.
type checker struct {
	file string
	errs []error
}

func (c *checker) fail(at *yaml.Node, format string, args ...any) {
	if len(c.errs) < maxErrors {
		c.errs = append(c.errs, fmt.Errorf("%s:%d: %s", c.file, at.Line, fmt.Sprintf(format, args...)))
	}
}

// check compares a value with its type. The field is its path, for errors.
func (c *checker) check(field string, value *yaml.Node, want reflect.Type) {
	for want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	if value.Kind == yaml.DocumentNode {
		value = value.Content[0]
	}
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	if value.Tag == "!!null" {
		return
	}
	switch want {
	case reflect.TypeFor[runtime.RawExtension]():
		c.kind(field, value, yaml.MappingNode, "a map")
		return
	case reflect.TypeFor[intstr.IntOrString]():
		if value.Tag != "!!int" && value.Tag != "!!str" {
			c.fail(value, "%s is a number or a percentage in quotes", field)
		}
		return
	case reflect.TypeFor[metav1.Duration]():
		want = reflect.TypeFor[string]()
	}
	switch want.Kind() {
	case reflect.Struct:
		if c.kind(field, value, yaml.MappingNode, "a map") {
			c.fields(field, value, fieldsOf(want))
		}
	case reflect.Map:
		if c.kind(field, value, yaml.MappingNode, "a map") {
			c.entries(field, value, want.Elem())
		}
	case reflect.Slice:
		if c.kind(field, value, yaml.SequenceNode, "a list") {
			for i, entry := range value.Content {
				c.check(fmt.Sprintf("%s[%d]", field, i), entry, want.Elem())
			}
		}
	default:
		c.scalar(field, value, want)
	}
}

func (c *checker) kind(field string, value *yaml.Node, want yaml.Kind, words string) bool {
	if value.Kind != want {
		if field == "" {
			field = "the document"
		}
		c.fail(value, "%s is %s here, and must be %s", field, kindOf(value), words)
	}
	return value.Kind == want
}

func kindOf(value *yaml.Node) string {
	collections := map[yaml.Kind]string{yaml.MappingNode: "a map", yaml.SequenceNode: "a list"}
	if name := collections[value.Kind]; name != "" {
		return name
	}
	switch value.Tag {
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!timestamp":
		return "a time"
	}
	return "a text"
}

// fields checks the keys of a map against the fields of a struct.
func (c *checker) fields(field string, value *yaml.Node, fields map[string]reflect.Type) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(value.Content); i += 2 {
		key, entry := value.Content[i], value.Content[i+1]
		if key.Tag == "!!merge" {
			for _, merged := range mergedInto(entry) {
				c.fields(field, merged, fields)
			}
			continue
		}
		path := join(field, key.Value)
		want, found := fields[key.Value]
		remedy := refused[path]
		switch {
		case seen[key.Value]:
			c.fail(key, "the key %s occurs twice", path)
		case !found:
			c.fail(key, "unknown key %s%s", path, nearest.Question(key.Value, keysOf(fields)))
		case remedy != "":
			c.fail(key, "a fleet.yaml has no key %s: %s", path, remedy)
		default:
			c.check(path, entry, want)
		}
		seen[key.Value] = true
	}
}

func (c *checker) entries(field string, value *yaml.Node, want reflect.Type) {
	for i := 0; i+1 < len(value.Content); i += 2 {
		key, entry := value.Content[i], value.Content[i+1]
		if key.Tag == "!!merge" {
			for _, merged := range mergedInto(entry) {
				c.entries(field, merged, want)
			}
			continue
		}
		c.check(join(field, key.Value), entry, want)
	}
}

// mergedInto returns the maps named by the value of a merge key `<<`.
func mergedInto(value *yaml.Node) (maps []*yaml.Node) {
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	if value.Kind == yaml.MappingNode {
		return []*yaml.Node{value}
	}
	for _, entry := range value.Content {
		maps = append(maps, mergedInto(entry)...)
	}
	return maps
}

// booleans are the texts read as true or false by Kubernetes' reader of YAML.
var booleans = []string{"y", "n", "yes", "no", "on", "off"}

func (c *checker) scalar(field string, value *yaml.Node, want reflect.Type) {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	plain := value.Kind == yaml.ScalarNode && value.Style&quoted == 0
	boolean := value.Tag == "!!bool" || plain && slices.Contains(booleans, strings.ToLower(value.Value))
	switch want.Kind() { //nolint:exhaustive // the schema has no other kinds
	case reflect.Interface:
	case reflect.Bool:
		if !boolean {
			c.fail(value, "%s is %s here, and must be true or false", field, kindOf(value))
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		if value.Tag != "!!int" {
			c.fail(value, "%s is %s here, and must be a whole number", field, kindOf(value))
		}
	case reflect.String:
		switch {
		case value.Kind != yaml.ScalarNode:
			c.fail(value, "%s is %s here, and must be a text", field, kindOf(value))
		case boolean || value.Tag != "!!str":
			c.fail(value, "%s must be a text: write %q, with the quotes", field, value.Value)
		}
	}
}

func join(field, key string) string {
	if field == "" {
		return key
	}
	return field + "." + key
}

// fieldsOf returns the types of a struct's fields by their keys, also of embedded structs.
func fieldsOf(kind reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := range kind.NumField() {
		field := kind.Field(i)
		key, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && (key == "" || options == "inline") {
			for name, inner := range fieldsOf(field.Type) {
				fields[name] = inner
			}
		} else if key != "" && key != "-" {
			fields[key] = field.Type
		}
	}
	return fields
}

func keysOf(fields map[string]reflect.Type) []string {
	var keys []string
	for key := range fields {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
