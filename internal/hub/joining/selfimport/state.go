package selfimport

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

// The credential for the import is valid for credentialLife. The hub renews it when less than
// credentialRest is left.
const (
	credentialLife = time.Hour
	credentialRest = 10 * time.Minute
)

// observed holds the inputs of a decision.
type observed struct {
	wanted settings.Bootstrap
	// found is the Cluster; nil if there is none.
	found *fleet.Cluster
	// imported: the importer has installed the agent with the current settings.
	imported bool
	// expires is the expiry of the credential in the Secret; zero if there is none.
	expires time.Time
}

// decision names the objects to write.
type decision struct {
	// records: the workspace, the Cluster and the ClusterGroup differ from the desired ones.
	records bool
	// credential: the importer needs a credential.
	credential bool
}

// decide compares. Objects created by the setting stay after it is turned off, until an
// administrator deletes them.
func decide(o observed, now time.Time) decision {
	if o.wanted.Namespace == "" || o.found != nil && o.found.DeletionTimestamp != nil {
		return decision{}
	}
	return decision{
		records:    o.found == nil || !equality.Semantic.DeepEqual(o.found, desired(o.found, o.wanted)),
		credential: !o.wanted.LocalAgentDisabled && !o.imported && o.expires.Before(now.Add(credentialRest)),
	}
}
