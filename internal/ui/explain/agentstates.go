package explain

import "github.com/muster-fleet/muster/internal/fleet/reasons"

// kindAgent is no kind of object: an agent reports its state, with a sentence, in its log and at
// its readiness endpoint. A sentence about a request or a membership object quotes the object with
// its reason.
const kindAgent = "Agent"

var ofAgents = []string{kindAgent}

// stateCauses explains, by state, why the agent has not joined.
var stateCauses = []cause{
	{
		kinds: ofAgents, reasons: []string{"BadInput"},
		means:  "The agent cannot use a Secret or the ConfigMap of its configuration.",
		remedy: "Correct the object in the message. The agent notices the change at once.",
	},
	{
		kinds: ofAgents, reasons: []string{"Waiting"},
		means: "The agent has no token that the hub accepts.",
		remedy: "Put a new token into the Secret in the message: the values of a ClusterRegistrationToken, or the token of " +
			"the MemberCluster's identity.",
		onHub: []string{newToken},
	},
	{
		kinds: ofAgents, reasons: []string{"Denied"},
		means:  "The hub has denied the registration request.",
		remedy: "The message quotes the request with its reason. Explain the request on the hub.",
		onHub:  []string{"muster get requests"},
	},
	{
		kinds: ofAgents, reasons: []string{"Retrying"},
		means:  "The agent cannot send its registration request, or the hub does not accept it. The agent retries.",
		remedy: "Check the address, the certificate, the proxy or the token in the message.",
	},
	{
		kinds: ofAgents, reasons: []string{reasons.Unreachable},
		means:  "The agent cannot check its credential with the hub. It removes nothing, and retries.",
		remedy: "Check that the cluster can reach the address in the message, and that the hub's API server is running.",
	},
	{
		kinds: ofAgents, reasons: []string{"Left"},
		means:  "The cluster has left the fleet at the request of the hub.",
		remedy: "Uninstall the agent. To join again, give the agent a new registration token.",
	},
	{
		kinds: ofAgents, reasons: []string{"Fenced"},
		means: "The hub has a lower term than the one that the cluster obeys: it was restored elsewhere, and is an old hub. The agent " +
			"changes nothing for it.",
		remedy: "Lead the agent to the hub with the higher term. If this hub is to be obeyed again, promote it.",
		onHub:  []string{"muster hub status", "muster hub promote"},
	},
	{
		kinds: ofAgents, reasons: []string{"Standby"},
		means: "Another agent sends the heartbeats of this member.",
		remedy: "No action needed while a new version replaces the agent. Otherwise two clusters share one credential: " +
			"register one of them again.",
		aside: true,
	},
	{
		kinds: ofAgents, reasons: []string{"Starting", "Trying", "Joining"},
		means: "The agent is reading its configuration, checking its credential, or waiting for a new one.",
		remedy: "If this lasts, the message names the cause of the wait. If the agent waits for a registration request, explain " +
			"the request on the hub.", aside: true,
		onHub: []string{"muster get requests"},
	},
}
