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

// Agent are the settings of all agents that the hub installs.
type Agent struct {
	// Image and its pull policy; empty: what the agent's chart says.
	Image, ImagePullPolicy string
	// Registry is the prefix that Image may have and that a Cluster may replace.
	Registry string
	// TLSMode is strict or system-store.
	TLSMode string
	// GarbageCollectionInterval is how often an agent looks for leftovers.
	GarbageCollectionInterval time.Duration
	// PullSecrets names Secrets of the hub's system namespace that are copied to the agent.
	PullSecrets []string
}

// wireAgent is an Agent as the key `config` has it.
type wireAgent struct {
	AgentImage                string                        `json:"agentImage"`
	AgentImagePullPolicy      string                        `json:"agentImagePullPolicy"`
	SystemDefaultRegistry     string                        `json:"systemDefaultRegistry"`
	GarbageCollectionInterval metav1.Duration               `json:"garbageCollectionInterval"`
	ImagePullSecrets          []corev1.LocalObjectReference `json:"imagePullSecrets"`
}

func (in wireAgent) parse(tlsMode string) Agent {
	var secrets []string
	for _, secret := range in.ImagePullSecrets {
		secrets = append(secrets, secret.Name)
	}
	return Agent{
		Image: in.AgentImage, ImagePullPolicy: in.AgentImagePullPolicy, Registry: in.SystemDefaultRegistry, TLSMode: cmp.Or(tlsMode, TLSSystemStore),
		GarbageCollectionInterval: in.GarbageCollectionInterval.Duration, PullSecrets: secrets,
	}
}
