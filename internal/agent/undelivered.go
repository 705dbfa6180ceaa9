package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// reasonNotRunning is that of the conditions of what is not deployed or applied because the deployer does not run.
const reasonNotRunning = "DeployerNotRunning"

// unapplied tells Works on the hub why they are not applied; the deployer writes there otherwise. What says so already is not written again.
func (r *runner) unapplied(ctx context.Context, placed map[string]int64, sentence string) error {
	for name, generation := range placed {
		if err := r.tellWork(ctx, name, generation, sentence); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("reporting Work %s: %s", name, r.session.Explain(err))
		}
	}
	return nil
}

func (r *runner) tellWork(ctx context.Context, name string, generation int64, sentence string) error {
	conditions, err := r.session.WorkConditions(ctx, name)
	if err != nil {
		return err
	}
	if !meta.SetStatusCondition(&conditions, metav1.Condition{
		Type: placement.ConditionApplied, Status: metav1.ConditionFalse, Reason: reasonNotRunning, Message: sentence,
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(r.clock.Now()),
	}) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
	if err != nil {
		return err
	}
	return r.session.ReportWork(ctx, name, patch)
}

// undelivered tells on the hub why nothing is deployed; the deployer writes there otherwise. What says so already is not written again.
func (r *runner) undelivered(ctx context.Context, placed map[string]int64, sentence string) error {
	for name := range placed {
		if err := r.tellDeployment(ctx, name, sentence); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("reporting BundleDeployment %s: %s", name, r.session.Explain(err))
		}
	}
	return nil
}

func (r *runner) tellDeployment(ctx context.Context, name, sentence string) error {
	before, err := r.session.DeploymentStatus(ctx, name)
	if err != nil {
		return err
	}
	after := before.DeepCopy()
	for _, kind := range []string{fleet.ConditionDeployed, fleet.ConditionMonitored, fleet.ConditionReady} {
		after.Conditions = failed(after.Conditions, kind, sentence, r.clock.Now())
	}
	after.Display = fleet.BundleDeploymentDisplay{
		Deployed: "False: " + sentence, Monitored: "False: " + sentence, State: string(fleet.StateErrApplied),
	}
	if reflect.DeepEqual(before, after) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": after.Conditions, "display": after.Display}})
	if err != nil {
		return err
	}
	return r.session.ReportDeployment(ctx, name, patch)
}

// failed makes a condition say that the deployer does not run. It keeps the times of what said so before.
func failed(conditions []fleet.Condition, kind, sentence string, at time.Time) []fleet.Condition {
	now := at.UTC().Format(time.RFC3339)
	fresh := fleet.Condition{
		Type: kind, Status: corev1.ConditionFalse, Reason: reasonNotRunning, Message: sentence, LastUpdateTime: now, LastTransitionTime: now,
	}
	i := slices.IndexFunc(conditions, func(c fleet.Condition) bool { return c.Type == kind })
	if i < 0 {
		return append(conditions, fresh)
	}
	old := conditions[i]
	if old.Status == fresh.Status {
		fresh.LastTransitionTime = old.LastTransitionTime
		if old.Reason == fresh.Reason && old.Message == fresh.Message {
			return conditions
		}
	}
	conditions[i] = fresh
	return conditions
}
