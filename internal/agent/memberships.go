package agent

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
)

// membershipsKey is the key of the ConfigMap muster-hub-term with the memberships at the hub.
const membershipsKey = "memberships"

// maxMemberships is the number of remembered memberships; maxMembershipsText bounds their text.
const maxMemberships, maxMembershipsText = 8, 2048

// membershipAt is a membership at a hub, on one of the clusters that this hub has had. A hub that
// muster restore created on another cluster has the same key, and gives its members other reports.
type membershipAt struct {
	// Report is the UID of the report, Cluster the signed UID of the cluster of the hub.
	Report  string `json:"report"`
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

// valid reports whether a membership fits into labels, as UIDs do.
func (m membershipAt) valid() bool {
	fits := func(uid string) bool { return uid != "" && len(validation.IsValidLabelValue(uid)) == 0 }
	return fits(m.Report) && fits(m.Cluster)
}

// lostMemberships returns the UIDs of the reports of memberships at the same hub, on another
// cluster than its present one. This hub has been restored since, and may not know their
// deliveries.
func lostMemberships(list []membershipAt, cluster string) (reports []string) {
	present := func(report string) bool { return slices.Contains(list, membershipAt{Report: report, Cluster: cluster}) }
	for _, m := range list {
		if m.Cluster != cluster && !present(m.Report) {
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
