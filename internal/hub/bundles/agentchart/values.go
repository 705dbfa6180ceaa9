package agentchart

import (
	"encoding/json"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/bootstrap"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/naming"
)

// Values are the values of the chart fleet-agent set by the hub.
type Values struct {
	// Bootstrap is nil once the agent has registered.
	*bootstrap.Bootstrap `json:",inline"`

	ClientID                  string             `json:"clientID"`
	Labels                    map[string]string  `json:"labels,omitempty"`
	AgentTLSMode              string             `json:"agentTLSMode"`
	GarbageCollectionInterval string             `json:"garbageCollectionInterval"`
	Image                     image              `json:"image"`
	Global                    global             `json:"global"`
	FleetAgent                scheduling         `json:"fleetAgent"`
	Internal                  bootstrap.Internal `json:"internal"`
}

type image struct {
	Repository      string `json:"repository,omitempty"`
	Tag             string `json:"tag,omitempty"`
	ImagePullPolicy string `json:"imagePullPolicy,omitempty"`
}

type global struct {
	Cattle struct {
		SystemDefaultRegistry string `json:"systemDefaultRegistry"`
	} `json:"cattle"`
	ImagePullSecrets []string `json:"imagePullSecrets,omitempty"`
}

type scheduling struct {
	Tolerations         []corev1.Toleration            `json:"tolerations,omitempty"`
	Affinity            *corev1.Affinity               `json:"affinity,omitempty"`
	Resources           *corev1.ResourceRequirements   `json:"resources,omitempty"`
	HostNetwork         bool                           `json:"hostNetwork,omitempty"`
	ExtraEnv            []corev1.EnvVar                `json:"extraEnv,omitempty"`
	PriorityClass       *fleet.PriorityClassSpec       `json:"priorityClass,omitempty"`
	PodDisruptionBudget *fleet.PodDisruptionBudgetSpec `json:"podDisruptionBudget,omitempty"`
}

// Of returns the values of a Cluster's agent, without the Bootstrap.
func Of(cluster *fleet.Cluster, clientID string, agent settings.Agent, systemNamespace string) Values {
	spec := cluster.Spec
	v := Values{
		ClientID: clientID, Labels: labels(cluster.Labels), AgentTLSMode: agent.TLSMode,
		GarbageCollectionInterval: duration(agent.GarbageCollectionInterval),
		FleetAgent: scheduling{
			Tolerations: spec.AgentTolerations, Affinity: spec.AgentAffinity, Resources: spec.AgentResources,
			HostNetwork: spec.HostNetwork != nil && *spec.HostNetwork, ExtraEnv: spec.AgentEnvVars,
		},
		Internal: bootstrap.Internal{SystemNamespace: systemNamespace},
	}
	if spec.AgentNamespace != "" {
		v.Internal.SystemNamespace = spec.AgentNamespace
	}
	if custom := spec.AgentSchedulingCustomization; custom != nil {
		v.FleetAgent.PriorityClass, v.FleetAgent.PodDisruptionBudget = custom.PriorityClass, custom.PodDisruptionBudget
	}
	registry := strings.TrimSuffix(agent.Registry, "/")
	v.Image = splitImage(strings.TrimPrefix(agent.Image, registry+"/"))
	v.Image.ImagePullPolicy = agent.ImagePullPolicy
	v.Global.Cattle.SystemDefaultRegistry = registry
	if spec.PrivateRepoURL != "" {
		v.Global.Cattle.SystemDefaultRegistry = spec.PrivateRepoURL
	}
	if spec.AgentPullSecrets != nil {
		for _, secret := range *spec.AgentPullSecrets {
			v.Global.ImagePullSecrets = append(v.Global.ImagePullSecrets, secret.Name)
		}
	} else {
		v.Global.ImagePullSecrets = agent.PullSecrets
	}
	return v
}

// duration formats a duration as the values of the chart do: 15m, not 15m0s. The Pods of the agent
// have a digest of their configuration, so another text for the same duration would restart them.
func duration(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-len("0s")]
		}
	}
	return text
}

// Generation returns the value that distinguishes two installations of the agent.
func Generation(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// Namespace returns the namespace of the agent.
func (v Values) Namespace() string { return v.Internal.SystemNamespace }

// Hash returns a digest of the settings. It leaves out the labels, because they count only at the
// creation of a Cluster. It leaves out the Bootstrap, because the agent drops it after
// registration.
func (v Values) Hash() string {
	v.Bootstrap, v.Labels, v.Internal.Generation = nil, nil, ""
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain data: an error is a bug in this program
	}
	return naming.Digest(text)
}

// splitImage splits a reference at its tag or within its digest; the chart joins it the same way.
func splitImage(reference string) image {
	if at := strings.LastIndex(reference, ":"); at > strings.LastIndex(reference, "/") {
		return image{Repository: reference[:at], Tag: reference[at+1:]}
	}
	return image{Repository: reference}
}

// labels returns the Cluster's labels without labels internal to Rancher and kubectl.
func labels(all map[string]string) map[string]string {
	kept := map[string]string{}
	for key, value := range all {
		if !strings.Contains(key, "cattle.io/") && !strings.HasPrefix(key, "kubectl.kubernetes.io/") {
			kept[key] = value
		}
	}
	return kept
}
