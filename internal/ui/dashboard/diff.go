package dashboard

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/redaction"
)

// mostDifferences limits the differences of one object on a page.
const mostDifferences = 30

// difference is a changed field of an object on a member: the value there, and the wanted one.
// Either may be empty.
type difference struct{ Path, Member, Wanted string }

// value returns a value as shown for an object of a kind. Values of Secrets are hidden, as by
// muster support-bundle.
func value(kind, text string) string {
	if text != "" && kind == "Secret" {
		return redaction.Mark
	}
	return redaction.Text(text)
}

// detailDiff returns the differences reported by a Work.
func detailDiff(kind string, details []placement.PatchDetail) (differences []difference) {
	for _, d := range details[:min(mostDifferences, len(details))] {
		differences = append(differences, difference{d.Path, value(kind, d.ValueInMember), value(kind, d.ValueInHub)})
	}
	return differences
}

// patchDiff returns the fields of a merge patch to undo a change on a member. The patch has the
// wanted values only: null removes a field unknown to the Bundle.
func patchDiff(kind, patch string) (differences []difference) {
	var fields any
	if json.Unmarshal([]byte(patch), &fields) != nil {
		return nil
	}
	differences = flattened(kind, "", fields)
	return differences[:min(mostDifferences, len(differences))]
}

// flattened returns the leaves of a patch in the order of their paths.
func flattened(kind, path string, fields any) (leaves []difference) {
	switch fields := fields.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			leaves = append(leaves, flattened(kind, path+"."+key, fields[key])...)
		}
		return leaves
	case nil:
		return []difference{{Path: path, Member: "set on the member only"}}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		text = fmt.Append(nil, fields)
	}
	return []difference{{Path: path, Wanted: value(kind, string(text))}}
}
