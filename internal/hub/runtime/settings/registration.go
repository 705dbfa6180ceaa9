package settings

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Registration bounds the cost of requests. Zero means no limit.
type Registration struct {
	// RequestLifetime is the life of a request without a grant.
	RequestLifetime time.Duration
	// NewClusterLifetime is the life of a Cluster created for a request and still without a heartbeat;
	// zero for no limit.
	NewClusterLifetime time.Duration
	// MaxWaitingPerToken and MaxWaitingPerWorkspace limit the number of refused and of waiting
	// requests.
	MaxWaitingPerToken, MaxWaitingPerWorkspace int
	// MaxQueuedPerToken limits the number of requests waiting for the heartbeats of other new
	// Clusters.
	MaxQueuedPerToken int
	// MaxNewClustersPerToken bounds the number of Clusters created for requests and still without a
	// heartbeat.
	MaxNewClustersPerToken int
	// Displacement sets the condition for a request by an unproven agent to replace the agent of a
	// Cluster.
	Displacement Displacement
}

// Displacement is a condition for the replacement of the agent of a Cluster.
type Displacement string

// The values of Displacement.
const (
	// DisplaceApproved: a user's approval, or a token for exactly this Cluster.
	DisplaceApproved Displacement = "approved"
	// DisplaceLost: the holder is Lost, or one of the above.
	DisplaceLost Displacement = "lost"
	// DisplaceAny: any token of the workspace, as with Rancher Fleet.
	DisplaceAny Displacement = "any"
)

// minRequestLifetime is longer than a legacy agent's wait for an answer, and than any join.
const minRequestLifetime = 30 * time.Minute

// wireRegistration is the form of Registration in the ConfigMap; missing fields mean the default.
type wireRegistration struct {
	RequestLifetime        *metav1.Duration `json:"requestLifetime"`
	NewClusterLifetime     *metav1.Duration `json:"newClusterLifetime"`
	MaxWaitingPerToken     *int             `json:"maxWaitingPerToken"`
	MaxWaitingPerWorkspace *int             `json:"maxWaitingPerWorkspace"`
	MaxQueuedPerToken      *int             `json:"maxQueuedPerToken"`
	MaxNewClustersPerToken *int             `json:"maxNewClustersPerToken"`
	Displacement           Displacement     `json:"displacement"`
}

func (w wireRegistration) parse(r Registration) (Registration, error) {
	if life := w.RequestLifetime; life != nil {
		if r.RequestLifetime = life.Duration; r.RequestLifetime < minRequestLifetime {
			return Registration{}, fmt.Errorf("registration.requestLifetime %s: want at least %s", life.Duration, minRequestLifetime)
		}
	}
	if life := w.NewClusterLifetime; life != nil {
		if r.NewClusterLifetime = life.Duration; r.NewClusterLifetime != 0 && r.NewClusterLifetime < minRequestLifetime {
			return Registration{}, fmt.Errorf("registration.newClusterLifetime %s: want 0 or at least %s", life.Duration, minRequestLifetime)
		}
	}
	switch w.Displacement {
	case "":
	case DisplaceApproved, DisplaceLost, DisplaceAny:
		r.Displacement = w.Displacement
	default:
		return Registration{}, fmt.Errorf("registration.displacement %q: want approved, lost or any", w.Displacement)
	}
	for _, number := range []struct {
		name  string
		value *int
		into  *int
	}{
		{"maxWaitingPerToken", w.MaxWaitingPerToken, &r.MaxWaitingPerToken},
		{"maxWaitingPerWorkspace", w.MaxWaitingPerWorkspace, &r.MaxWaitingPerWorkspace},
		{"maxQueuedPerToken", w.MaxQueuedPerToken, &r.MaxQueuedPerToken},
		{"maxNewClustersPerToken", w.MaxNewClustersPerToken, &r.MaxNewClustersPerToken},
	} {
		if number.value == nil {
			continue
		}
		if *number.value < 0 {
			return Registration{}, fmt.Errorf("registration.%s %d: want 0, which means no limit, or more", number.name, *number.value)
		}
		*number.into = *number.value
	}
	return r, nil
}
