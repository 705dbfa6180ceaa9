package delivery

import (
	"fmt"
	"regexp"
	"strings"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// aPart is a version of which parts are open: a number, two of them, or one with a wildcard.
var aPart = regexp.MustCompile(`^v?([0-9]+|[xX*])(\.([0-9]+|[xX*]))?(\.[xX*])?$`)

// CheckChartVersion refuses a version of a chart that more than one version meets: what is deployed
// would depend on when a cluster asked, and would be another chart under the same deployment ID.
// None at all means the newest.
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
