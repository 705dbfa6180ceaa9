package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/kube"
)

var resources = map[protocol.Kind]schema.GroupVersionResource{
	protocol.Bundles: hubclient.BundleDeployments, protocol.Works: hubclient.Works,
	protocol.Agent: hubclient.BundleDeployments,
}

// reportNotRunning returns a function that writes the reason to the objects of a kind, in the
// conditions of the deployer. It skips conditions with this reason.
func (s *session) reportNotRunning(kind protocol.Kind) func(ctx context.Context, placed map[string]int64, sentence string) error {
	report := s.reportDeployment
	if kind == protocol.Works {
		report = s.reportWork
	}
	return func(ctx context.Context, placed map[string]int64, sentence string) error {
		for name, generation := range placed {
			if err := report(ctx, name, generation, sentence); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("reporting %s %s: %s", kind[:len(kind)-1], name, s.hub.Explain(err))
			}
		}
		return nil
	}
}

func (s *session) reportWork(ctx context.Context, name string, generation int64, sentence string) error {
	var status struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	if err := s.hub.Status(ctx, hubclient.Works, name, &status); err != nil {
		return err
	}
	if !meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: placement.ConditionApplied, Status: metav1.ConditionFalse, Reason: reasons.DeployerNotRunning, Message: sentence,
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(s.clock.Now()),
	}) {
		return nil
	}
	return s.patchConditions(ctx, hubclient.Works, name, status.Conditions)
}

func (s *session) reportDeployment(ctx context.Context, name string, _ int64, sentence string) error {
	var status struct {
		Conditions []fleet.Condition `json:"conditions"`
	}
	if err := s.hub.Status(ctx, hubclient.BundleDeployments, name, &status); err != nil {
		return err
	}
	after := slices.Clone(status.Conditions)
	for _, kind := range []string{fleet.ConditionDeployed, fleet.ConditionMonitored, fleet.ConditionReady} {
		after = kube.SetCondition(after, s.clock.Now(), kube.Condition(kind, false, reasons.DeployerNotRunning, sentence))
	}
	if slices.Equal(status.Conditions, after) {
		return nil
	}
	return s.patchConditions(ctx, hubclient.BundleDeployments, name, after)
}

func (s *session) patchConditions(ctx context.Context, resource schema.GroupVersionResource, name string, conditions any) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
	if err != nil {
		return err
	}
	return s.hub.PatchStatus(ctx, resource, name, patch)
}
