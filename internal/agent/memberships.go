package agent

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
)

// membershipsKey is the key of the ConfigMap muster-hub-term with the memberships at the hub.
const membershipsKey = "memberships"

// maxMemberships is the number of remembered memberships; maxMembershipsText bounds their text.
const maxMemberships, maxMembershipsText = 8, 4096

// membershipAt is a membership at a hub, on one of the clusters that this hub has had. A hub that
// muster restore created on another cluster has the same key, and gives its members other reports.
type membershipAt struct {
	// Report is the UID of the report. Hub names the key of the hub, and Cluster is the UID of its
	// cluster, both from its signed term.
	Report  string `json:"report"`
	Hub     string `json:"hub"`
	Cluster string `json:"cluster"`
}

// remember adds a membership to a list, and drops the oldest ones of a long list.
func remember(list []membershipAt, m membershipAt) []membershipAt {
	if slices.Contains(list, m) || !m.valid() {
		return list
	}
	list = append(slices.Clone(list), m)
	return list[max(0, len(list)-maxMemberships):]
}

// membershipIn returns the membership of a report at the hub with a term.
func membershipIn(report types.UID, at *clusterv1beta1.HubTerm) membershipAt {
	return membershipAt{Report: string(report), Hub: credential.Fingerprint(at.Hub), Cluster: at.Cluster}
}

// valid reports whether all parts of a membership fit into labels, as UIDs do.
func (m membershipAt) valid() bool {
	for _, part := range []string{m.Report, m.Hub, m.Cluster} {
		if part == "" || len(validation.IsValidLabelValue(part)) > 0 {
			return false
		}
	}
	return true
}

// lostMemberships returns the UIDs of the reports of memberships at the hub with a term, on another
// cluster than its present one. This hub has been restored since, and may not know their
// deliveries.
func lostMemberships(list []membershipAt, now *clusterv1beta1.HubTerm) (reports []string) {
	for _, m := range list {
		present := membershipIn(types.UID(m.Report), now)
		if m.Hub == present.Hub && m.Cluster != present.Cluster && !slices.Contains(list, present) {
			reports = append(reports, m.Report)
		}
	}
	return reports
}

// decodeMemberships reads the text of a list. A user of the namespace of the agent can change it.
func decodeMemberships(text string) (list []membershipAt, err error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > maxMembershipsText {
		return nil, fmt.Errorf("it has %d bytes, and the limit is %d", len(text), maxMembershipsText)
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("decoding it: %w", err)
	}
	list = slices.DeleteFunc(list, func(m membershipAt) bool { return !m.valid() })
	return list[max(0, len(list)-maxMemberships):], nil
}

func encodeMemberships(list []membershipAt) string {
	text, err := json.Marshal(list)
	if err != nil {
		panic(err) // plain data: a mistake in this program
	}
	return string(text)
}
