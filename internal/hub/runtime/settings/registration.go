package settings

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Registration bounds what requests may cost. A number of zero is no bound.
type Registration struct {
	// RequestLifetime is how long a request that is not granted is kept.
	RequestLifetime time.Duration
	// NewClusterLifetime is how long a Cluster that the hub made for a request, and that never beats, is kept; zero is for ever.
	NewClusterLifetime time.Duration
	// MaxWaitingPerToken and MaxWaitingPerWorkspace are how many requests may have been refused or wait for somebody.
	MaxWaitingPerToken, MaxWaitingPerWorkspace int
	// MaxQueuedPerToken is how many requests may wait for other new Clusters to beat.
	MaxQueuedPerToken int
	// MaxNewClustersPerToken is how many Clusters that the hub made for requests may not have beaten yet.
	MaxNewClustersPerToken int
	// Displacement says what a request needs that would take the place of the agent that holds a Cluster, and does not prove to be the same agent.
	Displacement Displacement
}

// Displacement says what it takes to replace the agent that holds a Cluster.
type Displacement string

// The values of Displacement.
const (
	// DisplaceApproved: somebody's approval, or a token for just this Cluster.
	DisplaceApproved Displacement = "approved"
	// DisplaceLost: that the holder is lost, or one of these.
	DisplaceLost Displacement = "lost"
	// DisplaceAny: any token of the workspace, as with Rancher Fleet.
	DisplaceAny Displacement = "any"
)

// minRequestLifetime is longer than a legacy agent waits for an answer, and than any join takes.
const minRequestLifetime = 30 * time.Minute

// wireRegistration is Registration as the ConfigMap has it; what is left out is the default.
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
			return Registration{}, fmt.Errorf("registration.%s %d: want 0, which is no bound, or more", number.name, *number.value)
		}
		*number.into = *number.value
	}
	return r, nil
}
