package explain

// cause is something that may be wrong, and what to do about it.
type cause struct {
	// kinds are those of the objects that say so, by one of the reasons of a condition or a state.
	kinds, reasons []string
	// means says what is so, and remedy what to do about it, in sentences.
	means, remedy string
	// onHub and onMember are commands at the hub and at the member; in them and in the remedy NAMESPACE and NAME stand for those of the object.
	onHub, onMember []string
	// aside: nothing is wrong, but somebody may want to know.
	aside bool
	// passing: it goes on by itself, unless something else is wrong that is said of another object.
	passing bool
}

// causes are in the order in which they are to be looked at: one often comes of one before.
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
	ofDeliveries     = []string{kindCluster, kindBundle, kindBundleDeployment}
	ofPlacements     = []string{kindClusterPlacement, kindPlacement}
	ofRuns           = []string{kindClusterRun, kindRun}
	ofWorks          = []string{kindClusterPlacement, kindPlacement, kindWork}
)

// Commands that several causes have. The agents of Clusters and of MemberClusters have charts of their own; those of Rancher Fleet and KubeFleet run by the same names.
const (
	agentPods  = "kubectl -n cattle-fleet-system get pods -l app=fleet-agent"
	agentLog   = "kubectl -n cattle-fleet-system logs -l app=fleet-agent --tail=50"
	memberPods = "kubectl -n fleet-system get pods -l app.kubernetes.io/name=member-agent"
	memberLog  = "kubectl -n fleet-system logs -l app.kubernetes.io/name=member-agent --tail=50"
	hubLog     = "kubectl -n cattle-fleet-system logs -l app=fleet-controller --tail=50"
	newToken   = "kubectl -n NAMESPACE get clusterregistrationtokens"
	getRequest = "kubectl -n NAMESPACE get clusterregistration NAME -o yaml"
)
