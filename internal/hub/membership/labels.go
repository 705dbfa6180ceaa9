package membership

import (
	"slices"
	"strings"
)

// reservedPrefixes are those of labels that fleets themselves act on.
var reservedPrefixes = []string{"fleet.cattle.io/", "management.cattle.io/", "kubernetes-fleet.io/"}

// ReservedLabel says whether a label of a record means something to a fleet, so that no agent may set it and no consumer is shown it.
func ReservedLabel(key string) bool {
	return slices.ContainsFunc(reservedPrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}
