// Package config holds the hub's settings, which the fleet chart writes to the ConfigMap fleet-controller.
//
// It owns nothing in the cluster. Its invariant: Current never returns settings that did not parse; a broken ConfigMap leaves
// the last good ones in force and says so in an Event on it. One that is deleted means at once what it means after a restart: the defaults.
package config

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
)

// Config is what the hub needs to know. The zero value is not valid; see Default.
type Config struct {
	// APIServerURL is the hub's URL as members reach it; empty if each member's chart says it.
	APIServerURL string
	// APIServerCA is the PEM bundle that goes with it; empty likewise.
	APIServerCA string
	// AgentTLSMode is strict or system-store; empty if each member's chart says it.
	AgentTLSMode string
	// AgentCheckinInterval is how often upstream agents prove that they are alive.
	AgentCheckinInterval time.Duration
	// AgentTokenLifetime is how long a credential issued to an agent lives; the agent renews it at two thirds.
	AgentTokenLifetime time.Duration
	// ForceDeleteWaitTime is how long a member that is to be emptied when it leaves waits for its agent's answer.
	ForceDeleteWaitTime time.Duration
	// IgnoreClusterRegistrationLabels drops all labels that agents ask for.
	IgnoreClusterRegistrationLabels bool
	// RegistrationTokenTTLRequired refuses tokens that never expire.
	RegistrationTokenTTLRequired bool
	// ManageAgent lets the hub keep the agents of Clusters up to date.
	ManageAgent bool
	// Agent is how the hub installs agents.
	Agent Agent
	// InventoryNamespace is where the ClusterProfiles of members are; empty switches the inventory off.
	InventoryNamespace string
	// InventoryClusterSet is the ClusterSet that all members belong to.
	InventoryClusterSet string
	// Bootstrap is the hub as a member of its own fleet.
	Bootstrap Bootstrap
	// Missing says that there is no ConfigMap, so that everything is the default and nobody knows where members reach the hub.
	Missing bool
}

// Bootstrap says how the hub is registered as a cluster of its own fleet.
type Bootstrap struct {
	// Namespace is the workspace of the Cluster; empty switches it off.
	Namespace string
	// AgentNamespace is where its agent runs; by default the hub's system namespace.
	AgentNamespace string
	// LocalAgentDisabled leaves the agent to somebody else.
	LocalAgentDisabled bool
	// ClusterLabels are put on the Cluster.
	ClusterLabels map[string]string
	// AgentTolerations are those of the hub itself.
	AgentTolerations []corev1.Toleration
}

// Hub is where members reach the hub; nil if each member's chart says it, and then agentTLSMode is the chart's too.
func (c Config) Hub() *clusterv1beta1.HubAddress {
	if c.APIServerURL == "" && c.APIServerCA == "" {
		return nil
	}
	return &clusterv1beta1.HubAddress{APIServerURL: c.APIServerURL, APIServerCA: c.APIServerCA, AgentTLSMode: c.AgentTLSMode}
}

// Default is what an absent ConfigMap or key means.
func Default() Config {
	return Config{
		AgentCheckinInterval: 15 * time.Minute, AgentTokenLifetime: 30 * 24 * time.Hour, ForceDeleteWaitTime: 15 * time.Minute,
		InventoryNamespace: "fleet-inventory", InventoryClusterSet: "default", ManageAgent: true,
		Agent: Agent{TLSMode: TLSSystemStore, GarbageCollectionInterval: 15 * time.Minute},
	}
}

// minTokenLifetime is the shortest life that the TokenRequest API grants.
const minTokenLifetime = 10 * time.Minute

// The range of forceDeleteWaitTime, as upstream has it.
const (
	minForceDeleteWait = 30 * time.Second
	maxForceDeleteWait = time.Hour
)

// wire is the content of the key `config`: JSON or YAML, with upstream's names. Keys that Muster does not use are ignored.
type wire struct {
	APIServerURL                    string          `json:"apiServerURL"`
	APIServerCA                     string          `json:"apiServerCA"`
	AgentTLSMode                    string          `json:"agentTLSMode"`
	AgentCheckinInterval            metav1.Duration `json:"agentCheckinInterval"`
	AgentTokenLifetime              metav1.Duration `json:"agentTokenLifetime"`
	ForceDeleteWaitTime             metav1.Duration `json:"forceDeleteWaitTime"`
	IgnoreClusterRegistrationLabels bool            `json:"ignoreClusterRegistrationLabels"`
	RegistrationTokenTTL            struct {
		Required bool `json:"required"`
	} `json:"registrationTokenTTL"`
	ManageAgent *bool `json:"manageAgent"`
	wireAgent   `json:",inline"`
	Inventory   inventory `json:"inventory"`
	Bootstrap   struct {
		Namespace          string              `json:"namespace"`
		AgentNamespace     string              `json:"agentNamespace"`
		LocalAgentDisabled bool                `json:"localAgentDisabled"`
		ClusterLabels      map[string]string   `json:"clusterLabels"`
		AgentTolerations   []corev1.Toleration `json:"agentTolerations"`
	} `json:"bootstrap"`
}

