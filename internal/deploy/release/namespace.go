package release

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// annotationMadeFor is on a namespace that was made for a release. Only such a one goes with it.
const annotationMadeFor = "muster/made-for-bundle"

// prepareNamespace makes the namespace of a release, unless the release brings it itself, and puts on it what the options say. An account that
// is confined to its namespace need not be able to read it: the agent does.
func (c *Cluster) prepareNamespace(ctx context.Context, acting *Cluster, r Request, brought bool) error {
	namespaces := acting.Kube.CoreV1().Namespaces()
	found, err := c.Kube.CoreV1().Namespaces().Get(ctx, r.Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		absent := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.Namespace}}
		if err := allowed(r.Options.AllowedTargetNamespaceSelector, absent); err != nil {
			return err
		}
	}
	switch {
	case apierrors.IsNotFound(err) && brought:
		return nil
	case apierrors.IsNotFound(err) && r.Options.CreateNamespace != nil && !*r.Options.CreateNamespace:
		return fmt.Errorf("namespace %s does not exist, and spec.options.createNamespace is false: create it, or let the deployment do so", r.Namespace)
	case apierrors.IsNotFound(err):
		found, err = namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: r.Namespace, Labels: r.Options.NamespaceLabels,
			Annotations: with(r.Options.NamespaceAnnotations, annotationMadeFor, madeFor(r.Owner())),
		}}, metav1.CreateOptions{FieldManager: FieldManager})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating namespace %s: %w", r.Namespace, err)
		}
	case err != nil:
		return fmt.Errorf("reading namespace %s: %w", r.Namespace, err)
	}
	if found.DeletionTimestamp != nil {
		return fmt.Errorf("namespace %s is being deleted, so nothing can be deployed to it: waiting until it is gone; its conditions say what holds it: "+
			"kubectl get namespace %s -o yaml", r.Namespace, r.Namespace)
	}
	if err := allowed(r.Options.AllowedTargetNamespaceSelector, found); err != nil {
		return err
	}
	if within(r.Options.NamespaceLabels, found.Labels) && within(r.Options.NamespaceAnnotations, found.Annotations) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"labels": r.Options.NamespaceLabels, "annotations": r.Options.NamespaceAnnotations,
	}})
	if err != nil {
		return fmt.Errorf("encoding the labels of namespace %s: %w", r.Namespace, err)
	}
	if _, err := namespaces.Patch(ctx, r.Namespace, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager}); err != nil {
		return fmt.Errorf("labelling namespace %s: %w", r.Namespace, err)
	}
	return nil
}

// madeFor is what a namespace says of whom it was made for.
func madeFor(o Owner) string { return o.Workspace + "/" + o.Bundle }

// with is a copy of values with one more.
func with(values map[string]string, key, value string) map[string]string {
	all := maps.Clone(values)
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	return all
}

// within says whether all of some is in all.
func within(some, all map[string]string) bool {
	merged := maps.Clone(all)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, some)
	return maps.Equal(merged, all) || len(some) == 0
}

// allowed says whether a Bundle that may only go to some namespaces may go to this one.
func allowed(selector *metav1.LabelSelector, namespace *corev1.Namespace) error {
	if selector == nil {
		return nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return fmt.Errorf("spec.options.allowedTargetNamespaceSelector is no selector: %w", err)
	}
	if parsed.Matches(labels.Set(namespace.Labels)) {
		return nil
	}
	return fmt.Errorf("namespace %s may not be deployed to: its labels do not match spec.options.allowedTargetNamespaceSelector (%s)", namespace.Name, parsed)
}
