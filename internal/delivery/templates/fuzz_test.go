package templates

import (
	"testing"
)

// FuzzFill fills templates of tenants. The result is bounded, and so is the work.
func FuzzFill(f *testing.F) {
	for _, seed := range []string{
		"${ .ClusterName }", `${ range $i, $e := until 100000 }x${ end }`,
		`${ define "a" }${ template "a" . }${ end }${ template "a" . }`,
		`${ repeat 1000000 "x" }`, `${ regexReplaceAll "(a*)*b" .ClusterName "x" }`,
		`${ .ClusterLabels.env | upper | quote }`, "${ if", "${ env `HOME` }",
		`${ printf "%99999999d" 1 }`, `${ toJson .ClusterValues | b64enc | trunc 5 }`,
		`${ genPrivateKey "rsa" }`, `${ with .ClusterValues.a }${ . }${ end }`,
	} {
		f.Add(seed)
	}
	data := map[string]any{
		"ClusterName": "edge-1", "ClusterNamespace": "clusters", "ClusterLabels": map[string]any{"env": "dev"},
		"ClusterValues": map[string]any{"a": map[string]any{"b": []any{1, "2"}}},
	}
	f.Fuzz(func(t *testing.T, text string) {
		_ = With(func(filler *Filler) error {
			filled, err := filler.Fill(text, data)
			if len(filled) > 4<<20 {
				t.Errorf("a template of %d bytes fills %d", len(text), len(filled))
			}
			if err != nil && len(err.Error()) > 2*maxError {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			return err
		})
	})
}
