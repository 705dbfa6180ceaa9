package hub_test

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// hostile makes values that a tenant may choose to harm others.
type hostile struct {
	// requiredOnly leaves out of objects what their schema does not require.
	requiredOnly bool
	// texts are hostile strings. Those that name objects of another tenant come first.
	texts []string
}

// newHostile returns the values by which a tenant attacks the objects with these names.
func newHostile(names ...string) hostile {
	return hostile{texts: append(names,
		strconv.FormatInt(math.MaxInt64, 10), strconv.FormatInt(math.MinInt64, 10), "../../"+names[0], "%2e%2e%2f"+names[0],
		"a/b", "..", "", "true", "x",
		strings.Repeat("x", 253), strings.Repeat("x", 60_000))}
}

// text returns a hostile string that a schema permits; false if there is none.
func (h hostile) text(schema *apiextensionsv1.JSONSchemaProps, variant int) (any, bool) {
	switch schema.Format {
	case "date-time":
		return []string{"0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"}[variant%2], true
	case "byte":
		return base64.StdEncoding.EncodeToString([]byte(h.texts[variant%len(h.texts)])), true
	}
	pattern := regexp.MustCompile("")
	if schema.Pattern != "" {
		pattern = regexp.MustCompile(schema.Pattern)
	}
	for i := range h.texts { // the variant, or the next one that is permitted
		value := h.texts[(variant+i)%len(h.texts)]
		if schema.MaxLength != nil && int64(len(value)) > *schema.MaxLength {
			value = value[:*schema.MaxLength]
		}
		if pattern.MatchString(value) && (schema.MinLength == nil || int64(len(value)) >= *schema.MinLength) {
			return value, true
		}
	}
	return nil, false
}

// number returns an extreme that a schema permits.
func (h hostile) number(schema *apiextensionsv1.JSONSchemaProps, variant int) int64 {
	low, high := int64(math.MinInt64), int64(math.MaxInt64)
	if schema.Format == "int32" {
		low, high = math.MinInt32, math.MaxInt32
	}
	if schema.Minimum != nil {
		low = int64(*schema.Minimum)
	}
	if schema.Maximum != nil {
		high = int64(*schema.Maximum)
	}
	return []int64{high, low, max(low, min(high, 0)), max(low, min(high, -1))}[variant%4]
}

// of returns a value with all fields of a schema; false if it has no value that the schema permits.
func (h hostile) of(schema *apiextensionsv1.JSONSchemaProps, variant int) (any, bool) {
	if len(schema.Enum) > 0 {
		var value any
		err := json.Unmarshal(schema.Enum[variant%len(schema.Enum)].Raw, &value)
		return value, err == nil
	}
	if schema.XIntOrString && variant%2 == 0 {
		return h.number(schema, variant/2), true
	}
	switch schema.Type {
	case "integer":
		return h.number(schema, variant), true
	case "number":
		return float64(h.number(schema, variant)), true
	case "boolean":
		return variant%2 == 0, true
	case "array":
		item, ok := h.of(schema.Items.Schema, variant)
		return []any{item}, ok
	case "object":
		return h.object(schema, variant), true
	case "string":
		return h.text(schema, variant)
	}
	return h.texts[variant%len(h.texts)], true // of any type
}

func (h hostile) object(schema *apiextensionsv1.JSONSchemaProps, variant int) map[string]any {
	made := map[string]any{}
	for name, property := range schema.Properties {
		if h.requiredOnly && !slices.Contains(schema.Required, name) {
			continue
		}
		if value, ok := h.of(&property, variant); ok {
			made[name] = value
		}
	}
	if more := schema.AdditionalProperties; more != nil && more.Schema != nil {
		if value, ok := h.of(more.Schema, variant); ok {
			made["a"] = value
		}
	}
	if schema.XPreserveUnknownFields != nil && len(schema.Properties) == 0 {
		made["a"] = h.texts[variant%len(h.texts)]
	}
	return made
}

// only returns an object with what a schema requires, and one more field whole.
func (h hostile) only(schema *apiextensionsv1.JSONSchemaProps, field string, variant int) map[string]any {
	made := hostile{texts: h.texts, requiredOnly: true}.object(schema, variant)
	if property, found := schema.Properties[field]; found {
		if value, ok := h.of(&property, variant); ok {
			made[field] = value
		}
	}
	return made
}

// step is one part of the path of a field: its name, or its place in a list.
var step = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

// without takes the field with this path out of an object. A path that the object does not have
// takes out what the object has of it.
func without(object map[string]any, path string) bool {
	var parents []map[string]any
	var names []string
	var at any = object
	for _, part := range step.FindAllString(path, -1) {
		name := strings.Trim(part, "[]\"")
		switch value := at.(type) {
		case map[string]any:
			if _, found := value[name]; !found {
				return cut(parents, names)
			}
			parents, names, at = append(parents, value), append(names, name), value[name]
		case []any:
			place, err := strconv.Atoi(name)
			if err != nil || place >= len(value) {
				return cut(parents, names)
			}
			at = value[place]
		default:
			return cut(parents, names)
		}
	}
	return cut(parents, names)
}

// cut takes the last of these fields out of its parent.
func cut(parents []map[string]any, names []string) bool {
	if len(names) < 2 {
		return false // the whole spec
	}
	delete(parents[len(parents)-1], names[len(names)-1])
	return true
}
