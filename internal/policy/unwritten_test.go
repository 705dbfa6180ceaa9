package policy

// unwrittenPackages lists packages whose comments do not pass yet. The list may only shrink:
// TestCommentsArePlainEnglish fails where a package of the list passes.
var unwrittenPackages = []string{
	"api/cluster/v1beta1",
	"api/fleet/v1alpha1",
	"api/inventory/v1alpha1",
	"api/limits",
	"api/muster/v1alpha1",
	"api/placement/v1beta1",
	"internal/hub/bundles/agentbundle",
	"internal/hub/bundles/agentchart",
	"internal/hub/bundles/bundle",
	"internal/hub/bundles/clustergroup",
	"internal/hub/bundles/contentaccess",
	"internal/hub/bundles/rollup",
	"internal/hub/bundles/templates",
	"internal/hub/joining/expression",
	"internal/hub/joining/token",
	"internal/hub/members/inventory",
	"internal/hub/placement",
	"internal/hub/placement/staged",
	"internal/policy",
	"internal/testbrowser",
	"internal/ui/cli",
	"internal/ui/explain",
	"internal/ui/view",
}
