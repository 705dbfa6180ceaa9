package release

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// crdOf returns a definition with these versions, "v1!" for one that is not served, and a field.
func crdOf(t *testing.T, field string, versions ...string) *unstructured.Unstructured {
	t.Helper()
	const version = "  - {name: %s, served: %t, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {%s: {type: string}}}}}\n"
	text := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.org}\n" +
		"spec:\n  group: example.org\n  scope: Namespaced\n  names: {kind: Thing, plural: things}\n  versions:\n"
	for i, one := range versions {
		name, unserved := strings.CutSuffix(one, "!")
		text += fmt.Sprintf(version, name, !unserved, i == len(versions)-1, field)
	}
	objects, err := parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects[0]
}

// onMember returns a definition as a member has it.
func onMember(t *testing.T, field string, stored []string, edit func(*unstructured.Unstructured),
	versions ...string) *unstructured.Unstructured {
	t.Helper()
	found := crdOf(t, field, versions...)
	for path, value := range map[string]any{"names.listKind": "ThingList", "names.singular": "thing", "conversion.strategy": "None"} {
		if err := unstructured.SetNestedField(found.Object, value, append([]string{"spec"}, strings.Split(path, ".")...)...); err != nil {
			t.Fatal(err)
		}
	}
	if err := unstructured.SetNestedStringSlice(found.Object, stored, "status", "storedVersions"); err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(found)
	}
	return found
}

// writtenBy returns an edit that adds managed fields of a manager.
func writtenBy(manager, fields string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		object.Object["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{
			"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fieldsOfJSON(fields),
		}}
	}
}

func fieldsOfJSON(text string) map[string]any {
	fields := map[string]any{}
	for _, step := range slices.Backward(strings.Split(text, ".")) {
		fields = map[string]any{step: fields}
	}
	return fields
}

