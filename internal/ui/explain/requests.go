package explain

import (
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// requestCauses explains why a request to register is not granted.
var requestCauses = []cause{
	{
		kinds: ofRequests, reasons: []string{reasons.Preparing, reasons.ClusterLeaving, reasons.KeyProved},
		means:  "The hub prepares the objects of the member, or waits until earlier ones are gone.",
		remedy: "No action needed. If this lasts, read the hub's log.",
		onHub:  []string{hubLog}, passing: true,
	},
	{
		kinds: ofRequests, reasons: []string{reasons.Revoked},
		means: "The Cluster of this request is revoked.",
		remedy: "Restore access with muster revoke --undo and the name of the Cluster. Then register the cluster again with " +
			"a new token.",
	},
	{
		kinds: ofRequests, reasons: []string{reasons.Quarantined},
		means: "The agent of this request belongs to a quarantined Cluster. It cannot register as another Cluster.",
		remedy: "End the quarantine with muster quarantine --undo and the name of that Cluster. The agent sends another " +
			"request by itself.",
	},
	{
		kinds: ofRequests, reasons: []string{reasons.TokenNotIssued},
		means:  "Kubernetes has not issued the token of the agent's account.",
		remedy: "Check that the kube-controller-manager of the hub's cluster runs its token controller.",
	},
	{
		kinds: []string{kindRequest, kindToken}, reasons: []string{reasons.Failed},
		means:  "An operation of the hub failed. The hub retries.",
		remedy: "The message quotes the API server. The hub's log has more details.",
		onHub:  []string{hubLog},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.TokenInvalid},
		means:  "The ClusterRegistrationToken of the request is invalid.",
		remedy: "Correct the token. The request then continues.",
		onHub:  []string{getTokens},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.TooManyNewClusters},
		means: "The token has registered the maximum number of new Clusters that have sent no heartbeat yet.",
		remedy: "Check why these Clusters send no heartbeat, or delete them. To let more join at once, raise " +
			"registration.maxNewClustersPerToken of the chart fleet.",
		onHub: []string{"muster get clusters -n NAMESPACE"},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.TooManyRequests},
		means: "The limit of denied or waiting requests is reached.",
		remedy: "Approve or deny the waiting requests, and check that the token has not leaked. The hub deletes this request after a minute, " +
			"and its agent sends another one.",
		onHub: []string{getRequests},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.ApprovalRequired},
		means:  "The token requires approval of each registration.",
		remedy: "Approve the request if you expect it. Otherwise deny it.",
		onHub:  []string{getRequest, approveRequest, "muster deny requests NAMESPACE/NAME"},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.HolderAlive, reasons.HolderLost},
		means: "The Cluster has an agent, or had one with another key. This request would replace that agent.",
		remedy: "If the cluster was rebuilt, approve the request. Otherwise the client ID belongs to another cluster, for " +
			"example to the original of a clone: deny the request.",
		onHub: []string{getRequest, approveRequest, "muster deny requests NAMESPACE/NAME"},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.ApprovedTooEarly},
		means:  "The request was created with an approval. No user with the right to approve has checked it.",
		remedy: "Approve the request again.",
		onHub:  []string{approveRequest},
	},
	{
		kinds: ofRequests, reasons: []string{
			reasons.NotAttributed, reasons.RequesterUnknown, reasons.PolicyMissing, reasons.OlderThanPolicy, reasons.PolicyUnchecked,
		},
		means: "The hub cannot identify the creator of the request, because its admission policy was missing.",
		remedy: "Restore the policy with the chart fleet. Then delete the request, and its agent sends another one. If you know the origin of " +
			"the request, you can approve it instead.",
		onHub: []string{"helm -n cattle-fleet-system upgrade fleet fleet/fleet --reset-then-reuse-values",
			"kubectl -n NAMESPACE delete clusterregistration NAME"},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.AmbiguousClientID},
		means:  "Several Clusters of the workspace have the client ID of this request.",
		remedy: "Keep one, and delete or change the others.",
		onHub:  []string{"kubectl -n NAMESPACE get clusters.fleet.cattle.io -o custom-columns=CLUSTER:.metadata.name,CLIENT-ID:.spec.clientID"},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.NameTaken},
		means:  "A Cluster with the same name and another client ID exists.",
		remedy: "Use another client ID, or create a Cluster with this client ID under another name.",
	},
	{
		kinds: ofRequests, reasons: []string{reasons.ClientIDMissing, reasons.ClientIDTooLong, reasons.InvalidLabels, reasons.InvalidAnswerKey},
		means:  "The request has an invalid value.",
		remedy: "Correct the value of the agent's chart that the message names.",
	},
	{
		kinds: ofRequests, reasons: []string{reasons.InvalidSignature},
		means: "The creator of the request does not own the key in it.",
		remedy: "The request was changed in transit, or is forged: check its creator. A healthy agent sends another request " +
			"by itself.",
		onHub: []string{getRequest},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.Replayed},
		means: "The key of the Cluster has already signed this request, or a later one. The request is a copy, or the clock " +
			"of the cluster was set back.",
		remedy: "Check its creator. If the agent created the request, remove the annotation in the message from the Cluster, " +
			"and restart the agent.",
		onHub: []string{getRequest},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.OtherHub},
		means: "The agent trusts the CA of another hub.",
		remedy: "Use the values of a token of this hub. Behind a proxy that terminates TLS, add its CA to apiServerCA of the " +
			"chart fleet, or set agentTLSMode=system-store for the agent.",
	},
	{
		kinds: ofRequests, reasons: []string{
			reasons.TokenExpired, reasons.TokenNotFound, reasons.TokenUnknown, reasons.TokenUsedUp, reasons.TokenBoundElsewhere,
		},
		means:  "The token of the request cannot register this cluster, or can no longer do so.",
		remedy: "Create another token, and give its values to the agent.",
		onHub:  []string{newToken},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.ReconnectRefused},
		means:  "The credential of the cluster has expired, and the cluster may not reconnect with its key.",
		remedy: "Create a token, and give its values to the agent.",
		onHub:  []string{newToken},
	},
	{
		kinds: ofRequests, reasons: []string{fleet.ReasonNotApproved},
		means: "A user has denied the request.",
		remedy: "If that was a mistake, approve the request while it exists: its agent waits for the approval. If the request is gone, give " +
			"the cluster another registration token.",
		onHub: []string{approveRequest},
	},
	{
		kinds: ofRequests, reasons: []string{reasons.Superseded},
		means:  "A newer request of the same cluster has replaced this one.",
		remedy: "No action needed: the hub deletes it.", aside: true,
	},
}

