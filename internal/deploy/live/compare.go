package live

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

// maxPatch is how long a patch in a status may be; it is there to be read.
const maxPatch = 2048

// releaseName is the annotation by which Helm says whose an object is.
const releaseName = "meta.helm.sh/release-name"

// client is the way to one object of a release, as the account that the release was made as.
func (w *Watcher) client(s release.Summary, key Key) (dynamic.ResourceInterface, error) {
	acting, err := w.cluster.As(s.ServiceAccount)
	if err != nil {
		return nil, err
	}
	mapping, err := w.cluster.Mapper.RESTMapping(key.Kind.GroupKind(), key.Kind.Version)
	if err != nil {
		return nil, fmt.Errorf("looking up %s: %w", key.Kind, err)
	}
	if key.Namespace == "" {
		return acting.Dynamic.Resource(mapping.Resource), nil
	}
	return acting.Dynamic.Resource(mapping.Resource).Namespace(key.Namespace), nil
}

// compare reads an object and asks the API server what it would be if it were deployed again. There is a difference only if the deployment
// says something else than what is there: the defaults and the additions of others are none.
func (w *Watcher) compare(ctx context.Context, s *Set, key Key, desired *unstructured.Unstructured, diff *fleet.DiffOptions) (*fleet.ModifiedStatus, record, error) {
	objects, err := w.client(s.release, key)
	if err != nil {
		return nil, record{}, err
	}
	found, err := objects.Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		missing := changed(key)
		missing.Create = true
		return missing, record{}, nil
	}
	if err != nil {
		return nil, record{}, fmt.Errorf("reading %s: %w", key, err)
	}
	return w.compareWith(ctx, objects, found, key, desired, patchesFor(key, diff))
}

// maxComparisons is how often an object that others write meanwhile is compared before it is tried again later.
const maxComparisons = 5

func changed(key Key) *fleet.ModifiedStatus {
	return &fleet.ModifiedStatus{Kind: key.Kind.Kind, APIVersion: key.Kind.GroupVersion().String(), Namespace: key.Namespace, Name: key.Name}
}

// compareWith compares with what was found, and with what is there by then if others wrote meanwhile.
func (w *Watcher) compareWith(ctx context.Context, objects dynamic.ResourceInterface, found *unstructured.Unstructured,
	key Key, desired *unstructured.Unstructured, patches []fleet.ComparePatch) (*fleet.ModifiedStatus, record, error) {
	for range maxComparisons {
		modified, is, err := w.compareOnce(ctx, objects, found, key, desired, patches)
		if err != nil || modified == nil {
			return nil, is, err
		}
		// What is found out is remembered until a field of ours is taken away, so it must not be what others wrote between the read and
		// the dry run: a difference counts if the object is still the one that was read.
		now, err := objects.Get(ctx, key.Name, metav1.GetOptions{})
		if err != nil {
			return nil, record{}, fmt.Errorf("reading %s again: %w", key, err)
		}
		if now.GetResourceVersion() == found.GetResourceVersion() {
			return modified, is, nil
		}
		found = now
	}
	return nil, record{}, fmt.Errorf("comparing %s: others change it too often", key)
}

func (w *Watcher) compareOnce(ctx context.Context, objects dynamic.ResourceInterface, found *unstructured.Unstructured,
	key Key, desired *unstructured.Unstructured, patches []fleet.ComparePatch) (*fleet.ModifiedStatus, record, error) {
	is, modified := recordOf(found), changed(key)
	would, err := w.apply(ctx, objects, desired, metav1.DryRunAll)
	switch {
	case apierrors.IsInvalid(err), apierrors.IsConflict(err):
		// It could not be deployed again as it is, so what cannot be changed was changed.
		return modified, is, nil
	case apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err):
		// A webhook that knows no dry run, or a kind that knows no patch: nothing can be said.
		return nil, is, nil
	case err != nil:
		return nil, record{}, fmt.Errorf("comparing %s: %w", key, err)
	}
	patch, err := difference(found, would, patches)
	if err != nil {
		return nil, record{}, fmt.Errorf("comparing %s: %w", key, err)
	}
	if patch == "" {
		return nil, is, nil
	}
	modified.Exist = found.GetAnnotations()[releaseName] != desired.GetAnnotations()[releaseName]
	if key.Kind.Kind != "Secret" {
		modified.Patch = patch[:min(len(patch), maxPatch)]
	}
	return modified, is, nil
}

func (*Watcher) apply(ctx context.Context, objects dynamic.ResourceInterface, desired *unstructured.Unstructured, dryRun ...string) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(desired)
	if err != nil {
		return nil, err
	}
	force := true
	return objects.Patch(ctx, desired.GetName(), types.ApplyPatchType, data,
		metav1.PatchOptions{FieldManager: release.FieldManager, Force: &force, DryRun: dryRun})
}

// difference is the merge patch from one to the other; empty if there is none.
func difference(is, would *unstructured.Unstructured, patches []fleet.ComparePatch) (string, error) {
	left, right := plain(is), plain(would)
	for _, patch := range patches {
		for _, operation := range patch.Operations {
			if operation.Op == "ignore" {
				return "", nil
			}
		}
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

// plain leaves out what changes by itself.
func plain(object *unstructured.Unstructured) map[string]any {
	content := object.DeepCopy().Object
	delete(content, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	return content
}

func patchesFor(key Key, diff *fleet.DiffOptions) []fleet.ComparePatch {
	if diff == nil {
		return nil
	}
	var matching []fleet.ComparePatch
	for _, patch := range diff.ComparePatches {
		fits := func(wanted, is string) bool { return wanted == "" || wanted == is }
		if fits(patch.Kind, key.Kind.Kind) && fits(patch.APIVersion, key.Kind.GroupVersion().String()) &&
			fits(patch.Namespace, key.Namespace) && fits(patch.Name, key.Name) {
			matching = append(matching, patch)
		}
	}
	return matching
}

// neutralize applies what the user wants left out. An operation that does not fit an object has nothing to leave out there.
func neutralize(content map[string]any, patch fleet.ComparePatch) map[string]any {
	operations := patch.Operations
	for _, pointer := range patch.JSONPointers {
		operations = append(operations, fleet.Operation{Op: "remove", Path: pointer})
	}
	for _, operation := range operations {
		step := map[string]any{"op": operation.Op, "path": operation.Path}
		if operation.Op != "remove" {
			var value any = operation.Value
			if strings.HasPrefix(operation.Value, "{") || strings.HasPrefix(operation.Value, "[") {
				if err := json.Unmarshal([]byte(operation.Value), &value); err != nil {
					value = operation.Value
				}
			}
			step["value"] = value
		}
		if changed, ok := applyStep(content, step); ok {
			content = changed
		}
	}
	return content
}

func applyStep(content map[string]any, step map[string]any) (map[string]any, bool) {
	document, err := json.Marshal(content)
	if err != nil {
		return nil, false
	}
	encoded, err := json.Marshal([]any{step})
	if err != nil {
		return nil, false
	}
	decoded, err := jsonpatch.DecodePatch(encoded)
	if err != nil {
		return nil, false
	}
	patched, err := decoded.Apply(document)
	if err != nil {
		return nil, false
	}
	var changed map[string]any
	err = json.Unmarshal(patched, &changed)
	return changed, err == nil
}
