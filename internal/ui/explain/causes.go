package explain

// cause is a possible problem, with its remedy.
type cause struct {
	// kinds and reasons identify the cause: the kinds of the objects, and the reasons in their
	// conditions or states.
	kinds, reasons []string
	// means explains the situation, and remedy gives the next steps, in sentences.
	means, remedy string
	// onHub and onMember are commands at the hub and at the member. In them and in the remedy,
	// NAMESPACE and NAME stand for the object's. OBJECT is NAMESPACE/NAME, or NAME without a
	// namespace. TOKEN and SECRET are names for the user to choose.
	onHub, onMember []string
	// aside: nothing is wrong, but a user may want to know.
	aside bool
	// passing: the situation ends by itself, unless another object has a problem.
	passing bool
}

// causes lists all causes in the order of inspection: a later one is often the consequence of an
// earlier one.
var causes = func() (all []cause) {
	for _, s := range sections {
		all = append(all, s.causes...)
	}
	return all
}()

var (
	ofClusters       = []string{kindCluster}
	ofMemberClusters = []string{kindMemberCluster}
	ofMembers        = []string{kindCluster, kindMemberCluster}
	ofRequests       = []string{kindRequest}
	ofTokens         = []string{kindToken}
	ofBundles        = []string{kindBundle}
	ofGitRepos       = []string{kindGitRepo}
	ofHelmOps        = []string{kindHelmOp}
	ofSources        = []string{kindGitRepo, kindHelmOp}
	ofDeliveries     = []string{kindCluster, kindBundle, kindBundleDeployment}
	ofPlacements     = []string{kindClusterPlacement, kindPlacement}
	ofRuns           = []string{kindClusterRun, kindRun}
	ofWorks          = []string{kindClusterPlacement, kindPlacement, kindWork}
)

// Commands in several causes. The agents of Clusters and of MemberClusters have charts of their
// own. The agents of Rancher Fleet and KubeFleet run under the same names.
const (
	agentPods        = "kubectl -n cattle-fleet-system get pods -l app=fleet-agent"
	agentLog         = "kubectl -n cattle-fleet-system logs -l app=fleet-agent --tail=50"
	memberPods       = "kubectl -n fleet-system get pods -l app.kubernetes.io/name=member-agent"
	memberLog        = "kubectl -n fleet-system logs -l app.kubernetes.io/name=member-agent --tail=50"
	hubLog           = "kubectl -n cattle-fleet-system logs -l app=fleet-controller --tail=50"
	getTokens        = "muster get tokens -n NAMESPACE"
	newToken         = "muster token create TOKEN -n NAMESPACE"
	getRequests      = "muster get requests -n NAMESPACE"
	approveRequest   = "muster approve requests NAMESPACE/NAME"
	confirmPlacement = "muster confirm placements OBJECT"
	getRequest       = "kubectl -n NAMESPACE get clusterregistration NAME -o yaml"
)
