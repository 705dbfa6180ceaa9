// Package settings holds the hub's settings, which the fleet chart writes to the ConfigMap fleet-controller.
//
// It writes nothing but Events on the ConfigMap. Its invariant: Current returns only settings that parsed. An invalid ConfigMap leaves the last valid
// settings in force, a deleted one the defaults, as after a restart.
package settings

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
	"github.com/muster-fleet/muster/internal/naming"
)

// Config are the settings. The zero value is not valid; see Default.
type Config struct {
	// APIServerURL is where members reach the hub; empty if each member's chart says it.
	APIServerURL string
	// APIServerCA is the PEM bundle that goes with it; empty likewise.
	APIServerCA string
	// AgentTLSMode is strict or system-store; empty if each member's chart says it.
	AgentTLSMode string
	// AgentCheckinInterval is how often upstream agents prove that they are alive.
	AgentCheckinInterval time.Duration
	// AgentTokenLifetime is how long a credential issued to an agent lives; the hub renews it every day.
	AgentTokenLifetime time.Duration
	// ForceDeleteWaitTime is how long a leaving member from which everything is deleted waits for its agent's answer.
	ForceDeleteWaitTime time.Duration
	// IgnoreClusterRegistrationLabels drops all labels that agents ask for.
	IgnoreClusterRegistrationLabels bool
	// RegistrationTokenTTLRequired refuses tokens that never expire.
	RegistrationTokenTTLRequired bool
	// Registration bounds what requests may cost.
	Registration Registration
	// Audit says which AuditEntries are kept.
	Audit Audit
	// ManageAgent lets the hub keep the agents of Clusters up to date.
	ManageAgent bool
	// Agent is how the hub installs agents.
	Agent Agent
	// InventoryNamespace is where the ClusterProfiles of members are; empty switches the inventory off.
	InventoryNamespace string
	// InventoryInFleetSystem has the ClusterProfiles in namespace fleet-system, too, where KubeFleet's
	// hub keeps them.
	InventoryInFleetSystem bool
	// InventoryClusterSet is the ClusterSet that all members belong to.
	InventoryClusterSet string
	// PlacementAuthorRights says which placements are read with the rights of their authors.
	PlacementAuthorRights string
	// Bootstrap is the hub as a member of its own fleet.
	Bootstrap Bootstrap
	// Mappings says what a BundleNamespaceMapping needs to open a namespace.
	Mappings Mappings
	// RemovalShare is of how many percent of those that have something it may be taken without
	// being confirmed; 100 turns that off.
	RemovalShare int
	// ImportLoopback lets kubeconfigs lead to loopback addresses, which are the hub's own machine.
	ImportLoopback bool
	// Missing: there is no ConfigMap. The settings before stay in force. Unknown: this hub has read none, so that these are the defaults, by which
	// nothing is done that another setting might forbid.
	Missing, Unknown bool
}

// Bootstrap says how the hub is registered as a cluster of its own fleet.
type Bootstrap struct {
	// Namespace is the workspace of the Cluster; empty switches it off.
	Namespace string `json:"namespace"`
	// AgentNamespace is where its agent runs; by default the hub's system namespace.
	AgentNamespace string `json:"agentNamespace"`
	// LocalAgentDisabled leaves the agent to somebody else.
	LocalAgentDisabled bool `json:"localAgentDisabled"`
	// ClusterLabels are put on the Cluster.
	ClusterLabels map[string]string `json:"clusterLabels"`
	// AgentTolerations are those of the hub itself.
	AgentTolerations []corev1.Toleration `json:"agentTolerations"`
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
		AgentCheckinInterval: 15 * time.Minute, AgentTokenLifetime: 7 * 24 * time.Hour, ForceDeleteWaitTime: 15 * time.Minute,
		InventoryNamespace: "fleet-inventory", InventoryClusterSet: "default", ManageAgent: true,
		PlacementAuthorRights: AuthorRightsEnforce, RemovalShare: 20,
		Registration: Registration{Displacement: DisplaceApproved, RequestLifetime: time.Hour, NewClusterLifetime: 24 * time.Hour,
			MaxWaitingPerToken: 100, MaxWaitingPerWorkspace: 1000, MaxQueuedPerToken: 10_000, MaxNewClustersPerToken: 2000},
		Audit: Audit{MaxAge: 90 * 24 * time.Hour, MaxEntries: 1000},
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
	Registration wireRegistration `json:"registration"`
	Audit        wireAudit        `json:"audit"`
	ManageAgent  *bool            `json:"manageAgent"`
	wireAgent    `json:",inline"`
	Inventory    inventory `json:"inventory"`
	// BundleNamespaceMappings is consent or open.
	BundleNamespaceMappings        string `json:"bundleNamespaceMappings"`
	BundleNamespaceMappingsToLocal bool   `json:"bundleNamespaceMappingsToLocal"`
	ImportLoopback                 bool   `json:"importLoopback"`
	Placement                      struct {
		AuthorRights string `json:"authorRights"`
	} `json:"placement"`
	RemovalBrake wireRemovalBrake `json:"removalBrake"`
	Bootstrap    Bootstrap        `json:"bootstrap"`
}

