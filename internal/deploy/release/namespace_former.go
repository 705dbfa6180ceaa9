package release

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// formerTexts finds the labels and annotations patched into a namespace for this Bundle by an
// earlier version of the deployer. It returns their paths, and the managed fields without them; nil
// if there are none. Earlier versions noted no Bundle: the wanted ones are this Bundle's, and all
// of them if the namespace was created for it.
func formerTexts(found *corev1.Namespace, wanted map[string]string, created bool) (rest []metav1.ManagedFieldsEntry, paths []string) {
	for i := range found.ManagedFields {
		entry := found.ManagedFields[i]
		if entry.Manager != FieldManager || entry.Operation != metav1.ManagedFieldsOperationUpdate {
			rest = append(rest, entry)
			continue
		}
		fields := fieldsOf(&entry)
		inside := textsIn(fields)
		for path, parent := range inside {
			if _, is := wanted[path]; !is && (!created || keptPaths[path]) {
				continue
			}
			_, key, _ := strings.Cut(path, " ")
			delete(parent, key)
			paths = append(paths, path)
		}
		raw, err := json.Marshal(fields)
		if err != nil || fields == nil {
			rest = append(rest, entry)
			continue
		}
		if len(textsIn(fields)) > 0 || len(inside) == 0 {
			entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
			rest = append(rest, entry)
		}
	}
	if len(paths) == 0 {
		return nil, nil
	}
	slices.Sort(paths)
	return rest, paths
}

// keptPaths are the labels and annotations of a namespace from its creation.
var keptPaths = map[string]bool{
	labelPath + corev1.LabelMetadataName: true, // the API server sets it, for the creator
	labelPath + labelName:                true, labelPath + managedBy: true, annotationPath + annotationMadeFor: true,
	annotationPath + helmReleaseName: true, annotationPath + helmReleaseNamespace: true,
}

// ownEntry returns the managed fields of a manager with these labels and annotations.
func ownEntry(manager string, paths []string) metav1.ManagedFieldsEntry {
	metadata := map[string]map[string]struct{}{}
	for _, path := range paths {
		kind, key, _ := strings.Cut(path, " ")
		if metadata[kind] == nil {
			metadata[kind] = map[string]struct{}{}
		}
		metadata[kind][key] = struct{}{}
	}
	raw, _ := json.Marshal(map[string]any{"f:metadata": metadata}) //nolint:errchkjson // maps of strings always encode
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(string(raw)),
	}
}

// replaceManagedFields writes the managed fields of an unchanged namespace.
func replaceManagedFields(ctx context.Context, acting *Cluster, found *corev1.Namespace, entries []metav1.ManagedFieldsEntry) error {
	own := entries[len(entries)-1]
	entries = append(slices.DeleteFunc(entries[:len(entries)-1], func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == own.Manager && entry.Operation == own.Operation && entry.Subresource == ""
	}), own)
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": found.ResourceVersion},
	})
	if err != nil {
		return fmt.Errorf("encoding the managed fields of namespace %s: %w", found.Name, err)
	}
	_, err = acting.Kube.CoreV1().Namespaces().Patch(ctx, found.Name, types.JSONPatchType, patch,
		metav1.PatchOptions{FieldManager: FieldManager})
	if err != nil {
		return fmt.Errorf("taking over the labels of namespace %s from an earlier version: %w", found.Name, err)
	}
	return nil
}
