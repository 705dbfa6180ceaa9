package registration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestAcceptLabels(t *testing.T) {
	pod := map[string]string{fleet.LabelCreatedByAgentPod: "pod"}
	for _, c := range []struct {
		name            string
		asked, accepted map[string]string
		rule            labelRule
		dropped         []string
	}{
		{name: "any label but those that mean something to a fleet",
			asked: map[string]string{"env": "dev", "fleet.cattle.io/cluster": "x", "management.cattle.io/y": "z", "kubernetes-fleet.io/a": "b",
				"muster/c":                   "d",
				fleet.LabelCreatedByAgentPod: "pod"},
			accepted: map[string]string{"env": "dev", fleet.LabelCreatedByAgentPod: "pod"},
			dropped:  []string{"fleet.cattle.io/cluster: has", "kubernetes-fleet.io/a: has", "management.cattle.io/y: has", "muster/c: has"}},
		{name: "none under the prefix of tokens and admins", asked: map[string]string{fleet.LabelPrefixStamped + "env": "prod"},
			dropped: []string{"stamped.muster/env: has a reserved prefix: only administrators set such labels"}},
		{name: "none that some token of the workspace stamps", asked: map[string]string{"env": "prod"}, rule: labelRule{
			stamped: map[string]string{"env": "w/dev"},
		},
			dropped: []string{"env: is stamped by ClusterRegistrationToken w/dev, so no request may bring it"}},
		{name: "what the own token stamps anyhow is nothing to speak of", asked: map[string]string{"env": "dev"},
			accepted: map[string]string{"env": "dev"},
			rule:     labelRule{stamps: map[string]string{"env": "dev"}, stamped: map[string]string{"env": "w/dev"}}},
		{name: "only keys that the token allows, whole or by prefix",
			asked: map[string]string{
				"team": "a", "teams": "b", "example.com/a": "c", "example.com.evil/a": "d", fleet.LabelCreatedByAgentPod: "pod",
			},
			rule:     labelRule{token: "w/t", allowed: []string{"team", "example.com/*"}},
			accepted: map[string]string{"team": "a", "example.com/a": "c", fleet.LabelCreatedByAgentPod: "pod"},
			dropped:  []string{"example.com.evil/a: is not among spec.allowedLabelKeys of ClusterRegistrationToken w/t", "teams: is not among"}},
		{
			name: "a star alone is no prefix", asked: map[string]string{"a/b": "c"}, rule: labelRule{allowed: []string{"*", "a*"}},
			dropped: []string{"a/b: is not among"},
		},
		{name: "a Cluster that exists keeps its labels", asked: map[string]string{"env": "dev", "same": "x"},
			accepted: map[string]string{"same": "x"},
			rule:     labelRule{exists: true, labels: map[string]string{"env": "prod", "same": "x"}},
			dropped:  []string{"env: the Cluster existed before"}},
		{name: "and what it has already is nothing to speak of", asked: map[string]string{"env": "dev", fleet.LabelPrefixStamped + "a": "b"},
			accepted: map[string]string{"env": "dev", fleet.LabelPrefixStamped + "a": "b"},
			rule: labelRule{
				exists: true, allowed: []string{"team"}, labels: map[string]string{"env": "dev", fleet.LabelPrefixStamped + "a": "b"},
			}},
		{name: "none at all if the hub takes none", asked: map[string]string{"env": "dev", fleet.LabelCreatedByAgentPod: "pod"},
			rule:    labelRule{ignored: true},
			dropped: []string{"env: this hub accepts no labels"}},
		{name: "the Pod that asked is another one each time", asked: pod, accepted: pod, rule: labelRule{exists: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.accepted == nil {
				c.accepted = map[string]string{}
			}
			accepted, dropped := acceptLabels(c.asked, c.rule)
			if diff := cmp.Diff(c.accepted, accepted); diff != "" {
				t.Errorf("accepted (-want +got):\n%s", diff)
			}
			if len(dropped) != len(c.dropped) {
				t.Fatalf("dropped %q, want %q", dropped, c.dropped)
			}
			for i, want := range c.dropped {
				if !strings.HasPrefix(dropped[i], want) {
					t.Errorf("dropped %q, want %q", dropped[i], want)
				}
			}
		})
	}
}

func TestWhatIsSaidOfDroppedLabelsIsBounded(t *testing.T) {
	asked := map[string]string{}
	for i := range 1000 {
		asked[fmt.Sprintf("muster/%d%s", i, strings.Repeat("x", 10_000))] = "y"
	}
	_, dropped := acceptLabels(asked, labelRule{})
	if n := len(dropped); n != maxDropped+1 || dropped[n-1] != "and 984 more" {
		t.Errorf("%d are named, the last %q", n, dropped[n-1])
	}
	for _, text := range dropped {
		if len(text) > maxDroppedText+8 {
			t.Errorf("an entry has %d bytes", len(text))
		}
	}
}