func TestADefinitionOfAChartIsDecidedBySettingOwnerAndStoredVersions(t *testing.T) {
	id := ID{Namespace: "shop", Name: "web"}
	own := func(object *unstructured.Unstructured) {
		Mark(object, id)
		put(object.GetAnnotations(), "helm.sh/resource-policy", "keep", object.SetAnnotations)
	}
	before := func(object *unstructured.Unstructured) { Mark(object, ID{Namespace: "shop", Name: "before"}) }
	other := func(object *unstructured.Unstructured) { Mark(object, ID{Namespace: "shop", Name: "other"}) }
	deleting := func(object *unstructured.Unstructured) {
		object.Object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-11-27T10:00:00Z"
	}
	owned := func(object *unstructured.Unstructured) {
		object.Object["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{
			"apiVersion": "v1", "kind": "AppliedWork", "name": "a", "uid": "u"}}
	}
	user, program := writtenBy("kubectl", "f:spec.f:versions"), writtenBy(FieldManager, "f:spec.f:versions")
	injector := writtenBy("cainjector", "f:spec.f:conversion.f:webhook.f:clientConfig.f:caBundle")
	live := func(field string, stored []string, edit func(*unstructured.Unstructured), versions ...string) *unstructured.Unstructured {
		return onMember(t, field, stored, edit, versions...)
	}
	const create, replace, skip = fleet.CRDsCreate, fleet.CRDsCreateReplace, fleet.CRDsSkip
	v1, both := []string{"v1"}, []string{"v1", "v2"}
	wanted := crdOf(t, "b", "v1")
	for name, row := range map[string]struct {
		wanted, found *unstructured.Unstructured
		setting       string
		takes         bool
		want          crdStep
		refused       string
	}{
		"a missing one is created":                            {wanted, nil, create, false, crdCreated, ""},
		"a missing one is created, too, where others go":      {wanted, nil, replace, false, crdCreated, ""},
		"a missing one is left":                               {wanted, nil, skip, false, crdLeft, ""},
		"the same one is left, whosever it is":                {wanted, live("b", v1, other, "v1"), replace, true, crdLeft, ""},
		"the same one of the release is left":                 {wanted, live("b", v1, own, "v1"), replace, false, crdLeft, ""},
		"the same one of nobody is marked for a taker":        {wanted, live("b", v1, nil, "v1"), replace, true, crdMarked, ""},
		"the same one of nobody is left otherwise":            {wanted, live("b", v1, nil, "v1"), replace, false, crdLeft, ""},
		"one from before a move is marked":                    {wanted, live("a", v1, before, "v1"), create, false, crdMarked, ""},
		"one from before a move is replaced":                  {wanted, live("a", v1, before, "v1"), replace, false, crdReplaced, ""},
		"another one of the release is left":                  {wanted, live("a", v1, own, "v1"), create, true, crdLeft, ""},
		"another one is skipped":                              {wanted, live("a", v1, own, "v1"), skip, true, crdLeft, ""},
		"another one of the release is replaced":              {wanted, live("a", v1, own, "v1"), replace, false, crdReplaced, ""},
		"another one of nobody is replaced for a taker":       {wanted, live("a", v1, nil, "v1"), replace, true, crdReplaced, ""},
		"another one of nobody is refused":                    {wanted, live("a", v1, nil, "v1"), replace, false, "", "set helm.takeOwnership"},
		"one of another release is refused":                   {wanted, live("a", v1, other, "v1"), replace, true, "", "release shop/other"},
		"one of another release is left":                      {wanted, live("a", v1, other, "v1"), create, true, crdLeft, ""},
		"one with an owner is refused":                        {wanted, live("a", v1, owned, "v1"), replace, true, "", "AppliedWork a"},
		"one that a user wrote is refused":                    {wanted, live("a", v1, user, "v1"), replace, true, "", "field manager kubectl"},
		"one that this program wrote is of nobody":            {wanted, live("a", v1, program, "v1"), replace, true, crdReplaced, ""},
		"an injector owns a certificate only":                 {wanted, live("a", v1, injector, "v1"), replace, true, crdReplaced, ""},
		"one in deletion is waited for":                       {wanted, live("a", v1, deleting, "v1"), create, false, "", "is being deleted"},
		"one in deletion does not matter where it is skipped": {wanted, live("a", v1, deleting, "v1"), skip, false, crdLeft, ""},
		"a stored version must not go": {
			crdOf(t, "b", "v2"), live("a", both, own, "v1", "v2"), replace, false, "", "no longer serves v1",
		},
		"a stored version must be served on": {
			crdOf(t, "b", "v1!", "v2"), live("a", both, own, "v1", "v2"), replace, false, "", "no longer serves v1",
		},
		"a stored version that was not served need not be": {
			crdOf(t, "b", "v1!", "v2"), live("a", both, own, "v1!", "v2"), replace, false, crdReplaced, "",
		},
		"a version that is not stored may go": {
			crdOf(t, "b", "v2"), live("a", []string{"v2"}, own, "v1", "v2"), replace, false, crdReplaced, "",
		},
		"a dropped version does not matter where it is left": {
			crdOf(t, "b", "v2"), live("a", both, own, "v1", "v2"), create, false, crdLeft, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := definition{wanted: row.wanted, found: row.found}
			if d.found != nil {
				var err error
				if d.holder, err = holderOf(d.found, []ID{id, {Namespace: "shop", Name: "before"}}); err != nil {
					t.Fatal(err)
				}
				if d.differs, err = differ(d.wanted, d.found); err != nil {
					t.Fatal(err)
				}
			}
			got, err := decideCRD(d, row.setting, id, row.takes)
			if got != row.want || (err != nil) != (row.refused != "") {
				t.Fatalf("it is %q: %v", got, err)
			}
			if err == nil {
				return
			}
			if !strings.Contains(err.Error(), row.refused) || !strings.Contains(err.Error(), "CustomResourceDefinition things.example.org") {
				t.Errorf("the error is %v", err)
			}
			if conflict := (*CRDConflict)(nil); errors.As(err, &conflict) == strings.Contains(row.refused, "deleted") {
				t.Errorf("the error is a %T", err)
			}
		})
	}
}

func TestAnErrorOfAnOldDefinitionNamesTheSetting(t *testing.T) {
	const (
		typed   = `failed to create typed patch object (t14/one; example.org/v1, Kind=Thing): .spec.b: field not declared in schema`
		strict  = `strict decoding error: unknown field "spec.b"`
		missing = `no matches for kind "Thing" in version "example.org/v1"`
		others  = `no matches for kind "Widget" in version "example.org/v1"`
	)
	for name, row := range map[string]struct {
		setting, text string
		differs       bool
		step          crdStep
		want          string
	}{
		"an unknown field":                    {"", typed, true, crdLeft, "helm.crds is Create"},
		"an unknown field of a strict server": {"", strict, true, crdLeft, "helm.crds is Create"},
		"a version that is missing":           {"", missing, true, crdLeft, "helm.crds is Create"},
		"another kind":                        {"", others, true, crdLeft, ""},
		"a definition as in the chart":        {"", typed, false, crdLeft, ""},
		"a replaced definition":               {fleet.CRDsCreateReplace, typed, true, crdReplaced, ""},
		"a definition that is left to others": {fleet.CRDsSkip, missing, false, crdLeft, "helm.crds is Skip"},
		"another error":                       {"", "forbidden", true, crdLeft, ""},
	} {
		b := &bringer{
			request: Request{Options: fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{CRDs: row.setting}}},
			done:    []brought{{definition: definition{wanted: crdOf(t, "b", "v1"), differs: row.differs}, step: row.step}},
		}
		got := b.explain(errors.New(row.text)).Error()
		if !strings.HasPrefix(got, row.text) || (got != row.text) != (row.want != "") || !strings.Contains(got, row.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