type inventory struct {
	Namespace  string `json:"namespace"`
	ClusterSet string `json:"clusterSet"`
}

// problem says what is wrong with the settings of the inventory, or "".
func (i inventory) problem() string {
	if i.Namespace == "" {
		return ""
	}
	if problems := validation.IsDNS1123Label(i.Namespace); len(problems) > 0 {
		return fmt.Sprintf("inventory.namespace %q: %s", i.Namespace, problems[0])
	}
	if i.ClusterSet == "" {
		return "inventory.clusterSet is empty: name the ClusterSet, or leave it out for default"
	}
	if problems := validation.IsValidLabelValue(i.ClusterSet); len(problems) > 0 {
		return fmt.Sprintf("inventory.clusterSet %q: %s", i.ClusterSet, problems[0])
	}
	return ""
}

// Parse reads the key `config` of the ConfigMap.
func Parse(text string) (Config, error) {
	parsed := Default()
	in := wire{
		AgentCheckinInterval: metav1.Duration{Duration: parsed.AgentCheckinInterval},
		AgentTokenLifetime:   metav1.Duration{Duration: parsed.AgentTokenLifetime},
		ForceDeleteWaitTime:  metav1.Duration{Duration: parsed.ForceDeleteWaitTime},
		wireAgent:            wireAgent{GarbageCollectionInterval: metav1.Duration{Duration: parsed.Agent.GarbageCollectionInterval}},
		Inventory:            inventory{Namespace: parsed.InventoryNamespace, ClusterSet: parsed.InventoryClusterSet},
	}
	if err := yaml.Unmarshal([]byte(text), &in); err != nil {
		return Config{}, fmt.Errorf("reading key config: %w", err)
	}
	if in.APIServerURL != "" {
		var err error
		if parsed.APIServerURL, err = credential.ParseServer(in.APIServerURL); err != nil {
			return Config{}, fmt.Errorf("apiServerURL %q: %w", in.APIServerURL, err)
		}
	}
	ca, err := credential.ParseCA(in.APIServerCA)
	if err != nil {
		return Config{}, fmt.Errorf("apiServerCA: %w", err)
	}
	if mode := in.AgentTLSMode; mode != "" && mode != TLSStrict && mode != TLSSystemStore {
		return Config{}, fmt.Errorf("agentTLSMode %q: want %s or %s", mode, TLSStrict, TLSSystemStore)
	}
	if in.AgentCheckinInterval.Duration > 0 {
		parsed.AgentCheckinInterval = in.AgentCheckinInterval.Duration
	}
	if in.AgentTokenLifetime.Duration < minTokenLifetime {
		return Config{}, fmt.Errorf("agentTokenLifetime %s: want at least %s", in.AgentTokenLifetime.Duration, minTokenLifetime)
	}
	if wait := in.ForceDeleteWaitTime.Duration; wait < minForceDeleteWait || wait > maxForceDeleteWait {
		return Config{}, fmt.Errorf("forceDeleteWaitTime %s: want between %s and %s", wait, minForceDeleteWait, maxForceDeleteWait)
	}
	if problem := in.Inventory.problem(); problem != "" {
		return Config{}, errors.New(problem)
	}
	parsed.InventoryNamespace, parsed.InventoryClusterSet = in.Inventory.Namespace, in.Inventory.ClusterSet
	parsed.ForceDeleteWaitTime = in.ForceDeleteWaitTime.Duration
	parsed.APIServerCA, parsed.AgentTLSMode = string(ca), in.AgentTLSMode
	parsed.AgentTokenLifetime = in.AgentTokenLifetime.Duration
	parsed.IgnoreClusterRegistrationLabels = in.IgnoreClusterRegistrationLabels
	parsed.RegistrationTokenTTLRequired = in.RegistrationTokenTTL.Required
	parsed.Bootstrap = Bootstrap(in.Bootstrap)
	if parsed.Bootstrap.Namespace == "-" { // how upstream writes that it is off
		parsed.Bootstrap.Namespace = ""
	}
	parsed.Agent = in.parse(in.AgentTLSMode)
	parsed.ManageAgent = in.ManageAgent == nil || *in.ManageAgent
	return parsed, nil
}
