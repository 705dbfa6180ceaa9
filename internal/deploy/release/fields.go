package release

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	helm "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// takeFields makes this program the owner of fields from another agent's Helm. Server-side apply
// removes a field only if it has no other owner, so a dropped field would stay.
func (c *Cluster) takeFields(ctx context.Context, acting *Cluster, last *helm.Release, r Request) error {
	if last == nil || r.Agent || last.Chart.Metadata.Annotations[annotationDeploymentID] != "" {
		return nil
	}
	objects, err := parse([]byte(last.Manifest))
	if err != nil {
		return fmt.Errorf("reading the manifest of revision %d of release %s: %w", last.Version, r.ID(), err)
	}
	for _, object := range objects {
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return c.takeFieldsOf(ctx, acting, object, r) })
		if err != nil {
			return fmt.Errorf("taking over the fields of %s from the agent that deployed it: %w",
				named(Summary{Namespace: r.Namespace}, object), err)
		}
	}
	return nil
}

func (c *Cluster) takeFieldsOf(ctx context.Context, acting *Cluster, object *unstructured.Unstructured, r Request) error {
	s := Summary{Namespace: r.Namespace, Name: r.Release}
	mapping, served, err := c.Find(ctx, object.GroupVersionKind())
	if err != nil || !served {
		return err
	}
	found, err := at(c, mapping, s, object).Get(ctx, object.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !Belongs(s, found) && found.GetAnnotations()[annotationSet] != setOf(r.Bundle) { // it may have the previous name of the release
		return nil
	}
	fields, err := takenOver(found.GetManagedFields())
	if err != nil || fields == nil {
		return err
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": fields},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": found.GetResourceVersion()},
	})
	if err != nil {
		return err
	}
	_, err = at(acting, mapping, s, object).Patch(ctx, object.GetName(), types.JSONPatchType, patch,
		metav1.PatchOptions{FieldManager: FieldManager})
	return err
}

// takenOver returns the managed fields of an object with this program as the owner of deployed
// fields; nil if unchanged.
func takenOver(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	merged := map[string]any{}
	var rest []metav1.ManagedFieldsEntry
	var own, other *metav1.ManagedFieldsEntry
	for i := range entries {
		entry := &entries[i]
		ours := entry.Manager == FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply
		if entry.Subresource != "" || entry.FieldsV1 == nil {
			rest = append(rest, *entry)
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			return nil, fmt.Errorf("reading the fields that %s owns: %w", entry.Manager, err)
		}
		switch {
		case ours:
			own = entry
		case deploys(fields):
			other = entry
		default:
			rest = append(rest, *entry)
			continue
		}
		merge(merged, fields)
	}
	if other == nil {
		return nil, nil
	}
	raw, err := json.Marshal(merged)
	if err != nil {
		return nil, err
	}
	entry := *other
	if own != nil {
		entry = *own
	}
	entry.Manager, entry.Operation, entry.FieldsV1 = FieldManager, metav1.ManagedFieldsOperationApply, metav1.NewFieldsV1(string(raw))
	return append(rest, entry), nil
}

// deploys reports whether fields include the mark of the release: if so, their owner deployed the
// object.
func deploys(fields map[string]any) bool {
	for _, key := range []string{"f:metadata", "f:annotations", "f:" + helmReleaseName} {
		inside, there := fields[key].(map[string]any)
		if !there {
			return false
		}
		fields = inside
	}
	return true
}

// merge adds one set of fields to another.
func merge(into, fields map[string]any) {
	for key, value := range fields {
		inside, isMap := value.(map[string]any)
		before, wasMap := into[key].(map[string]any)
		switch {
		case isMap && wasMap:
			merge(before, inside)
		case isMap:
			into[key] = maps.Clone(inside)
		default:
			into[key] = value
		}
	}
}
