package membernamespace

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestLabelProblem(t *testing.T) {
	for _, c := range []struct {
		name   string
		labels map[string]string
		says   string
	}{
		{"good labels", map[string]string{"env": "dev", "example.com/a": ""}, ""},
		{"a value with a space", map[string]string{"env": "a b"}, `label env has the value "a b"`},
		{"a value that is too long", map[string]string{"env": strings.Repeat("x", 64)}, "label env has the value"},
		{"a key with a space", map[string]string{"a b": "c"}, `label key "a b"`},
	} {
		if got := LabelProblem(c.labels); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: got %q, want %q in it", c.name, got, c.says)
		}
	}
}

func TestStampProblem(t *testing.T) {
	for _, c := range []struct {
		name string
		spec fleet.ClusterRegistrationTokenSpec
		says string
	}{
		{name: "nothing", spec: fleet.ClusterRegistrationTokenSpec{}},
		{name: "an admin's own keys, and the prefix for that", spec: fleet.ClusterRegistrationTokenSpec{
			Labels:           map[string]string{"env": "dev", fleet.LabelPrefixStamped + "tier": "1"},
			AllowedLabelKeys: []string{"team", "example.com/a", "example.com/*"}}},
		{
			name: "a key of the fleet's own", spec: fleet.ClusterRegistrationTokenSpec{Labels: map[string]string{"fleet.cattle.io/cluster": "x"}},
			says: "fleet.cattle.io/cluster among them",
		},
		{
			name: "a value that is none", spec: fleet.ClusterRegistrationTokenSpec{Labels: map[string]string{"env": "a b"}},
			says: `spec.labels: label env has the value "a b"`,
		},
		{
			name: "a pattern that is none", spec: fleet.ClusterRegistrationTokenSpec{AllowedLabelKeys: []string{"env*"}},
			says: `spec.allowedLabelKeys: "env*" is neither`,
		},
		{name: "everything", spec: fleet.ClusterRegistrationTokenSpec{AllowedLabelKeys: []string{"*"}}, says: `"*" is neither`},
	} {
		if got := StampProblem(c.spec); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: got %q, want %q in it", c.name, got, c.says)
		}
	}
}

func TestRestamp(t *testing.T) {
	for _, c := range []struct {
		name                    string
		record                  LabelRecord
		labels, stamps, becomes map[string]string
	}{
		{name: "a first token stamps over what is there", labels: map[string]string{"env": "prod", "a": "b"},
			stamps:  map[string]string{"env": "dev"},
			becomes: map[string]string{"env": "dev", "a": "b"}},
		{name: "a token without labels takes off what another one has stamped", record: LabelRecord{Stamped: map[string]string{"env": "prod"}},
			labels: map[string]string{"env": "prod", "a": "b"}, becomes: map[string]string{"a": "b"}},
		{name: "but not what an admin has changed since", record: LabelRecord{Stamped: map[string]string{"env": "prod"}},
			labels: map[string]string{"env": "canary"}, becomes: map[string]string{"env": "canary"}},
		{name: "another token replaces what the first one has stamped", record: LabelRecord{
			Stamped: map[string]string{"env": "prod", "tier": "1"},
		},
			labels: map[string]string{"env": "prod", "tier": "1"}, stamps: map[string]string{"env": "dev"},
			becomes: map[string]string{"env": "dev"}},
	} {
		if diff := cmp.Diff(c.becomes, c.record.Restamp(c.labels, c.stamps)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