type inventory struct {
	Namespace         string `json:"namespace"`
	AlsoInFleetSystem bool   `json:"alsoInFleetSystem"`
	ClusterSet        string `json:"clusterSet"`
}

// InventoryNamespaces returns where the ClusterProfiles of members are; nothing if the inventory is off.
func (c Config) InventoryNamespaces() []string {
	switch {
	case c.InventoryNamespace == "":
		return nil
	case c.InventoryInFleetSystem && c.InventoryNamespace != naming.MemberSystemNamespace:
		return []string{c.InventoryNamespace, naming.MemberSystemNamespace}
	}
	return []string{c.InventoryNamespace}
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
	if err := in.parseBounds(&parsed); err != nil {
		return Config{}, err
	}
	parsed.InventoryNamespace, parsed.InventoryClusterSet = in.Inventory.Namespace, in.Inventory.ClusterSet
	parsed.InventoryInFleetSystem = in.Inventory.AlsoInFleetSystem
	parsed.ForceDeleteWaitTime = in.ForceDeleteWaitTime.Duration
	parsed.APIServerCA, parsed.AgentTLSMode = string(ca), in.AgentTLSMode
	parsed.AgentTokenLifetime = in.AgentTokenLifetime.Duration
	parsed.IgnoreClusterRegistrationLabels = in.IgnoreClusterRegistrationLabels
	parsed.RegistrationTokenTTLRequired = in.RegistrationTokenTTL.Required
	parsed.Bootstrap = in.Bootstrap
	if parsed.Bootstrap.Namespace == "-" { // how upstream writes that it is off
		parsed.Bootstrap.Namespace = ""
	}
	if parsed.Mappings, err = in.mappings(parsed.Bootstrap.Namespace); err != nil {
		return Config{}, err
	}
	parsed.ImportLoopback = in.ImportLoopback
	parsed.Agent = in.parse(in.AgentTLSMode)
	parsed.ManageAgent = in.ManageAgent == nil || *in.ManageAgent
	return parsed, nil
}

// parseBounds reads what is allowed to authors, requests and removals, and what is kept of the
// audit.
func (in wire) parseBounds(into *Config) (err error) {
	if into.PlacementAuthorRights, err = parseAuthorRights(in.Placement.AuthorRights); err != nil {
		return err
	}
	if into.Registration, err = in.Registration.parse(into.Registration); err != nil {
		return err
	}
	if into.RemovalShare, err = in.RemovalBrake.parse(into.RemovalShare); err != nil {
		return err
	}
	into.Audit, err = in.Audit.parse(into.Audit)
	return err
}

// The values of bundleNamespaceMappings.
const (
	MappingsConsent = "consent"
	MappingsOpen    = "open"
)

// upstreamLocal is the default workspace of the hub's own Cluster. Objects in it stay when the bootstrap is switched off.
const upstreamLocal = "fleet-local"

// Mappings says which namespaces a BundleNamespaceMapping may open.
type Mappings struct {
	// Open lets a mapping open every namespace that it selects, as upstream does; else the namespace has to consent.
	Open bool
	// Local is the workspace of the Cluster that is the hub itself.
	Local string
	// ToLocal lets mappings open that workspace, too, if it consents.
	ToLocal bool
}

// IsLocal says whether a namespace is a workspace of the hub itself.
func (m Mappings) IsLocal(namespace string) bool {
	return namespace == m.Local || namespace == upstreamLocal
}

func (in wire) mappings(local string) (Mappings, error) {
	switch in.BundleNamespaceMappings {
	case "", MappingsConsent, MappingsOpen:
		return Mappings{Open: in.BundleNamespaceMappings == MappingsOpen, Local: local, ToLocal: in.BundleNamespaceMappingsToLocal}, nil
	}
	return Mappings{}, fmt.Errorf("bundleNamespaceMappings %q: want %s or %s", in.BundleNamespaceMappings, MappingsConsent, MappingsOpen)
}

// The values of placement.authorRights: which placements select objects with the rights of their author, and not with the hub's.
const (
	// AuthorRightsEnforce, the default: all placements.
	AuthorRightsEnforce = "enforce"
	// AuthorRightsNamespaced: ResourcePlacements; the author of a ClusterResourcePlacement is trusted.
	AuthorRightsNamespaced = "namespaced"
	// AuthorRightsIgnore: none.
	AuthorRightsIgnore = "ignore"
)

// parseAuthorRights reads placement.authorRights; empty is the default.
func parseAuthorRights(text string) (string, error) {
	switch text {
	case "":
		return AuthorRightsEnforce, nil
	case AuthorRightsEnforce, AuthorRightsNamespaced, AuthorRightsIgnore:
		return text, nil
	}
	return "", fmt.Errorf("placement.authorRights %q: want %s, %s or %s", text, AuthorRightsEnforce, AuthorRightsNamespaced, AuthorRightsIgnore)
}
