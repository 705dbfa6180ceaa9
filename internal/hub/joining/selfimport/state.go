package selfimport

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

// The credential for the import lives credentialLife, and is renewed when less than credentialRest of that is left.
const (
	credentialLife = time.Hour
	credentialRest = 10 * time.Minute
)

// observed is what a decision depends on.
type observed struct {
	wanted settings.Bootstrap
	// found is the Cluster; nil if there is none.
	found *fleet.Cluster
	// imported: the importer has installed the agent with the current settings.
	imported bool
	// expires is when the credential in the Secret does; zero if there is none.
	expires time.Time
}

// decision is what to write.
type decision struct {
	// records: the workspace, the Cluster and the ClusterGroup differ from what is wanted.
	records bool
	// credential: the importer needs one.
	credential bool
}

// decide compares. When the setting is switched off, what it has created stays, until an admin deletes it.
func decide(o observed, now time.Time) decision {
	if o.wanted.Namespace == "" || o.found != nil && o.found.DeletionTimestamp != nil {
		return decision{}
	}
	return decision{
		records:    o.found == nil || !equality.Semantic.DeepEqual(o.found, desired(o.found, o.wanted)),
		credential: !o.wanted.LocalAgentDisabled && !o.imported && o.expires.Before(now.Add(credentialRest)),
	}
}
