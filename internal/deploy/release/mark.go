package release

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-fleet/muster/internal/naming"
)

// Labels of the Secret that holds a revision.
const (
	labelHubVersion  = "muster/hub-version"
	labelHubRestored = "muster/hub-restored"
	// noLabel makes Helm take a label away in an upgrade.
	noLabel = "null"
)

// labels mark the history as the member's. That of the agent is not: it stays whatever becomes of the member.
func (r Request) labels() map[string]string {
	if r.Agent {
		return nil
	}
	return map[string]string{naming.LabelMember: r.Member, labelHubVersion: r.Version}
}

// labelsAgain are those of another revision, to which Helm copies what the last one had.
func (r Request) labelsAgain() map[string]string {
	labels := r.labels()
	if labels != nil {
		labels[labelHubRestored] = noLabel
	}
	return labels
}

// Claim notes on the history of a release that it is this member's, also if it was delivered to this cluster before it joined as that, and that
// the hub knows it.
func (c *Cluster) Claim(ctx context.Context, s Summary, o Owner) error {
	free, err := c.reserve(ctx, s.Name, Owner{Bundle: o.Bundle, Workspace: o.Workspace})
	if err != nil {
		return err
	}
	defer free()
	return c.label(ctx, s, map[string]any{naming.LabelMember: o.Member, labelHubRestored: nil})
}

// MarkHubRestored notes on the history of a release that the hub was restored from an earlier state, which does not know it.
func (c *Cluster) MarkHubRestored(ctx context.Context, s Summary) error {
	return c.label(ctx, s, map[string]any{labelHubRestored: "true"})
}

func (c *Cluster) label(ctx context.Context, s Summary, labels map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		return fmt.Errorf("encoding a label: %w", err)
	}
	_, err = c.Kube.CoreV1().Secrets(c.AgentNamespace).Patch(ctx, SecretName(s), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	if err != nil {
		return fmt.Errorf("labelling secret %s/%s: %w", c.AgentNamespace, SecretName(s), err)
	}
	return nil
}
