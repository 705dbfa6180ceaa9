package explain

import (
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// requestCauses explains why a request to register is not granted.
var requestCauses = []cause{
	{
		kinds: ofRequests, reasons: []string{reasons.Preparing, reasons.ClusterLeaving, reasons.KeyProved},
		means:  "The hub prepares what the member needs, or waits until what was there before is gone.",
		remedy: "Nothing: it goes on by itself. If it does not, what the hub logs says why.",
		onHub:  []string{hubLog}, passing: true,
	},
	{
		kinds: ofRequests, reasons: []string{reasons.Revoked},
		means: "Somebody has revoked the Cluster that the request is for.",
		remedy: "To let it in again take the annotation off, as the message says, and have the cluster ask again: give it a new registration " +
			"token.",
	},
	{
		kinds: ofRequests, reasons: []string{reasons.TokenNotIssued},
		means:  "Kubernetes has not filled in the token of the agent's account.",
		remedy: "See that the kube-controller-manager of the hub's cluster runs its token controller.",
	},
	{
		kinds: []string{kindRequest, kindToken}, reasons: []string{reasons.Failed},
		means:  "The hub could not do what it had to. It tries again.",
		remedy: "The message is what the API server answered; what the hub logs says more.",
		onHub:  []string{hubLog},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.TokenInvalid},
		means:  "The ClusterRegistrationToken that the request was made with cannot be used as it is.",
		remedy: "Correct the token; the request goes on then.",
		onHub:  []string{newToken},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.TooManyNewClusters},
		means: "As many Clusters as may be new at once were made with this token and have not sent a heartbeat.",
		remedy: "See why they have not, or delete them. If that many are to join at once, raise registration.maxNewClustersPerToken of the " +
			"chart fleet.",
		onHub: []string{"kubectl -n NAMESPACE get clusters.fleet.cattle.io"},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.TooManyRequests},
		means:  "As many requests as may wait were refused, or wait for somebody.",
		remedy: "See to them, and whether the token is in wrong hands. This one is deleted after a minute, and its agent asks again.",
		onHub:  []string{"kubectl -n NAMESPACE get clusterregistrations"},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.ApprovalRequired},
		means:  "The token says that somebody approves who registers with it.",
		remedy: "Approve the request if it is one that you expect, or deny it: the value false does.",
		onHub:  []string{getRequest, "kubectl -n NAMESPACE annotate clusterregistration NAME muster/approved=true"},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.HolderAlive, reasons.HolderLost},
		means: "The Cluster has an agent already, or had one with another key. This request would take its place.",
		remedy: "If the cluster was made anew, approve the request. If not, somebody uses a client ID that is not theirs, such as that of a " +
			"clone: deny it.",
		onHub: []string{getRequest, "kubectl -n NAMESPACE annotate clusterregistration NAME muster/approved=true"},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.ApprovedTooEarly},
		means:  "The approval came with the request itself, so that nobody who may approve it has looked at it.",
		remedy: "Take the annotation off and set it again.",
		onHub: []string{"kubectl -n NAMESPACE annotate clusterregistration NAME muster/approved-",
			"kubectl -n NAMESPACE annotate clusterregistration NAME muster/approved=true"},
	},
	{
		kinds: ofRequests, reasons: []string{
			reasons.NotAttributed, reasons.RequesterUnknown, reasons.PolicyMissing, reasons.OlderThanPolicy, reasons.PolicyUnchecked,
		},
		means: "The hub does not know who made the request, because the admission policy that notes it was not there.",
		remedy: "Bring the policy back with the chart fleet and delete the request: its agent asks again. Or approve it, if you know whose it " +
			"is.",
		onHub: []string{"helm -n cattle-fleet-system upgrade fleet fleet/fleet --reset-then-reuse-values",
			"kubectl -n NAMESPACE delete clusterregistration NAME"},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.AmbiguousClientID},
		means:  "Several Clusters of the workspace have the client ID of this request.",
		remedy: "Delete or change all but one.",
		onHub:  []string{"kubectl -n NAMESPACE get clusters.fleet.cattle.io -o custom-columns=CLUSTER:.metadata.name,CLIENT-ID:.spec.clientID"},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.NameTaken},
		means:  "The Cluster that would be made has the name of one with another client ID.",
		remedy: "Use another client ID, or create a Cluster with this one under a name of your choice.",
	},
	{
		kinds: ofRequests, reasons: []string{reasons.ClientIDMissing, reasons.ClientIDTooLong, reasons.InvalidLabels, reasons.InvalidAnswerKey},
		means:  "The request is not one that can be granted.",
		remedy: "Correct the values of the agent's chart that the message names.",
	},
	{
		kinds: ofRequests, reasons: []string{reasons.InvalidSignature},
		means:  "The request carries a key that whoever made it does not have.",
		remedy: "It was changed on its way, or is forged: look who made it. An agent that is well asks again by itself.",
		onHub:  []string{getRequest},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.Replayed},
		means:  "The key of the Cluster has signed this request, or a later one, before: it is a copy, or the clock of the cluster was set back.",
		remedy: "Look who made it. If it is the agent's own, take the annotation that the message names off the Cluster, and restart the agent.",
		onHub:  []string{getRequest},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.OtherHub},
		means: "The agent knows its hub by a CA that this hub does not have.",
		remedy: "Take the values of a token of this hub. Behind a proxy that ends TLS add its CA to apiServerCA of the chart fleet, or set " +
			"agentTLSMode=system-store for the agent.",
	},
	{
		kinds: ofRequests, reasons: []string{
			reasons.TokenExpired, reasons.TokenNotFound, reasons.TokenUnknown, reasons.TokenUsedUp, reasons.TokenBoundElsewhere,
		},
		means:  "The token that the request was made with does not register this cluster, or not any more.",
		remedy: "Create another ClusterRegistrationToken and give the agent its values.",
		onHub:  []string{newToken},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.ReconnectRefused},
		means:  "The credential of the cluster has run out, and it may not come back by its key.",
		remedy: "Give the cluster the values of a registration token.",
	},
	{
		kinds: ofRequests, reasons: []string{fleet.ReasonNotApproved},
		means: "Somebody has denied the request.",
		remedy: "If that was a mistake take the denial back and approve it, as muster approve does: its agent waits for that as long as the " +
			"request is there. After that give the cluster a registration token again.",
		onHub: []string{
			"kubectl -n NAMESPACE annotate clusterregistration NAME muster/approved-",
			"kubectl -n NAMESPACE annotate clusterregistration NAME muster/approved=true",
		},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.Superseded},
		means:  "A newer request of the same cluster has taken its place.",
		remedy: "Nothing: it is deleted by itself.", aside: true,
	},
}

