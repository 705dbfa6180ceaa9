package gitrepo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// fieldOwner is the field manager of the Bundles of GitRepos.
const fieldOwner = client.FieldOwner("muster-gitops")

// maxObject is the largest Bundle, as JSON. etcd stores 1.5 MiB, with the fields' managers.
const maxObject = 1450 << 10

const (
	// annotationWritten on a Bundle is what its GitRepo wrote, as JSON.
	annotationWritten = "muster/written-by-gitrepo"
	// annotationDigest is the digest of the spec of a Bundle, only in the cache. The cache lacks the
	// spec itself.
	annotationDigest = "muster/cached-spec-digest"
)

// written is what a GitRepo wrote into a Bundle.
type written struct {
	// Spec is the digest of the spec.
	Spec string `json:"spec"`
	// Labels are the keys of the labels.
	Labels []string `json:"labels"`
}

func writtenTo(bundle *fleet.Bundle) (w written) {
	_ = json.Unmarshal([]byte(bundle.Annotations[annotationWritten]), &w) // a Bundle without it differs
	return w
}

// Slim is the transform of the cache for Bundles: it replaces the spec by its digest.
func Slim(o any) (any, error) {
	bundle, isBundle := o.(*fleet.Bundle)
	if !isBundle {
		return o, nil
	}
	digest, err := digestOf(&bundle.Spec)
	if err != nil {
		return nil, err
	}
	bundle.Annotations = maps.Clone(bundle.Annotations)
	if bundle.Annotations == nil {
		bundle.Annotations = map[string]string{}
	}
	bundle.Annotations[annotationDigest], bundle.Spec, bundle.ManagedFields = digest, fleet.BundleSpec{}, nil
	return bundle, nil
}

// digestOf returns the digest of a spec, the same before and after the API server has stored it.
func digestOf(spec *fleet.BundleSpec) (string, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("encoding the spec of a Bundle: %w", err)
	}
	var value map[string]any
	if err := utiljson.Unmarshal(text, &value); err != nil { // writes numbers as the API server does
		return "", fmt.Errorf("decoding the spec of a Bundle: %w", err)
	}
	if text, err = json.Marshal(value); err != nil {
		return "", fmt.Errorf("encoding the spec of a Bundle: %w", err)
	}
	return naming.Digest(text), nil
}

// unchanged reports whether a Bundle of the cache has the spec that its GitRepo wrote.
func unchanged(bundle *fleet.Bundle) bool {
	return bundle.Annotations[annotationDigest] == writtenTo(bundle).Spec
}

// isOf reports whether a GitRepo is the controller of a Bundle.
func isOf(bundle *fleet.Bundle, repo *fleet.GitRepo) bool {
	owner := metav1.GetControllerOf(bundle)
	return owner != nil && owner.UID == repo.UID
}

// write creates and changes the Bundles of a commit. Without a problem it then deletes the other
// Bundles of the GitRepo.
func (r *reconciliation) write(ctx context.Context, bundles []*fleet.Bundle) error {
	names := map[string]bool{}
	for _, bundle := range bundles {
		names[bundle.Name] = true
		if err := r.writeOne(ctx, bundle); err != nil {
			return err
		}
	}
	if r.problem != nil {
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

// writeOne creates or changes a Bundle. Another owner's Bundle of the same name is a problem, and
// stays unchanged.
func (r *reconciliation) writeOne(ctx context.Context, wanted *fleet.Bundle) error {
	if text, err := json.Marshal(wanted); err == nil && len(text) > maxObject {
		r.fail(readyCondition, reasons.CommitUnreadable, "Bundle %s has %d KiB, and the API server stores %d KiB: make it two directories with "+
			"a fleet.yaml each, or exclude files in a .fleetignore", wanted.Name, len(text)>>10, maxObject>>10)
		return nil
	}
	digest, err := digestOf(&wanted.Spec)
	if err != nil {
		return err
	}
	note, err := json.Marshal(written{Spec: digest, Labels: slices.Sorted(maps.Keys(wanted.Labels))})
	if err != nil {
		return err
	}
	owner := *metav1.NewControllerRef(r.repo, fleet.GroupVersion.WithKind("GitRepo"))
	owner.BlockOwnerDeletion = nil // it takes a right on the finalizers of the GitRepo, and nothing waits for it
	wanted.Annotations, wanted.OwnerReferences = map[string]string{annotationWritten: string(note)}, []metav1.OwnerReference{owner}
	present := &fleet.Bundle{}
	err = r.Live.Get(ctx, client.ObjectKeyFromObject(wanted), present)
	switch {
	case apierrors.IsNotFound(err) && !kube.NotServed(err):
		return r.refusal(wanted, r.Create(ctx, wanted, fieldOwner))
	case err != nil:
		return fmt.Errorf("reading Bundle %s: %w", wanted.Name, err)
	case !mayWrite(present, r.repo):
		r.fail(readyCondition, reasons.BundleNameTaken, "Bundle %s exists and is not of this GitRepo: delete that Bundle, or give the directory "+
			"another name in its fleet.yaml", wanted.Name)
		return nil
	case !present.DeletionTimestamp.IsZero():
		r.fail(readyCondition, reasons.BundleNameTaken, "Bundle %s is being deleted: it is created again when it is gone", wanted.Name)
		return nil
	}
	after := present.DeepCopy()
	for _, key := range writtenTo(present).Labels {
		delete(after.Labels, key)
	}
	after.Labels = merged(after.Labels, wanted.Labels)
	after.Annotations = merged(after.Annotations, wanted.Annotations)
	after.OwnerReferences, after.Spec = wanted.OwnerReferences, wanted.Spec
	if before, err := digestOf(&present.Spec); err == nil && before == digest && isOf(present, r.repo) &&
		maps.Equal(present.Labels, after.Labels) && maps.Equal(present.Annotations, after.Annotations) {
		return nil
	}
	return r.refusal(wanted, r.Update(ctx, after, fieldOwner))
}

// refusal turns the refusal of a Bundle by the API server into a problem of the GitRepo.
func (r *reconciliation) refusal(bundle *fleet.Bundle, err error) error {
	var status apierrors.APIStatus
	if apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsForbidden(err) ||
		errors.As(err, &status) && status.Status().Code == 400 {
		r.fail(readyCondition, reasons.CommitUnreadable, "Bundle %s: %s", bundle.Name, kube.Clip(err.Error(), 1024))
		return nil
	}
	return err
}

// mayWrite reports whether the GitRepo may write a Bundle. The GitRepo is its controller, or the
// Bundle has no controller and the label of the GitRepo, like the Bundles of Rancher Fleet.
func mayWrite(present *fleet.Bundle, repo *fleet.GitRepo) bool {
	if isOf(present, repo) {
		return true
	}
	return metav1.GetControllerOf(present) == nil && present.Labels[fleet.LabelRepoName] == repo.Name
}

func merged(base, more map[string]string) map[string]string {
	all := maps.Clone(base)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, more)
	return all
}
