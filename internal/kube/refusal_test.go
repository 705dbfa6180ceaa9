package kube

import (
	"strings"
	"testing"
)

func TestTheCauseOfARefusalIsNotCutOff(t *testing.T) {
	long := strings.Repeat("x", 200)
	const typed = ": expected string, got &value.valueUnstructured{Value:"
	const other = ": expected string, got a value of another type"
	for name, c := range map[string]struct{ message, want string }{
		"a short value":     {`a: Invalid value: "B": no`, `a: Invalid value: "B": no`},
		"a long text":       {`a: Invalid value: "` + long + `": no`, `a: Invalid value: "...": no`},
		"a quoted quote":    {`a: Invalid value: "` + long + `\": {": no`, `a: Invalid value: "...": no`},
		"a structure":       {`a: Invalid value: {"a":{"b":"` + long + `}"}}: field is immutable`, `a: Invalid value: {...}: field is immutable`},
		"a list":            {`a: Invalid value: ["` + long + `"]: may not change`, `a: Invalid value: {...}: may not change`},
		"a structure of Go": {`a: Invalid value: core.Spec{A:"` + long + `", B:[]int{1}}: no`, `a: Invalid value: {...}: no`},
		"a short word":      {`a: Invalid value: 5: must be less`, `a: Invalid value: 5: must be less`},
		"two":               {`[a: Invalid value: {"` + long + `":1}; b: Invalid value: 2]`, `[a: Invalid value: {...}; b: Invalid value: 2]`},
		"without an end":    {`a: Invalid value: "` + long, `a: Invalid value: "..."`},
		"at the end":        {`a: Invalid value: `, `a: Invalid value: `},
		"none":              {`configmaps "a" is forbidden`, `configmaps "a" is forbidden`},
		"a type error":      {`.a` + typed + `4711}`, `.a` + other},
		"two type errors":   {`errors: .a` + typed + `1} .b` + typed + `"} x"}`, `errors: .a` + other + ` .b` + other},
		"lines of errors":   {"errors:\n  .a" + typed + "1}\n  .b: x", "errors:\n  .a" + other + "\n  .b: x"},
		"a map":             {`.a` + typed + `map[string]interface {}{"b":1}}`, `.a` + other},
	} {
		if got := ShortenValues(c.message); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func FuzzShortenValues(f *testing.F) {
	f.Add(`a: Invalid value: {"b": "c"}: no`)
	f.Add(`Invalid value: "\`)
	f.Fuzz(func(t *testing.T, message string) {
		if short := ShortenValues(message); len(short) > len(message)+len(message) {
			t.Errorf("%q becomes %q", message, short)
		}
	})
}
