package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/muster-fleet/muster/internal/naming"
)

// maxManager is the longest name of a field manager accepted by API servers.
const maxManager = 128

// managerPrefix begins the field managers of the labels and annotations of namespaces.
const managerPrefix = "muster-namespace:"

// namespaceManager returns the field manager of a Bundle for the labels and annotations of its
// namespace. Each Bundle of each agent has its own, so Bundles can share a namespace.
func namespaceManager(agentNamespace, bundle string) string {
	manager := managerPrefix + agentNamespace + "/" + bundle
	if len(manager) <= maxManager {
		return manager
	}
	digest := naming.ShortDigest(manager)
	return manager[:maxManager-1-len(digest)] + "-" + digest
}

// NamespaceConflict is the error for a label or annotation of a namespace with another owner.
type NamespaceConflict struct{ message string }

func (n *NamespaceConflict) Error() string { return n.message }

// labelNamespace applies the labels and annotations of the options to the namespace of a release,
// and takes back the earlier ones of this Bundle. It keeps everything of other owners.
func (c *Cluster) labelNamespace(ctx context.Context, acting *Cluster, r Request) error {
	manager := namespaceManager(c.AgentNamespace, r.Bundle)
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		found, err := c.Kube.CoreV1().Namespaces().Get(ctx, r.Namespace, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading namespace %s: %w", r.Namespace, err)
		}
		wanted := texts(r.Options.NamespaceLabels, r.Options.NamespaceAnnotations)
		if len(wanted) > 0 && c.isSystem(found.Name) {
			return fmt.Errorf("namespace %s belongs to Kubernetes or to the agent, and no Bundle may label or annotate it: "+
				"take namespaceLabels and namespaceAnnotations out of the Bundle, or deploy to another namespace", found.Name)
		}
		former, earlier := formerTexts(found, wanted, found.Annotations[annotationMadeFor] == madeFor(r.Owner()))
		own := ownTexts(found, manager)
		drops := slices.ContainsFunc(slices.Concat(own, earlier), func(key string) bool { _, stays := wanted[key]; return !stays })
		if len(wanted) == 0 && !drops {
			return nil
		}
		if former != nil {
			if err := replaceManagedFields(ctx, acting, found, append(former, ownEntry(manager, slices.Concat(own, earlier)))); err != nil {
				return unlessSet(err, found, wanted, drops)
			}
		}
		err = applyTexts(ctx, acting, found, manager, r.Options.NamespaceLabels, r.Options.NamespaceAnnotations, r.helm().TakeOwnership)
		return unlessSet(err, found, wanted, drops)
	})
}

// unlessSet ignores the missing right to patch a namespace if the namespace has all labels and
// annotations already.
func unlessSet(err error, found *corev1.Namespace, wanted map[string]string, drops bool) error {
	is := texts(found.Labels, found.Annotations)
	if apierrors.IsForbidden(err) && !drops && within(wanted, is) {
		return nil
	}
	return err
}

// unlabelNamespace takes back the labels and annotations of a release in removal. stays is the
// reason to keep them. Another release of the Bundle in the namespace keeps them too.
func (c *Cluster) unlabelNamespace(ctx context.Context, s Summary) (stays string, err error) {
	manager := namespaceManager(c.AgentNamespace, s.Bundle)
	found, err := c.Kube.CoreV1().Namespaces().Get(ctx, s.Namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading namespace %s of release %s: %w", s.Namespace, s, err)
	case found.DeletionTimestamp != nil, len(ownTexts(found, manager)) == 0:
		return "", nil
	}
	histories := c.newHistories()
	if err := c.eachSecret(ctx, s.Namespace, OwnedByHelm, histories.add); err != nil {
		return "", fmt.Errorf("looking for other releases of Bundle %s in namespace %s: %w", s.Bundle, s.Namespace, err)
	}
	for at, other := range histories.ours {
		if other.Bundle == s.Bundle && at.ID != s.ID() {
			return "", nil
		}
	}
	acting, err := c.As(s.ServiceAccount)
	if err != nil {
		return "", err
	}
	err = applyTexts(ctx, acting, found, manager, nil, nil, false)
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("labels and annotations of Bundle %s stay on namespace %s: %v", s.Bundle, s.Namespace, err), nil
	case apierrors.IsNotFound(err), err != nil && apierrors.IsConflict(err) && c.namespaceGone(ctx, found):
		return "", nil
	}
	return "", err
}

