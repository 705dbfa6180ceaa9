package release

import (
	"strings"
	"testing"
	"time"
)

func TestANamespaceIsDeletedOnlyWhenAllOfItIsKnown(t *testing.T) {
	s := Summary{Name: "web", Namespace: "shop"}
	const metrics = "APIService v1.example.com is not available: no endpoints"
	for name, row := range map[string]struct {
		holds         contents
		waited        time.Duration
		stays, failed string
	}{
		"one that holds nothing else":                    {contents{}, 0, "", ""},
		"one that holds an object of another":            {contents{other: "ConfigMap mine"}, 0, "it holds ConfigMap mine", ""},
		"one of which a part of the API cannot be asked": {contents{unasked: []string{metrics}}, patience - time.Second, "", metrics},
		"the same when that has lasted":                  {contents{unasked: []string{metrics}}, patience, metrics, ""},
		"one that holds an object, whatever cannot be asked": {
			contents{other: "ConfigMap mine", unasked: []string{metrics}}, 0, "it holds ConfigMap mine", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			stays, err := row.holds.verdict(s, row.waited)
			if (stays == "") != (row.stays == "") || !strings.Contains(stays, row.stays) {
				t.Errorf("stays: %q, want %q", stays, row.stays)
			}
			if (err == nil) != (row.failed == "") || err != nil && !strings.Contains(err.Error(), row.failed) {
				t.Errorf("error: %v, want %q", err, row.failed)
			}
		})
	}
}
