package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/author"
)

// keptStatus lists the status fields to restore: the hub cannot compute them again. Of the
// conditions of a member, a restore keeps only the conditions of users. Their type has a domain.
var keptStatus = map[schema.GroupVersionResource][]string{
	tokens:   {"clusters", "lastUsed", "registrations", "rotation"},
	clusters: {"history", "initialization", "conditions"},
	members:  {"history", "conditions"},
}

// isHubItself reports whether an object is the hub's own Cluster. Each hub creates its own.
func isHubItself(resource schema.GroupVersionResource, o *unstructured.Unstructured) bool {
	return resource == clusters && o.GetName() == "local" && o.GetNamespace() == "fleet-local"
}

// skips reports whether a restore leaves out an object of the file.
func (r *restoring) skips(resource schema.GroupVersionResource, o *unstructured.Unstructured) bool {
	return resource == reports || isHubItself(resource, o) || r.isExpired(resource, o)
}

// restore creates an object, unless there is one with its name.
func (r *restoring) restore(ctx context.Context, resource schema.GroupVersionResource, o *unstructured.Unstructured) error {
	if r.skips(resource, o) {
		r.count(&r.done.LeftOut, "", o)
		return nil
	}
	hub, as, err := r.clientFor(o)
	if err != nil {
		return err
	}
	desired := r.desired(resource, o)
	created, err := hub.Resource(resource).Namespace(o.GetNamespace()).Create(ctx, desired, metav1.CreateOptions{FieldManager: fieldManager})
	switch {
	case apierrors.IsAlreadyExists(err):
		created, err = r.hub.Resource(resource).Namespace(o.GetNamespace()).Get(ctx, o.GetName(), metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading %s: %w", nameOf(o), err)
		}
		if created.GetAnnotations()[AnnotationRestored] != r.done.ID {
			r.count(&r.done.Present, "%s is there already, and stays as it is", o)
			return nil
		}
		r.count(&r.done.Present, "", o)
	case err != nil:
		return fmt.Errorf("creating %s%s: %w", nameOf(o), as, err)
	case o.GetDeletionTimestamp() != nil:
		r.count(&r.done.Created, "%s was in deletion, and is back: delete it again", o)
	default:
		r.count(&r.done.Created, "", o)
	}
	if paused := created.GetAnnotations()[fleet.AnnotationPaused]; paused == "true" && slices.Contains(placements, resource) {
		r.count(&r.done.Paused, "", o)
	}
	r.mu.Lock()
	r.uids[o.GetUID()] = created.GetUID()
	if resource == clusters {
		r.workspaces[o.GetNamespace()] = true
	}
	r.mu.Unlock()
	return r.restoreStatus(ctx, resource, o, created)
}

// count counts an object, with a note if it differs from the backup.
func (r *restoring) count(to *int, note string, o *unstructured.Unstructured) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if *to++; note != "" {
		r.done.Notes = append(r.done.Notes, fmt.Sprintf(note, nameOf(o)))
	}
}

// clientFor returns a client in the name of the author of a placement, an override or an envelope.
// The hub acts with the author's rights, and a restore must not change the author. The restore
// creates all other objects with the rights of its user.
func (r *restoring) clientFor(o *unstructured.Unstructured) (hub dynamic.Interface, as string, err error) {
	name, groups := o.GetAnnotations()[author.AnnotationName], o.GetAnnotations()[author.AnnotationGroups]
	if name == "" {
		return r.hub, "", nil
	}
	as = " in the name of its author " + name
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.authors[name+"\n"+groups]; known != nil {
		return known, as, nil
	}
	config := rest.CopyConfig(r.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name}
	if groups != "" {
		config.Impersonate.Groups = strings.Split(groups, "\n")
	}
	if hub, err = dynamic.NewForConfig(config); err != nil {
		return nil, as, fmt.Errorf("acting as %s: %w", name, err)
	}
	r.authors[name+"\n"+groups] = hub
	return hub, as, nil
}