// namespaceGone reports whether a namespace was deleted since, also if it was made anew.
func (c *Cluster) namespaceGone(ctx context.Context, was *corev1.Namespace) bool {
	found, err := c.Kube.CoreV1().Namespaces().Get(ctx, was.Name, metav1.GetOptions{})
	return apierrors.IsNotFound(err) || err == nil && found.UID != was.UID
}

// applyTexts applies labels and annotations by server-side apply. The UID keeps the API server from
// creating a deleted namespace anew.
func applyTexts(ctx context.Context, acting *Cluster, found *corev1.Namespace, manager string,
	labels, annotations map[string]string, force bool) error {
	metadata := map[string]any{"name": found.Name, "uid": found.UID}
	for field, values := range map[string]map[string]string{"labels": labels, "annotations": annotations} {
		if len(values) > 0 { // the manager would own a null field
			metadata[field] = values
		}
	}
	patch, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": namespaceKind.Kind, "metadata": metadata})
	if err != nil {
		return fmt.Errorf("encoding the labels of namespace %s: %w", found.Name, err)
	}
	_, err = acting.Kube.CoreV1().Namespaces().Patch(ctx, found.Name, types.ApplyPatchType, patch,
		metav1.PatchOptions{FieldManager: manager, Force: &force})
	if conflicts := conflictsIn(err, found.Name); len(conflicts) > 0 {
		return &NamespaceConflict{strings.Join(conflicts, "; ") + ": agree on one value, or take it out of one of them; " +
			"helm.takeOwnership takes it over"}
	}
	if err != nil {
		return fmt.Errorf("labelling namespace %s: %w", found.Name, err)
	}
	return nil
}

// conflictsIn names the labels and annotations with another value from another manager.
func conflictsIn(err error, namespace string) (conflicts []string) {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsConflict(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		what := cause.Field
		for kind, path := range map[string]string{"label ": ".metadata.labels.", "annotation ": ".metadata.annotations."} {
			if key, is := strings.CutPrefix(cause.Field, path); is {
				what = kind + key
			}
		}
		conflicts = append(conflicts, fmt.Sprintf("%s of namespace %s has another value from %s", what, namespace, managerIn(cause.Message)))
	}
	slices.Sort(conflicts)
	return conflicts[:min(len(conflicts), maxConflicts)]
}

// maxConflicts is the maximum number of conflicts in a message.
const maxConflicts = 3

// managerIn returns the manager in the cause of a conflict: a Bundle, or its name.
func managerIn(cause string) string {
	_, rest, _ := strings.Cut(cause, `"`)
	manager, _, _ := strings.Cut(rest, `"`)
	if of, is := strings.CutPrefix(manager, managerPrefix); is {
		_, bundle, _ := strings.Cut(of, "/")
		return "Bundle " + bundle
	}
	if manager == FieldManager {
		return "a Namespace in a Bundle"
	}
	return "field manager " + manager
}

// texts returns labels and annotations by their paths in managed fields.
func texts(labels, annotations map[string]string) map[string]string {
	all := map[string]string{}
	for key, value := range labels {
		all[labelPath+key] = value
	}
	for key, value := range annotations {
		all[annotationPath+key] = value
	}
	return all
}

const labelPath, annotationPath = "f:labels f:", "f:annotations f:"

// ownTexts returns the paths of labels and annotations applied by a manager.
func ownTexts(found *corev1.Namespace, manager string) (paths []string) {
	for i := range found.ManagedFields {
		if entry := &found.ManagedFields[i]; entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply {
			paths = append(paths, slices.Collect(maps.Keys(textsIn(fieldsOf(entry))))...)
		}
	}
	return paths
}

func fieldsOf(entry *metav1.ManagedFieldsEntry) map[string]any {
	fields := map[string]any{}
	if entry.Subresource != "" || entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
		return nil
	}
	return fields
}

// textsIn returns the paths of labels and annotations in managed fields, with their parent.
func textsIn(fields map[string]any) map[string]map[string]any {
	found := map[string]map[string]any{}
	metadata, _ := fields["f:metadata"].(map[string]any)
	for _, kind := range []string{"f:labels", "f:annotations"} {
		inside, _ := metadata[kind].(map[string]any)
		for key := range inside {
			if key != "." {
				found[kind+" "+key] = inside
			}
		}
	}
	return found
}
