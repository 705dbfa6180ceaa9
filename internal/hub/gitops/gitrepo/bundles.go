package gitrepo

import (
	"context"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/gitops/ownbundle"
	"github.com/muster-fleet/muster/internal/kube"
)

// ownerOf returns a GitRepo as the owner of its Bundles.
func ownerOf(repo *fleet.GitRepo) ownbundle.Owner {
	return ownbundle.Owner{Object: repo, Kind: kind, Label: fleet.LabelRepoName, Reason: reasons.CommitUnreadable,
		Rename: "the directory another name in its fleet.yaml",
		Shrink: shrink}
}

// shrink is the remedy for a Bundle above the size limit.
const shrink = "split a directory above the size limit by another fleet.yaml, exclude files in a .fleetignore, or push a chart to " +
	"a registry and name it in helm.repo: members fetch a large chart themselves"

// write creates and changes the Bundles of a commit. Without a problem it then deletes the other
// Bundles of the GitRepo.
func (r *reconciliation) write(ctx context.Context, bundles []*fleet.Bundle) error {
	names, owner, writer := map[string]bool{}, ownerOf(r.repo), ownbundle.Writer{Client: r.Client, Live: r.Live}
	for _, bundle := range bundles {
		names[bundle.Name] = true
		refusal, err := writer.Write(ctx, owner, bundle)
		if err != nil {
			return err
		}
		if refusal != nil {
			r.Fail(readyCondition, refusal.Reason, "%s", refusal.Message)
		}
	}
	if r.Problem != nil {
		return nil
	}
	kept := r.bundles[:0:0]
	for i := range r.bundles {
		bundle := &r.bundles[i]
		if names[bundle.Name] {
			kept = append(kept, *bundle)
			continue
		}
		if err := kube.DeleteByUID(ctx, r.Client, bundle); err != nil {
			return err
		}
	}
	r.bundles = kept
	r.repo.Status.Commit, r.repo.Status.ObservedGeneration = r.seen.head, r.repo.Generation
	r.repo.Status.UpdateGeneration, r.repo.Status.Bundles = r.repo.Spec.ForceSyncGeneration, len(bundles)
	return nil
}
