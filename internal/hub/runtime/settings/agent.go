package settings

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The values of agentTLSMode.
const (
	TLSStrict      = "strict"
	TLSSystemStore = "system-store"
)

// Agent holds the settings of all agents installed by the hub.
type Agent struct {
	// Image and its pull policy; empty for the defaults of the agent's chart.
	Image, ImagePullPolicy string
	// Registry is the optional prefix of Image. A Cluster may replace it.
	Registry string
	// TLSMode is strict or system-store.
	TLSMode string
	// GarbageCollectionInterval is the interval between an agent's searches for leftovers.
	GarbageCollectionInterval time.Duration
	// PullSecrets names Secrets of the hub's system namespace that the hub copies to the agent.
	PullSecrets []string
}

// wireAgent is the form of Agent in the key `config`.
type wireAgent struct {
	AgentImage                string                        `json:"agentImage"`
	AgentImagePullPolicy      string                        `json:"agentImagePullPolicy"`
	SystemDefaultRegistry     string                        `json:"systemDefaultRegistry"`
	GarbageCollectionInterval metav1.Duration               `json:"garbageCollectionInterval"`
	ImagePullSecrets          []corev1.LocalObjectReference `json:"imagePullSecrets"`
}

func (w wireAgent) parse(tlsMode string) Agent {
	var secrets []string
	for _, secret := range w.ImagePullSecrets {
		secrets = append(secrets, secret.Name)
	}
	return Agent{
		Image: w.AgentImage, ImagePullPolicy: w.AgentImagePullPolicy, Registry: w.SystemDefaultRegistry,
		TLSMode:                   cmp.Or(tlsMode, TLSSystemStore),
		GarbageCollectionInterval: w.GarbageCollectionInterval.Duration, PullSecrets: secrets,
	}
}