// desired returns the object to create: without the status and the metadata of the other cluster,
// and with the restored owners.
func (r *restoring) desired(resource schema.GroupVersionResource, o *unstructured.Unstructured) *unstructured.Unstructured {
	desired := o.DeepCopy()
	metadata := map[string]any{"name": o.GetName()}
	if o.GetNamespace() != "" {
		metadata["namespace"] = o.GetNamespace()
	}
	desired.Object["metadata"] = metadata
	delete(desired.Object, "status")
	switch resource {
	case namespaces:
		delete(desired.Object, "spec")
	case accounts:
		delete(desired.Object, "secrets")
	case tokens:
		r.shorten(desired, o)
	}
	desired.SetLabels(o.GetLabels())
	annotations := map[string]string{}
	for key, value := range o.GetAnnotations() {
		annotations[key] = value
	}
	annotations[AnnotationRestored] = r.done.ID
	delete(annotations, fleet.AnnotationRestoredKey)
	if key := r.agentKeys[o.GetUID()]; resource == members && key != "" && !r.keepsOwnKey() {
		annotations[fleet.AnnotationRestoredKey] = key
	}
	if slices.Contains(placements, resource) {
		// The selected objects are not in the backup. Without them, the hub would write empty Works.
		// Agents other than Muster's would then remove the placed objects.
		annotations[fleet.AnnotationPaused] = "true"
	}
	desired.SetAnnotations(annotations)
	var owners []metav1.OwnerReference
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, owner := range o.GetOwnerReferences() {
		if uid, restored := r.uids[owner.UID]; restored {
			owner.UID = uid
			owners = append(owners, owner)
		}
	}
	if len(owners) > 0 {
		desired.SetOwnerReferences(owners)
	}
	return desired
}

// expiry returns the time when a registration token expires; zero for never. The life of a token
// begins with its creation, and a restore does not prolong it.
func expiry(o *unstructured.Unstructured) time.Time {
	text, _, _ := unstructured.NestedString(o.Object, "spec", "ttl")
	life, err := time.ParseDuration(text)
	if err != nil || life <= 0 {
		return time.Time{}
	}
	return o.GetCreationTimestamp().Add(life)
}

func (r *restoring) isExpired(resource schema.GroupVersionResource, o *unstructured.Unstructured) bool {
	ends := expiry(o)
	return resource == tokens && !ends.IsZero() && r.Now().After(ends.Add(-time.Second))
}

// shorten sets the TTL of a registration token to the rest of its life.
func (r *restoring) shorten(desired, o *unstructured.Unstructured) {
	if ends := expiry(o); !ends.IsZero() {
		_ = unstructured.SetNestedField(desired.Object, ends.Sub(r.Now()).Truncate(time.Second).String(), "spec", "ttl") // the spec is a map
	}
}

// restoreStatus writes the kept status fields of a new object, before any hub writes a status.
func (r *restoring) restoreStatus(ctx context.Context, resource schema.GroupVersionResource, o, created *unstructured.Unstructured) error {
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	present, _, _ := unstructured.NestedMap(created.Object, "status")
	kept := map[string]any{}
	for _, field := range keptStatus[resource] {
		value, found := status[field]
		if field == "conditions" {
			value, found = ofUsers(value)
		}
		if found {
			kept[field] = value
		}
	}
	if len(kept) == 0 || len(present) > 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": created.GetUID()}, "status": kept})
	if err != nil {
		return fmt.Errorf("encoding the status of %s: %w", nameOf(o), err)
	}
	_, err = r.hub.Resource(resource).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: fieldManager}, "status")
	if err != nil {
		return fmt.Errorf("restoring the status of %s: %w", nameOf(o), err)
	}
	return nil
}

// ofUsers returns the conditions with a domain in their type.
func ofUsers(conditions any) ([]any, bool) {
	var theirs []any
	listed, _ := conditions.([]any) // a status without conditions has none of users either
	for _, one := range listed {
		condition, _ := one.(map[string]any)
		if kind, _ := condition["type"].(string); strings.Contains(kind, "/") {
			theirs = append(theirs, condition)
		}
	}
	return theirs, len(theirs) > 0
}
