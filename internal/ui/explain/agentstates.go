package explain

import "github.com/muster-fleet/muster/internal/fleet/reasons"

// kindAgent is no kind of object: an agent reports its state, with a sentence, in its log and at
// its readiness endpoint. In a sentence about a request or a membership object, the agent quotes
// that object with its reason.
const kindAgent = "Agent"

var ofAgents = []string{kindAgent}

// stateCauses explains, by the agent's state, why the agent has not joined.
var stateCauses = []cause{
	{
		kinds: ofAgents, reasons: []string{"BadInput"},
		means:  "A Secret, or the ConfigMap, that the agent was given cannot be used.",
		remedy: "Correct what the sentence names. The agent notices at once.",
	},
	{
		kinds: ofAgents, reasons: []string{"Waiting"},
		means: "The agent has no token that the hub accepts.",
		remedy: "Give it a new one: the values of a ClusterRegistrationToken, or the token of the MemberCluster's identity. The sentence names " +
			"the Secret.",
		onHub: []string{"muster token create NAME"},
	},
	{
		kinds: ofAgents, reasons: []string{"Denied"},
		means:  "The hub has denied the request to register.",
		remedy: "The sentence has the reason and the message of the request: explain that.",
		onHub:  []string{"kubectl get clusterregistrations -A"},
	},
	{
		kinds: ofAgents, reasons: []string{"Retrying"},
		means:  "The hub could not be asked to register the cluster, or did not take the request. The agent asks again by itself.",
		remedy: "See to what the sentence names: the address, the certificate, a proxy, or the token.",
	},
	{
		kinds: ofAgents, reasons: []string{reasons.Unreachable},
		means:  "The hub cannot be asked about the credential that the agent has. The agent keeps everything and asks again by itself.",
		remedy: "See that the address in the sentence can be reached from the cluster, and that the hub's API server runs.",
	},
	{
		kinds: ofAgents, reasons: []string{"Left"},
		means:  "The hub asked the cluster to leave the fleet, and it has.",
		remedy: "Uninstall the agent; or give it a new registration token to join again.",
	},
	{
		kinds: ofAgents, reasons: []string{"Standby"},
		means:  "Another agent sends the heartbeats of this member.",
		remedy: "Nothing while an agent is replaced by a new version. Else two clusters have one credential: register one of them anew.",
		aside:  true,
	},
	{
		kinds: ofAgents, reasons: []string{"Starting", "Trying", "Joining"},
		means:  "The agent reads what it was given, tries its credential, or has asked the hub for one.",
		remedy: "Nothing, unless it lasts: then the sentence says what it waits for. If that is a request, explain the request.", aside: true,
		onHub: []string{"kubectl get clusterregistrations -A"},
	},
}
