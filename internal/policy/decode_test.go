package policy

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"

	"github.com/muster-fleet/muster/api/crds"
	"github.com/muster-fleet/muster/internal/hub/server"
)

// decoding finds what the API server stores and a program cannot read.
type decoding struct {
	t      *testing.T
	scheme *runtime.Scheme
	kind   schema.GroupVersionKind
	tried  int
}

// TestWhatTheAPIServerStoresCanBeRead tries values that each field's schema may permit. A client
// lists whole kinds. One object that it cannot decode, from any writer, keeps it from reading the
// others.
func TestWhatTheAPIServerStoresCanBeRead(t *testing.T) {
	files, err := crds.FS.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	d := decoding{t: t, scheme: server.NewScheme()}
	for _, file := range files {
		data, err := crds.FS.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(data, &definition); err != nil {
			t.Fatal(err)
		}
		for _, version := range definition.Spec.Versions {
			d.kind = schema.GroupVersionKind{Group: definition.Spec.Group, Version: version.Name, Kind: definition.Spec.Names.Kind}
			if d.scheme.Recognizes(d.kind) {
				d.fields(version.Schema.OpenAPIV3Schema, "", func(value any) any { return value })
			}
		}
	}
	if d.tried < 10_000 {
		t.Errorf("%d values were tried only", d.tried)
	}
}

// fields tries values of all fields of a schema. within puts one into an object.
func (d *decoding) fields(of *apiextensionsv1.JSONSchemaProps, path string, within func(any) any) {
	for name, property := range of.Properties {
		if path == "" && name == "metadata" {
			continue
		}
		d.fields(&property, path+"."+name, func(value any) any { return within(map[string]any{name: value}) })
	}
	if of.Items != nil {
		d.fields(of.Items.Schema, path+"[]", func(value any) any { return within([]any{value}) })
	}
	if of.AdditionalProperties != nil && of.AdditionalProperties.Schema != nil {
		d.fields(of.AdditionalProperties.Schema, path+".*", func(value any) any { return within(map[string]any{"a": value}) })
	}
	if path == "" {
		return
	}
	data, err := json.Marshal(of)
	if err != nil {
		d.t.Fatal(err)
	}
	var rules spec.Schema
	if err := json.Unmarshal(data, &rules); err != nil {
		d.t.Fatal(err)
	}
	validator := validate.NewSchemaValidator(&rules, nil, "", strfmt.Default)
	// An expression that the API server evaluates permits only durations that can be read.
	isDuration := slices.ContainsFunc(of.XValidations, func(rule apiextensionsv1.ValidationRule) bool {
		return strings.Contains(rule.Rule, "duration(self)")
	})
	for _, value := range candidates {
		if text, ok := value.(string); ok && isDuration {
			if _, err := time.ParseDuration(text); err != nil {
				continue
			}
		}
		if !validator.Validate(value).IsValid() {
			continue
		}
		if value == zeroTime && of.Format == "date-time" {
			d.t.Errorf("the schema of %s %s permits the zero time, which a program writes back as null", d.kind, path)
		} else {
			d.decodes(path, value, within(value))
		}
	}
}

const zeroTime = "0001-01-01T00:00:00Z"

// candidates are values as a JSON decoder of the API server yields them.
var candidates = append([]any{
	int64(0), int64(-1), int64(math.MaxInt32) + 1, int64(math.MinInt32) - 1, int64(math.MaxInt64), int64(math.MinInt64),
	1e30, -1e30, 1.5, 1e300,
	true, map[string]any{}, []any{}, []any{"a"}, []any{"a", "a"}, []any{int64(1)}, []any{int64(1000)},
}, texts()...)

func texts() (all []any) {
	for _, text := range []string{
		"", "a", "a/b", "true", "1", "-1", "1.5", "10%", "1e9", "1e999999999", "1Ki", "9223372036854775808", "-", "+", "1s", "1h", "1h30m0s",
		"1m1h", "-1h", "1y", "99999999h", "abc", "{}", "null",
		"YQ==", "YQ", "YQ=", "YQ==\n", "Y Q==", "_-8=", "====",
		"2026-01-01T00:00:00Z", "0000-01-01T00:00:00Z", zeroTime, "9999-12-31T23:59:59Z", "2026-01-01T00:00:00.1Z", "2026-01-01T00:00:00.000000Z",
		"2026-01-01T00:00:00.123456789012345Z", "2026-01-01T00:00:00+02:00", "2026-01-01T00:00:00.000000-23:59", "2026-01-01T00:00:00+99:99",
		"2026-01-01T00:00:00-24:00",
		"2026-01-01t00:00:00z", "2026-01-01T00:00:00z", "2026-01-01t00:00:00Z", "2026-01-01T00:00:00x1Z", "2026-01-01T00:00:00,1Z",
		"2026-01-01T00:00:00Zt", "2026-01-01T00:00:00ZTrest",
		"2026-02-30T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T23:59:60Z", "2026-01-01 00:00:00Z", "2026-01-01",
	} {
		all = append(all, text)
	}
	return append(all, strings.Repeat("9", 64))
}

func (d *decoding) decodes(path string, value, object any) {
	d.tried++
	data, err := json.Marshal(object)
	if err != nil {
		d.t.Fatal(err)
	}
	into, err := d.scheme.New(d.kind)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		d.t.Errorf("the schema of %s %s permits %s, which cannot be read: %v",
			d.kind, strings.TrimPrefix(path, "."), fmt.Sprintf("%T(%.40v)", value, value), err)
	}
}
