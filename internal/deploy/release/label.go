package release

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-fleet/muster/internal/naming"
)

// Labels of the Secret of a revision.
const (
	labelHubVersion  = "muster/hub-version"
	labelHubUID      = "muster/hub-uid"
	labelHubRestored = "muster/hub-restored"
	// labelRenamed is the release name on the objects of the revision until the next deployment.
	labelRenamed = "muster/renamed"
	// noLabel makes Helm remove a label in an upgrade.
	noLabel = "null"
)

// keyCompared is the key of the note in the Secret of a revision. The note is as secret as the
// revision, because it has digests of objects, including Secrets.
const keyCompared = "muster-compared"

// keyJobs is the key of the note of the runs of Jobs.
const keyJobs = "muster-jobs"

// labels returns the labels of the member for a revision. The agent's own release has none, because
// it stays regardless of the member.
func (r Request) labels() map[string]string {
	if r.Agent {
		return nil
	}
	return map[string]string{naming.LabelMember: r.Member, labelHubVersion: r.Version, labelHubUID: r.UID}
}

// upgradeLabels returns the labels of a later revision. Helm copies the labels of the last one to
// it.
func (r Request) upgradeLabels() map[string]string {
	labels := r.labels()
	if labels != nil {
		labels[labelHubRestored], labels[labelRenamed] = noLabel, noLabel
	}
	return labels
}

// SetMember labels the history of a release with this member, also after an earlier member, and
// with the UID and version of its BundleDeployment.
func (c *Cluster) SetMember(ctx context.Context, s Summary, o Owner, uid, version string) error {
	free, err := c.reserve(ctx, s.ID(), s.History, Owner{Bundle: o.Bundle, Workspace: o.Workspace})
	if err != nil {
		return err
	}
	defer free()
	return c.label(ctx, s, map[string]any{naming.LabelMember: o.Member, labelHubUID: uid, labelHubVersion: version, labelHubRestored: nil})
}

// MarkHubRestored labels the history of a release unknown to a restored hub.
func (c *Cluster) MarkHubRestored(ctx context.Context, s Summary) error {
	return c.label(ctx, s, map[string]any{labelHubRestored: "true"})
}

// NoteCompared stores the note of unmodified objects beside a revision. Helm drops the note with
// its next write of the revision.
func (c *Cluster) NoteCompared(ctx context.Context, s Summary, note string) error {
	return c.patchHistory(ctx, s, map[string]any{"data": map[string][]byte{keyCompared: []byte(note)}})
}

// NoteJobs stores the note of the runs of Jobs beside a revision. The next revision takes it
// over.
func (c *Cluster) NoteJobs(ctx context.Context, s Summary, note string) error {
	return c.patchHistory(ctx, s, map[string]any{"data": map[string][]byte{keyJobs: []byte(note)}})
}

func (c *Cluster) label(ctx context.Context, s Summary, labels map[string]any) error {
	return c.patchHistory(ctx, s, map[string]any{"metadata": map[string]any{"labels": labels}})
}

func (c *Cluster) patchHistory(ctx context.Context, s Summary, change map[string]any) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("encoding a change of secret %s/%s: %w", s.History, SecretName(s), err)
	}
	_, err = c.Kube.CoreV1().Secrets(s.History).Patch(ctx, SecretName(s), types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: FieldManager})
	if err != nil {
		return fmt.Errorf("patching secret %s/%s: %w", s.History, SecretName(s), err)
	}
	return nil
}
