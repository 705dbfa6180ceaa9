package importer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/config"
	"github.com/muster-fleet/muster/internal/kube"
)

// quietWait is how short a wait for a turn is not worth a write.
const quietWait = 2 * time.Second

// describeProblem is the status of a Cluster that cannot be imported.
func describeProblem(before fleet.ClusterStatus, o observed, why need, h history, now time.Time) fleet.ClusterStatus {
	after := *before.DeepCopy()
	message := h.problem.message + "; tried again when the Cluster, the Secret or the hub's settings change"
	if !h.problem.input {
		message = fmt.Sprintf("%s; next try at %s", h.problem.message, h.next.UTC().Format(time.RFC3339))
	}
	after.Conditions = kube.SetCondition(after.Conditions, now, kube.Condition(fleet.ConditionImported, false, h.problem.reason, message))
	after.AgentConfigChanged = o.last != nil && why != needHealing
	return after
}

// describeTurn is the status of a Cluster that waits for its turn to be imported again.
func describeTurn(before fleet.ClusterStatus, why need, turn, now time.Time) fleet.ClusterStatus {
	after := *before.DeepCopy()
	if why == needHealing || turn.Sub(now) < quietWait {
		return after
	}
	after.Conditions = kube.SetCondition(after.Conditions, now, kube.Condition(fleet.ConditionImported, true, reasonImported,
		"what the agent is installed with has changed: it is installed again at "+turn.UTC().Format(time.RFC3339)))
	after.AgentConfigChanged = true
	return after
}

// describeRest is the status of a Cluster that needs no import, such as one whose agent came back by itself.
func describeRest(before fleet.ClusterStatus, spec fleet.ClusterSpec, settings config.Agent, o observed, now time.Time) fleet.ClusterStatus {
	after := *before.DeepCopy()
	if o.asked && o.last != nil && o.bundled() && o.settings != o.last.SettingsHash {
		if o.delivered != o.settings {
			after.AgentConfigChanged = true
			return after
		}
		after.Import.SettingsHash = o.settings
		describeSettings(&after, spec, settings)
	}
	imported := kube.FindCondition(after.Conditions, fleet.ConditionImported)
	if !o.asked || o.last == nil || o.agent != agentWell || imported == nil || (imported.Status == corev1.ConditionTrue && !after.AgentConfigChanged) {
		return after
	}
	after.Conditions = kube.SetCondition(after.Conditions, now, kube.Condition(fleet.ConditionImported, true, reasonImported, ""))
	after.AgentConfigChanged = false
	return after
}

// describeImported is the status after an import.
func describeImported(before fleet.ClusterStatus, spec fleet.ClusterSpec, settings config.Agent, out outcome, now time.Time) fleet.ClusterStatus {
	after := *before.DeepCopy()
	after.Conditions = kube.SetCondition(after.Conditions, now, kube.Condition(fleet.ConditionImported, true, reasonImported, out.note))
	handed, generation := out.handed, spec.RedeployAgentGeneration
	after.Import, after.AgentDeployedGeneration = &handed, &generation
	after.AgentMigrated, after.AgentNamespaceMigrated, after.CattleNamespaceMigrated = true, true, true
	describeSettings(&after, spec, settings)
	return after
}

// describeSettings shows the settings that the agent has got.
func describeSettings(after *fleet.ClusterStatus, spec fleet.ClusterSpec, settings config.Agent) {
	after.AgentConfigChanged = false
	after.GarbageCollectionInterval = &metav1.Duration{Duration: settings.GarbageCollectionInterval}
	after.AgentEnvVarsHash = hashOfField(spec.AgentEnvVars)
	after.AgentAffinityHash = hashOfField(spec.AgentAffinity)
	after.AgentResourcesHash = hashOfField(spec.AgentResources)
	after.AgentTolerationsHash = hashOfField(spec.AgentTolerations)
	after.AgentSchedulingCustomizationHash = hashOfField(spec.AgentSchedulingCustomization)
	after.AgentPrivateRepoURL = spec.PrivateRepoURL
	after.AgentHostNetwork = spec.HostNetwork != nil && *spec.HostNetwork
}

// hashOf is upstream's digest of a value.
func hashOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // plain data: a mistake in this program
	}
	sum := sha256.Sum224(text)
	return hex.EncodeToString(sum[:])
}

// hashOfField is the digest of a field of the spec; empty if the field is.
func hashOfField(field any) string {
	if value := reflect.ValueOf(field); value.IsNil() || (value.Kind() == reflect.Slice && value.Len() == 0) {
		return ""
	}
	return hashOf(field)
}
