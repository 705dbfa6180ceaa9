// Package config holds the hub's settings, which the fleet chart writes to the ConfigMap fleet-controller.
//
// It owns nothing in the cluster. Its invariant: Current never returns settings that did not parse; a broken ConfigMap leaves
// the last good ones in force and says so in an Event on it.
package config

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/muster-fleet/muster/internal/credential"
)

// Config is what the hub needs to know. The zero value is not valid; see Default.
type Config struct {
	// APIServerURL is the hub's URL as members reach it; empty if each member's chart says it.
	APIServerURL string
	// APIServerCA is the PEM bundle that goes with it; empty likewise.
	APIServerCA string
	// AgentCheckinInterval is how often upstream agents prove that they are alive.
	AgentCheckinInterval time.Duration
	// AgentTokenLifetime is how long a credential issued to an agent lives; the agent renews it at two thirds.
	AgentTokenLifetime time.Duration
	// ForceDeleteWaitTime is how long a MemberCluster that is deleted waits for its agent's answer.
	ForceDeleteWaitTime time.Duration
	// IgnoreClusterRegistrationLabels drops all labels that agents ask for.
	IgnoreClusterRegistrationLabels bool
	// RegistrationTokenTTLRequired refuses tokens that never expire.
	RegistrationTokenTTLRequired bool
	// InventoryNamespace is where the ClusterProfiles of members are; empty switches the inventory off.
	InventoryNamespace string
	// InventoryClusterSet is the ClusterSet that all members belong to.
	InventoryClusterSet string
}

// Default is what an absent ConfigMap or key means.
func Default() Config {
	return Config{
		AgentCheckinInterval: 15 * time.Minute, AgentTokenLifetime: 30 * 24 * time.Hour, ForceDeleteWaitTime: 15 * time.Minute,
		InventoryNamespace: "fleet-inventory", InventoryClusterSet: "default",
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
	AgentCheckinInterval            metav1.Duration `json:"agentCheckinInterval"`
	AgentTokenLifetime              metav1.Duration `json:"agentTokenLifetime"`
	ForceDeleteWaitTime             metav1.Duration `json:"forceDeleteWaitTime"`
	IgnoreClusterRegistrationLabels bool            `json:"ignoreClusterRegistrationLabels"`
	RegistrationTokenTTL            struct {
		Required bool `json:"required"`
	} `json:"registrationTokenTTL"`
	Inventory inventory `json:"inventory"`
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
		Inventory:            inventory{Namespace: parsed.InventoryNamespace, ClusterSet: parsed.InventoryClusterSet},
	}
	if err := yaml.Unmarshal([]byte(text), &in); err != nil {
		return Config{}, fmt.Errorf("reading key config: %w", err)
	}
	if in.APIServerURL != "" {
		if u, err := url.Parse(in.APIServerURL); err != nil || u.Scheme != "https" || u.Host == "" {
			return Config{}, fmt.Errorf("apiServerURL %q: want https://host[:port]", in.APIServerURL)
		}
	}
	ca, err := credential.ParseCA(in.APIServerCA)
	if err != nil {
		return Config{}, fmt.Errorf("apiServerCA: %w", err)
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
	parsed.APIServerURL, parsed.APIServerCA = in.APIServerURL, string(ca)
	parsed.AgentTokenLifetime = in.AgentTokenLifetime.Duration
	parsed.IgnoreClusterRegistrationLabels = in.IgnoreClusterRegistrationLabels
	parsed.RegistrationTokenTTLRequired = in.RegistrationTokenTTL.Required
	return parsed, nil
}
