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
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

// maxPatch is how long a patch in a status may be; it is there to be read.
const maxPatch = 2048

// client returns the client for an object, with the account that the release was deployed with.
func (d *Detector) client(s release.Summary, key Key) (dynamic.ResourceInterface, error) {
	acting, err := d.cluster.As(s.ServiceAccount)
	if err != nil {
		return nil, err
	}
	return acting.Dynamic.Resource(key.query().GroupVersionResource).Namespace(key.Namespace), nil
}

// comparison is of one object with its manifest, leaving out what the patches of the Bundle name.
type comparison struct {
	release release.Summary
	key     Key
	objects dynamic.ResourceInterface
	desired *unstructured.Unstructured
	patches []fleet.ComparePatch
	// agents is the release that the agent runs by.
	agents release.Summary
}

// compare compares the manifest of an object with the object.
func (d *Detector) compare(ctx context.Context, s *Set, key Key, desired *unstructured.Unstructured, diff *fleet.DiffOptions) (result, error) {
	objects, err := d.client(s.release, key)
	if err != nil {
		return result{}, err
	}
	c := comparison{s.release, key, objects, desired, patchesFor(key, diff), d.cluster.Own()}
	found, err := objects.Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if mayBeMissing(c.patches) || applied.Passes(desired) { // a Job that has passed has had its run
			return result{}, nil
		}
		missing := modifiedStatus(key)
		missing.Create = true
		return result{modified: missing}, nil
	}
	if err != nil {
		return result{}, fmt.Errorf("reading %s: %w", key, err)
	}
	return c.run(ctx, found)
}

// maxComparisons is how often an object that others keep writing is compared at once.
const maxComparisons = 5

func modifiedStatus(key Key) *fleet.ModifiedStatus {
	return &fleet.ModifiedStatus{Kind: key.Kind.Kind, APIVersion: key.Kind.GroupVersion().String(), Namespace: key.Namespace, Name: key.Name}
}

// run compares an object as it was found, and again if others wrote it meanwhile. The result is kept until the field digest changes, so a
// difference counts only if the object is still the one that was read before the dry run.
func (c comparison) run(ctx context.Context, found *unstructured.Unstructured) (result, error) {
	for range maxComparisons {
		modified, err := c.once(ctx, found)
		if err != nil {
			return result{}, fmt.Errorf("comparing %s: %w", c.key, err)
		}
		if modified == nil {
			return result{summary: summarize(found)}, nil
		}
		now, err := c.objects.Get(ctx, c.key.Name, metav1.GetOptions{})
		if err != nil {
			return result{}, fmt.Errorf("reading %s again: %w", c.key, err)
		}
		if now.GetResourceVersion() == found.GetResourceVersion() {
			return result{summarize(found), modified, modified.Exist && release.Belongs(c.agents, found)}, nil
		}
		found = now
	}
	return result{}, fmt.Errorf("comparing %s: others change it too often", c.key)
}

// once asks the API server by a dry run what the object would be if it were deployed again; nil if that changes nothing. Defaults and what
// others added are no difference.
func (c comparison) once(ctx context.Context, found *unstructured.Unstructured) (*fleet.ModifiedStatus, error) {
	would, err := release.Apply(ctx, c.objects, c.desired, metav1.DryRunAll)
	if apierrors.IsInvalid(err) && len(c.patches) > 0 {
		// The immutable field may be one that the patches leave out.
		would, err = release.Apply(ctx, c.objects, keepLeftOut(c.desired, found, c.patches), metav1.DryRunAll)
	}
	immutable := apierrors.IsInvalid(err) || apierrors.IsConflict(err)
	switch {
	case immutable:
		// The manifest cannot be applied any more, so an immutable field was changed: the manifest itself shows which.
		would, err = overlaid(found, c.desired)
	case apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err):
		// A webhook without dry run, or a kind without patch: the difference cannot be known.
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

// difference is the merge patch from the object as it is to the object as it would be; empty if there is none.
func difference(is, would *unstructured.Unstructured, patches []fleet.ComparePatch) (string, error) {
	left, right := applied.Content(is), applied.Content(would)
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
