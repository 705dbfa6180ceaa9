// Package settings holds the hub's settings. The fleet chart writes them to the ConfigMap
// fleet-controller.
//
// Settings writes nothing but Events on the ConfigMap. Its invariant: Current returns only settings
// without an error in Parse. After an invalid or deleted ConfigMap the last valid settings stay in
// force. A hub started without a ConfigMap has the defaults.
package settings

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/muster-fleet/muster/internal/fleet/facts"
	"github.com/muster-fleet/muster/internal/naming"
)

// Config holds the settings. The zero value is not valid; see Default.
type Config struct {
	// APIServerURL is the address of the hub for members; empty if each member's chart sets it.
	APIServerURL string
	// APIServerCA is the PEM bundle for APIServerURL; empty likewise.
	APIServerCA string
	// Fallbacks are further addresses of the hub; see HubAddress.
	Fallbacks Fallbacks
	// AgentTLSMode is strict or system-store; empty if each member's chart sets it.
	AgentTLSMode string
	// AgentCheckinInterval is the heartbeat period of upstream agents.
	AgentCheckinInterval time.Duration
	// AgentTokenLifetime is the life of a credential issued to an agent; the hub renews it every day.
	AgentTokenLifetime time.Duration
	// ForceDeleteWaitTime bounds the wait for the agent's answer while a member leaves with deletion
	// of its workloads.
	ForceDeleteWaitTime time.Duration
	// IgnoreClusterRegistrationLabels drops all labels requested by agents.
	IgnoreClusterRegistrationLabels bool
	// RegistrationTokenTTLRequired refuses tokens without an expiry.
	RegistrationTokenTTLRequired bool
	// Registration bounds the cost of requests.
	Registration Registration
	// Audit limits the number and age of AuditEntries.
	Audit Audit
	// ManageAgent lets the hub keep the agents of Clusters up to date.
	ManageAgent bool
	// Agent holds the settings of agents installed by the hub.
	Agent Agent
	// InventoryNamespace is the namespace of the members' ClusterProfiles; empty turns the inventory
	// off.
	InventoryNamespace string
	// InventoryInFleetSystem adds the ClusterProfiles to namespace fleet-system, as with KubeFleet's
	// hub.
	InventoryInFleetSystem bool
	// PlacementDecisions shows the members of placements and ClusterGroups as PlacementDecisions. It
	// takes an inventory.
	PlacementDecisions bool
	// InventoryClusterSet is the ClusterSet of all members.
	InventoryClusterSet string
	// LabelsFromFacts lists the facts of members to copy into labels of Clusters and MemberClusters.
	LabelsFromFacts []string
	// ClusterAPI is the rule for the metadata of Clusters registered from Cluster API.
	ClusterAPI ClusterAPI
	// Access holds the places of the kubeconfigs for other tools.
	Access Access
	// PlacementAuthorRights selects the placements that the hub reads with the rights of their
	// authors.
	PlacementAuthorRights string
	// Bootstrap registers the hub as a member of its own fleet.
	Bootstrap Bootstrap
	// Mappings sets the conditions for a BundleNamespaceMapping to open a namespace.
	Mappings Mappings
	// RemovalShare is the percentage of holders that may lose an object without a confirmation; 100
	// turns the check off.
	RemovalShare int
	// LostMembers sets the treatment of members without heartbeats; by default none.
	LostMembers LostMembers
	// HealthCheck sets how many results in a row change the health of a member.
	HealthCheck HealthCheck
	// ImportLoopback permits kubeconfigs with loopback addresses. Such addresses lead to the hub's own
	// machine.
	ImportLoopback bool
	// Notifications lists the receivers of notifications about members.
	Notifications []Sink
	// Missing: there is no ConfigMap, and the previous settings stay in force. Unknown: this hub has
	// read none, and these are the defaults. The hub then does nothing that another setting might
	// forbid.
	Missing, Unknown bool
}

// Bootstrap holds the settings of the hub's registration as a cluster of its own fleet.
type Bootstrap struct {
	// Namespace is the workspace of the Cluster; empty turns the bootstrap off.
	Namespace string `json:"namespace"`
	// AgentNamespace is the namespace of its agent; by default the hub's system namespace.
	AgentNamespace string `json:"agentNamespace"`
	// LocalAgentDisabled leaves the installation of the agent to the user.
	LocalAgentDisabled bool `json:"localAgentDisabled"`
	// ClusterLabels are the labels of the Cluster.
	ClusterLabels map[string]string `json:"clusterLabels"`
	// AgentTolerations are the tolerations of the hub itself.
	AgentTolerations []corev1.Toleration `json:"agentTolerations"`
}

