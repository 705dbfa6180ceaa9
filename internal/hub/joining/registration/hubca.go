package registration

import (
	"fmt"
	"slices"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/kube"
)

// shownDigest is the number of a digest's characters in a message.
const shownDigest = 12

// hubCAProblem returns a message about a request for another hub, recognized by the CA in the
// request; else empty. It is also empty if the hub cannot know. An agent with several trusted CAs
// names none. If the hub's settings have no CA, each member's installer chooses one, perhaps a
// proxy's.
func (c *Controller) hubCAProblem(r *fleet.ClusterRegistration, cluster *fleet.Cluster) string {
	told := credential.CADigests([]byte(c.Config.Current().APIServerCA))
	if cluster != nil {
		if address := c.Hub(cluster); address != nil {
			told = append(told, credential.CADigests([]byte(address.APIServerCA))...)
		}
	}
	named := r.Spec.HubCAs
	if len(named) == 0 || len(told) == 0 {
		return ""
	}
	if own := slices.Concat(told, c.OwnCAs); slices.ContainsFunc(named, func(digest string) bool { return slices.Contains(own, digest) }) {
		return ""
	}
	return fmt.Sprintf("the agent expects a hub with the CA certificate %s (SHA-256), and the CA of this hub is %s: the request is for "+
		"another hub, or the agent has an old CA, or the CA of a proxy. Give the agent the values.yaml of a token of this hub, or add its CA "+
		"to apiServerCA of the chart fleet, or set agentTLSMode: system-store in the values of the agent's chart",
		kube.Clip(named[0], shownDigest), kube.Clip(told[0], shownDigest))
}