// tokenCauses explains why no cluster registers with a token.
var tokenCauses = []cause{
	{
		kinds: ofTokens, reasons: []string{reasons.Expired},
		means:  "The token has expired. Clusters that it registered are not affected.",
		remedy: "Create another token for new clusters.",
		onHub:  []string{newToken},
	},
	{
		kinds: ofTokens, reasons: []string{reasons.Preparing},
		means: "The account of the token has no credential yet.",
		remedy: "If this lasts longer than a minute, check that the kube-controller-manager of the hub's cluster runs its " +
			"token controller.",
	},
	{
		kinds: ofTokens, reasons: []string{reasons.TTLRequired},
		means:  "This hub requires an expiry for every token.",
		remedy: "Set spec.ttl.",
		onHub:  []string{`kubectl -n NAMESPACE patch clusterregistrationtoken NAME --type merge -p '{"spec":{"ttl":"240h"}}'`},
	},
	{
		kinds: ofTokens, reasons: []string{reasons.InvalidLabels, reasons.InvalidApprovalExpression},
		means:  "The token is invalid.",
		remedy: "Correct the field in the message.",
		onHub:  []string{"kubectl -n NAMESPACE edit clusterregistrationtoken NAME"},
	},
	{
		kinds: ofTokens, reasons: []string{reasons.InvalidRotation},
		means:  "The hub does not replace the credential of the token, because an annotation is invalid.",
		remedy: "Correct the annotation in the message.",
		onHub:  []string{"kubectl -n NAMESPACE annotate clusterregistrationtoken NAME muster/rotate-overlap=24h --overwrite"}, aside: true,
	},
	{
		kinds: ofTokens, reasons: []string{reasons.SettingsMissing},
		means:  "The settings of the hub are missing.",
		remedy: "Restore their ConfigMap with the chart fleet.",
		onHub:  []string{"helm -n cattle-fleet-system upgrade fleet fleet/fleet --reset-then-reuse-values"},
	},
	{
		kinds: ofTokens, reasons: []string{reasons.SecretNameTaken},
		means:  "A Secret with the token's name exists, and belongs to another owner.",
		remedy: "Delete that Secret, or use another name for the token.",
	},
	{
		kinds: ofTokens, reasons: []string{reasons.LifeShortened},
		means: "The API server of the hub issues credentials with a shorter lifetime than the token requires. The hub renews the credential in " +
			"the Secret until the token ends.",
		remedy: "For new clusters, read the values from the Secret again.", aside: true,
	},
}
