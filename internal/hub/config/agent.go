package config

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The values of agentTLSMode.
const (
	TLSStrict      = "strict"
	TLSSystemStore = "system-store"
)

// Agent is what is the same for every agent that the hub installs.
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
	AgentTLSMode              string                        `json:"agentTLSMode"`
	GarbageCollectionInterval metav1.Duration               `json:"garbageCollectionInterval"`
	ImagePullSecrets          []corev1.LocalObjectReference `json:"imagePullSecrets"`
}

func (in wireAgent) parse() (Agent, error) {
	if in.AgentTLSMode != TLSStrict && in.AgentTLSMode != TLSSystemStore {
		return Agent{}, fmt.Errorf("agentTLSMode %q: want %s or %s", in.AgentTLSMode, TLSStrict, TLSSystemStore)
	}
	var secrets []string
	for _, secret := range in.ImagePullSecrets {
		secrets = append(secrets, secret.Name)
	}
	return Agent{
		Image: in.AgentImage, ImagePullPolicy: in.AgentImagePullPolicy, Registry: in.SystemDefaultRegistry, TLSMode: in.AgentTLSMode,
		GarbageCollectionInterval: in.GarbageCollectionInterval.Duration, PullSecrets: secrets,
	}, nil
}
