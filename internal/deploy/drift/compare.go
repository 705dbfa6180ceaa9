package drift

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery/manifest"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

// maxPatch is the maximum length of a patch in a status, to keep it readable.
const maxPatch = 2048

// client returns the client for an object, with the account of the release.
func (d *Detector) client(s release.Summary, key Key) (dynamic.ResourceInterface, error) {
	acting, err := d.cluster.As(s.ServiceAccount)
	if err != nil {
		return nil, err
	}
	return acting.Dynamic.Resource(key.query().GroupVersionResource).Namespace(key.Namespace), nil
}

// comparison compares one object with its manifest, except for the fields left out by the patches
// of the Bundle.
type comparison struct {
	// member reads with the agent's own account.
	member  dynamic.Interface
	release release.Summary
	key     Key
	objects dynamic.ResourceInterface
	desired *unstructured.Unstructured
	patches []fleet.ComparePatch
	// agents is the release of the agent itself.
	agents  release.Summary
	scaling scaling
}

// result is the result of a comparison; modified is nil without a change.
type result struct {
	summary
	modified *fleet.ModifiedStatus
	// agents is set for objects in the agent's own release; no other Bundle receives such an object.
	agents bool
	// scaling lists the replica counts to accept as unchanged.
	scaling scaling
	// hint names the likely cause of a missing object; empty without one.
	hint string
}

// correctable reports whether an object may be reverted. With takeOwnership, objects of other
// releases may be reverted too.
func (r result) correctable(options fleet.BundleDeploymentOptions) bool {
	return !r.modified.Delete && !r.agents && (!r.modified.Exist || options.Helm != nil && options.Helm.TakeOwnership)
}

// compare compares the manifest of an object with the object.
func (d *Detector) compare(ctx context.Context, s *Set, key Key, desired *unstructured.Unstructured,
	diff *fleet.DiffOptions) (result, error) {
	objects, err := d.client(s.release, key)
	if err != nil {
		return result{}, err
	}
	c := comparison{
		member: d.cluster.Dynamic, release: s.release, key: key, objects: objects, desired: desired, patches: patchesFor(key, diff),
		agents: d.cluster.Own(),
	}
	found, err := objects.Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if _, over := s.jobs.over(key); over || mayBeMissing(c.patches) {
			return result{}, nil
		}
		missing := modifiedStatus(key)
		missing.Create = true
		return result{modified: missing, hint: collected(key, desired)}, nil
	}
	if err != nil {
		return result{}, fmt.Errorf("reading %s: %w", key, err)
	}
	return c.run(ctx, found)
}

// collected returns the likely cause of a missing object: the garbage collector deletes objects
// with missing owners.
func collected(key Key, desired *unstructured.Unstructured) string {
	if len(desired.GetOwnerReferences()) == 0 {
		return ""
	}
	return fmt.Sprintf("%s has metadata.ownerReferences, and Kubernetes deletes it without an owner of the same UID on this cluster: "+
		"leave them out", key)
}

// maxComparisons limits consecutive comparisons of an object that others keep changing.
const maxComparisons = 5

func modifiedStatus(key Key) *fleet.ModifiedStatus {
	return &fleet.ModifiedStatus{Kind: key.Kind.Kind, APIVersion: key.Kind.GroupVersion().String(), Namespace: key.Namespace, Name: key.Name}
}

// run compares an object, and repeats the comparison after a concurrent write by others. A result
// is kept until the field digest changes. A difference counts only for the version read before the
// dry run.
func (c *comparison) run(ctx context.Context, found *unstructured.Unstructured) (result, error) {
	for range maxComparisons {
		modified, err := c.once(ctx, found)
		if err != nil {
			return result{}, fmt.Errorf("comparing %s: %w", c.key, err)
		}
		if modified == nil {
			return result{summary: summarize(found), scaling: c.scaling}, nil
		}
		now, err := c.objects.Get(ctx, c.key.Name, metav1.GetOptions{})
		if err != nil {
			return result{}, fmt.Errorf("reading %s again: %w", c.key, err)
		}
		if now.GetResourceVersion() == found.GetResourceVersion() {
			return result{
				summary: summarize(found), modified: modified, agents: modified.Exist && release.Belongs(c.agents, found), scaling: c.scaling,
			}, nil
		}
		found = now
	}
	return result{}, fmt.Errorf("comparing %s: others change it too often", c.key)
}

// once compares an object with the result of a dry run of its deployment; it returns nil if they
// are equal. Defaults and additions by others are no difference.
func (c *comparison) once(ctx context.Context, found *unstructured.Unstructured) (*fleet.ModifiedStatus, error) {
	desired, scaling, err := yielding(ctx, c.member, c.desired, found)
	if err != nil {
		return nil, err
	}
	c.scaling = scaling
	would, err := release.Apply(ctx, c.objects, desired, metav1.DryRunAll)
	if apierrors.IsInvalid(err) && len(c.patches) > 0 {
		// The immutable field may be left out by the patches.
		would, err = release.Apply(ctx, c.objects, keepLeftOut(desired, found, c.patches), metav1.DryRunAll)
	}
	immutable := apierrors.IsInvalid(err) || apierrors.IsConflict(err)
	switch {
	case immutable:
		// The manifest cannot be applied, because an immutable field was changed. The manifest itself
		// shows the new value.
		would, err = overlaid(found, desired)
	case apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err):
		// A webhook without dry run, or a kind without patch, hides the difference.
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	patch, err := difference(found, would, c.patches)
	if err != nil || patch == "" && !immutable {
		return nil, err
	}
	modified := modifiedStatus(c.key)
	modified.Exist = !release.Belongs(c.release, found)
	if modified.Kind != "Secret" {
		modified.Patch = patch[:min(len(patch), maxPatch)]
	}
	return modified, nil
}

// difference returns the merge patch from the object to its wanted state; empty if there is none.
func difference(found, would *unstructured.Unstructured, patches []fleet.ComparePatch) (string, error) {
	left, right := applied.Content(found), applied.Content(would)
	manifest.Uncompared(found.GroupVersionKind().GroupKind(), left)
	manifest.Uncompared(found.GroupVersionKind().GroupKind(), right)
	for _, patch := range patches {
		left, right = neutralize(left, patch), neutralize(right, patch)
	}
	if reflect.DeepEqual(left, right) {
		return "", nil
	}
	from, err := json.Marshal(left)
	if err != nil {
		return "", err
	}
	to, err := json.Marshal(right)
	if err != nil {
		return "", err
	}
	patch, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil || string(patch) == "{}" {
		return "", err
	}
	return string(patch), nil
}
