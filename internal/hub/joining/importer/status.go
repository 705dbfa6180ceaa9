package importer

import (
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// quietWait is the longest wait for the start of a re-import without a write of the status.
const quietWait = 2 * time.Second

// Each describe function changes a copy of the read status, and returns it.

func setImported(status *fleet.ClusterStatus, ok bool, reason, message string, now time.Time) {
	status.Conditions = kube.SetCondition(status.Conditions, now, kube.Condition(fleet.ConditionImported, ok, reason, message))
}

// describeProblem returns the status of a Cluster after a failed import. outdated: the agent has
// earlier settings.
func describeProblem(status fleet.ClusterStatus, outdated bool, p *problem, next, now time.Time) fleet.ClusterStatus {
	message := p.message + "; the hub retries when the Cluster, the Secret or the hub's settings change"
	if !p.input {
		message = fmt.Sprintf("%s; next try at %s", p.message, next.UTC().Format(time.RFC3339))
	}
	setImported(&status, false, p.reason, message, now)
	status.AgentConfigChanged = outdated
	return status
}

// describeScheduled returns the status of a Cluster with a scheduled re-import.
func describeScheduled(status fleet.ClusterStatus, why need, start, now time.Time) fleet.ClusterStatus {
	if why != needHealing && start.Sub(now) >= quietWait {
		setImported(&status, true, reasons.Imported,
			"the settings of the agent have changed; the hub installs it again at "+start.UTC().Format(time.RFC3339), now)
		status.AgentConfigChanged = true
	}
	return status
}

// describeQueued returns the status of a Cluster in the queue for a connection of its workspace. An
// existing condition stays.
func describeQueued(status fleet.ClusterStatus, now time.Time) fleet.ClusterStatus {
	if kube.FindCondition(status.Conditions, fleet.ConditionImported) == nil {
		setImported(&status, false, reasons.Queued,
			fmt.Sprintf("the hub connects to %d clusters of this workspace at once; this one follows when one of them is done", perWorkspace), now)
	}
	return status
}

// describeIdle returns the status of a Cluster without need for an import, for example after its
// agent came back by itself.
func describeIdle(status fleet.ClusterStatus, spec fleet.ClusterSpec, settings settings.Agent, o observed,
	now time.Time) fleet.ClusterStatus {
	if o.bundled() && o.last != nil && o.settings != o.last.SettingsHash {
		if o.delivered != o.settings {
			status.AgentConfigChanged = true
			return status
		}
		status.Import.SettingsHash = o.settings
		describeSettings(&status, spec, settings)
	}
	imported := kube.FindCondition(status.Conditions, fleet.ConditionImported)
	if o.last != nil && o.agent == membership.AgentOnline && imported != nil &&
		(imported.Status != corev1.ConditionTrue || status.AgentConfigChanged) {
		setImported(&status, true, reasons.Imported, "", now)
		status.AgentConfigChanged = false
	}
	return status
}

// describeImported returns the status after an import.
func describeImported(status fleet.ClusterStatus, spec fleet.ClusterSpec, settings settings.Agent, out outcome,
	now time.Time) fleet.ClusterStatus {
	if !out.keepsCondition {
		setImported(&status, true, reasons.Imported, out.note, now)
	}
	status.Import, status.AgentDeployedGeneration = &out.handed, &spec.RedeployAgentGeneration
	status.AgentMigrated, status.AgentNamespaceMigrated, status.CattleNamespaceMigrated = true, true, true
	describeSettings(&status, spec, settings)
	return status
}

// describeCause returns the status of a Cluster with a diagnosis, unless the agent has joined
// since.
func describeCause(status fleet.ClusterStatus, cause *problem, now time.Time) fleet.ClusterStatus {
	if agentOf(status) != membership.AgentOnline {
		setImported(&status, false, cause.reason, "the agent is installed and has not joined: "+cause.message, now)
	}
	return status
}

// describeSettings sets the hashes of the agent's settings.
func describeSettings(status *fleet.ClusterStatus, spec fleet.ClusterSpec, settings settings.Agent) {
	status.AgentConfigChanged = false
	status.GarbageCollectionInterval = &metav1.Duration{Duration: settings.GarbageCollectionInterval}
	status.AgentEnvVarsHash = hashOfField(spec.AgentEnvVars)
	status.AgentAffinityHash = hashOfField(spec.AgentAffinity)
	status.AgentResourcesHash = hashOfField(spec.AgentResources)
	status.AgentTolerationsHash = hashOfField(spec.AgentTolerations)
	status.AgentSchedulingCustomizationHash = hashOfField(schedulingOf(spec))
	status.AgentPrivateRepoURL = spec.PrivateRepoURL
	status.AgentHostNetwork = spec.HostNetwork != nil && *spec.HostNetwork
}

// schedulingOf returns the scheduling from a Cluster's spec; nil for an empty customization.
func schedulingOf(spec fleet.ClusterSpec) *fleet.AgentSchedulingCustomization {
	if custom := spec.AgentSchedulingCustomization; custom != nil && *custom != (fleet.AgentSchedulingCustomization{}) {
		return custom
	}
	return nil
}

// hashOfField returns the digest of a field of the spec in upstream's form; empty for an empty
// field.
func hashOfField(field any) string {
	if value := reflect.ValueOf(field); value.IsNil() || (value.Kind() == reflect.Slice && value.Len() == 0) {
		return ""
	}
	return naming.FieldHash(field)
}