// Default returns the settings for an absent ConfigMap or key.
func Default() Config {
	return Config{
		AgentCheckinInterval: 15 * time.Minute, AgentTokenLifetime: 7 * 24 * time.Hour, ForceDeleteWaitTime: 15 * time.Minute,
		InventoryNamespace: "fleet-inventory", InventoryClusterSet: "default", ManageAgent: true,
		PlacementAuthorRights: AuthorRightsEnforce, RemovalShare: 20, HealthCheck: HealthCheck{FailureThreshold: 1, SuccessThreshold: 1},
		Registration: Registration{Displacement: DisplaceApproved, RequestLifetime: time.Hour, NewClusterLifetime: 24 * time.Hour,
			MaxWaitingPerToken: 100, MaxWaitingPerWorkspace: 1000, MaxQueuedPerToken: 10_000, MaxNewClustersPerToken: 2000},
		Audit: Audit{MaxAge: 90 * 24 * time.Hour, MaxEntries: 1000},
		Agent: Agent{TLSMode: TLSSystemStore, GarbageCollectionInterval: 15 * time.Minute},
	}
}

// minTokenLifetime is the shortest life granted by the TokenRequest API.
const minTokenLifetime = 10 * time.Minute

// The range of forceDeleteWaitTime, as upstream.
const (
	minForceDeleteWait = 30 * time.Second
	maxForceDeleteWait = time.Hour
)

// wire is the content of the key `config`: JSON or YAML, with upstream's names. Parse ignores keys
// unknown to Muster.
type wire struct {
	APIServerURL                    string `json:"apiServerURL"`
	APIServerCA                     string `json:"apiServerCA"`
	wireFallbacks                   `json:",inline"`
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
	Facts        struct {
		Labels []string `json:"labels"`
	} `json:"facts"`
	ClusterAPI wireClusterAPI `json:"clusterAPI"`
	Access     wireAccess     `json:"access"`
	// BundleNamespaceMappings is consent or open.
	BundleNamespaceMappings        string `json:"bundleNamespaceMappings"`
	BundleNamespaceMappingsToLocal bool   `json:"bundleNamespaceMappingsToLocal"`
	ImportLoopback                 bool   `json:"importLoopback"`
	Placement                      struct {
		AuthorRights string `json:"authorRights"`
	} `json:"placement"`
	RemovalBrake  wireRemovalBrake `json:"removalBrake"`
	LostMembers   wireLostMembers  `json:"lostMembers"`
	HealthCheck   wireHealthCheck  `json:"healthCheck"`
	Notifications []wireSink       `json:"notifications"`
	Bootstrap     Bootstrap        `json:"bootstrap"`
}

type inventory struct {
	Namespace         string `json:"namespace"`
	AlsoInFleetSystem bool   `json:"alsoInFleetSystem"`
	ClusterSet        string `json:"clusterSet"`
	// PlacementDecisions is on or off.
	PlacementDecisions bool `json:"placementDecisions"`
}

// InventoryNamespaces returns the namespaces of the members' ClusterProfiles; none if the inventory
// is off.
func (c Config) InventoryNamespaces() []string {
	switch {
	case c.InventoryNamespace == "":
		return nil
	case c.InventoryInFleetSystem && c.InventoryNamespace != naming.MemberSystemNamespace:
		return []string{c.InventoryNamespace, naming.MemberSystemNamespace}
	}
	return []string{c.InventoryNamespace}
}