// tokenCauses explains why no cluster registers with a token.
var tokenCauses = []cause{
	{
		kinds: ofTokens, reasons: []string{reasons.Expired},
		means:  "The token has expired. The clusters that it registered are not affected.",
		remedy: "Create another one for clusters that join later.",
	},
	{
		kinds: ofTokens, reasons: []string{reasons.Preparing},
		means:  "The account of the token has no credential yet.",
		remedy: "If that lasts longer than a moment, see that the kube-controller-manager of the hub's cluster runs its token controller.",
	},
	{
		kinds: ofTokens, reasons: []string{reasons.TTLRequired},
		means:  "This hub does not accept tokens without an end.",
		remedy: "Set spec.ttl.",
		onHub:  []string{`kubectl -n NAMESPACE patch clusterregistrationtoken NAME --type merge -p '{"spec":{"ttl":"240h"}}'`},
	},
	{
		kinds: ofTokens, reasons: []string{reasons.InvalidLabels, reasons.InvalidApprovalExpression},
		means:  "The token cannot be used as it is.",
		remedy: "Correct the field of its spec that the message names.",
		onHub:  []string{"kubectl -n NAMESPACE edit clusterregistrationtoken NAME"},
	},
	{
		kinds: ofTokens, reasons: []string{reasons.SettingsMissing},
		means:  "The hub has lost its settings.",
		remedy: "Bring back its ConfigMap with the chart fleet.",
		onHub:  []string{"helm -n cattle-fleet-system upgrade fleet fleet/fleet --reset-then-reuse-values"},
	},
	{
		kinds: ofTokens, reasons: []string{reasons.SecretNameTaken},
		means:  "A Secret of the token's name exists that was not made for it.",
		remedy: "Delete that Secret, or choose another name for the token.",
	},
	{
		kinds: ofTokens, reasons: []string{reasons.LifeShortened},
		means: "The API server of the hub grants credentials of less life than the token asks for. The hub renews the one in the Secret until " +
			"the token ends.",
		remedy: "Take the values from the Secret anew for clusters that join later.", aside: true,
	},
}
