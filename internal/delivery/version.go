package delivery

import (
	"fmt"
	"regexp"
	"strings"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// aPart matches incomplete versions: a number, two of them, or one with a wildcard.
var aPart = regexp.MustCompile(`^v?([0-9]+|[xX*])(\.([0-9]+|[xX*]))?(\.[xX*])?$`)

// CheckChartVersion refuses a chart version with several matches. The result would depend on the
// time of the query, and differ under the same deployment ID. An empty version means the newest.
func CheckChartVersion(options *fleet.HelmOptions) error {
	if options == nil || options.Version == "" {
		return nil
	}
	if version := options.Version; strings.ContainsAny(version, "<>=~^*|, ") || aPart.MatchString(version) {
		return fmt.Errorf("helm.version %q is met by more than one version of chart %s: write the one that is to be deployed, such as 1.2.3",
			version, options.Chart)
	}
	return nil
}