// problem returns the fault in the settings of the inventory, or "".
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
	given := wire{
		AgentCheckinInterval: metav1.Duration{Duration: parsed.AgentCheckinInterval},
		AgentTokenLifetime:   metav1.Duration{Duration: parsed.AgentTokenLifetime},
		ForceDeleteWaitTime:  metav1.Duration{Duration: parsed.ForceDeleteWaitTime},
		wireAgent:            wireAgent{GarbageCollectionInterval: metav1.Duration{Duration: parsed.Agent.GarbageCollectionInterval}},
		Inventory:            inventory{Namespace: parsed.InventoryNamespace, ClusterSet: parsed.InventoryClusterSet},
	}
	if err := yaml.Unmarshal([]byte(text), &given); err != nil {
		return Config{}, fmt.Errorf("reading key config: %w", err)
	}
	if err := given.parseAddresses(&parsed); err != nil {
		return Config{}, err
	}
	if mode := given.AgentTLSMode; mode != "" && mode != TLSStrict && mode != TLSSystemStore {
		return Config{}, fmt.Errorf("agentTLSMode %q: want %s or %s", mode, TLSStrict, TLSSystemStore)
	}
	if given.AgentCheckinInterval.Duration > 0 {
		parsed.AgentCheckinInterval = given.AgentCheckinInterval.Duration
	}
	if given.AgentTokenLifetime.Duration < minTokenLifetime {
		return Config{}, fmt.Errorf("agentTokenLifetime %s: want at least %s", given.AgentTokenLifetime.Duration, minTokenLifetime)
	}
	if wait := given.ForceDeleteWaitTime.Duration; wait < minForceDeleteWait || wait > maxForceDeleteWait {
		return Config{}, fmt.Errorf("forceDeleteWaitTime %s: want between %s and %s", wait, minForceDeleteWait, maxForceDeleteWait)
	}
	if problem := given.Inventory.problem(); problem != "" {
		return Config{}, errors.New(problem)
	}
	if err := given.parseBounds(&parsed); err != nil {
		return Config{}, err
	}
	parsed.InventoryNamespace, parsed.InventoryClusterSet = given.Inventory.Namespace, given.Inventory.ClusterSet
	parsed.InventoryInFleetSystem = given.Inventory.AlsoInFleetSystem
	parsed.PlacementDecisions = given.Inventory.PlacementDecisions && given.Inventory.Namespace != ""
	parsed.ForceDeleteWaitTime = given.ForceDeleteWaitTime.Duration
	parsed.AgentTLSMode = given.AgentTLSMode
	parsed.AgentTokenLifetime = given.AgentTokenLifetime.Duration
	parsed.IgnoreClusterRegistrationLabels = given.IgnoreClusterRegistrationLabels
	parsed.RegistrationTokenTTLRequired = given.RegistrationTokenTTL.Required
	parsed.Bootstrap = given.Bootstrap
	if parsed.Bootstrap.Namespace == "-" { // upstream's value for off
		parsed.Bootstrap.Namespace = ""
	}
	var err error
	if parsed.Mappings, err = given.mappings(parsed.Bootstrap.Namespace); err != nil {
		return Config{}, err
	}
	parsed.ImportLoopback = given.ImportLoopback
	parsed.Agent = given.parse(given.AgentTLSMode)
	parsed.ManageAgent = given.ManageAgent == nil || *given.ManageAgent
	return parsed, nil
}

// parseBounds reads the limits for authors, requests, removals, lost members, labels, other tools
// and the audit, and the receivers of notifications.
func (w wire) parseBounds(into *Config) (err error) {
	if into.PlacementAuthorRights, err = parseAuthorRights(w.Placement.AuthorRights); err != nil {
		return err
	}
	if into.Registration, err = w.Registration.parse(into.Registration); err != nil {
		return err
	}
	if into.RemovalShare, err = w.RemovalBrake.parse(into.RemovalShare); err != nil {
		return err
	}
	if into.LostMembers, err = w.LostMembers.parse(); err != nil {
		return err
	}
	if into.HealthCheck, err = w.HealthCheck.parse(into.HealthCheck); err != nil {
		return err
	}
	if problem := facts.Problem(w.Facts.Labels); problem != "" {
		return errors.New("facts.labels: " + problem)
	}
	into.LabelsFromFacts = w.Facts.Labels
	if into.ClusterAPI, err = w.ClusterAPI.parse(); err != nil {
		return err
	}
	if into.Notifications, err = parseSinks(w.Notifications); err != nil {
		return err
	}
	if into.Access, err = w.Access.parse(); err != nil {
		return err
	}
	into.Audit, err = w.Audit.parse(into.Audit)
	return err
}

// The values of placement.authorRights. They select the placements that read objects with the
// rights of their author instead of the hub's.
const (
	// AuthorRightsEnforce, the default: all placements.
	AuthorRightsEnforce = "enforce"
	// AuthorRightsNamespaced: ResourcePlacements; the hub trusts the author of a
	// ClusterResourcePlacement.
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
	return "", fmt.Errorf("placement.authorRights %q: want %s, %s or %s",
		text, AuthorRightsEnforce, AuthorRightsNamespaced, AuthorRightsIgnore)
}
