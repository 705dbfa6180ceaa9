package release

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// annotationMadeFor is the annotation of a namespace created for a release. Only such a namespace
// is deleted with the release.
const annotationMadeFor = "muster/made-for-bundle"

// labelName is the label for the name of a namespace created for a release, as with agents of
// Rancher Fleet.
const labelName = "name"

// TerminatingNamespace is the error for a release with its namespace in deletion.
type TerminatingNamespace struct{ Name string }

func (t *TerminatingNamespace) Error() string {
	return fmt.Sprintf("namespace %s is being deleted, so nothing can be deployed to it: waiting until it is gone; its conditions say what "+
		"holds it: kubectl get namespace %s -o yaml", t.Name, t.Name)
}

// prepareNamespace creates the namespace of a release without the labels and annotations of the
// options; labelNamespace applies these. A namespace from the chart becomes an object of the
// release, because it holds the history. The agent reads the namespace, because a confined account
// may not.
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
	case apierrors.IsNotFound(err) && r.Options.NamespaceCreationForbiddenBy != "":
		return r.forbidsNamespace(r.Namespace)
	case apierrors.IsNotFound(err) && brought:
		found, err = create(ctx, namespaces, r, map[string]string{managedBy: helmItself}, marked(nil, r.ID()))
	case apierrors.IsNotFound(err) && r.Options.CreateNamespace != nil && !*r.Options.CreateNamespace:
		return fmt.Errorf("namespace %s does not exist, and spec.options.createNamespace is false: create it, or let the deployment do so",
			r.Namespace)
	case apierrors.IsNotFound(err):
		found, err = create(ctx, namespaces, r, map[string]string{labelName: r.Namespace},
			map[string]string{annotationMadeFor: madeFor(r.Owner())})
	case err != nil:
		err = fmt.Errorf("reading namespace %s: %w", r.Namespace, err)
	}
	if apierrors.IsAlreadyExists(err) { // another client created it meanwhile
		found, err = c.Kube.CoreV1().Namespaces().Get(ctx, r.Namespace, metav1.GetOptions{})
	}
	if err != nil {
		return err
	}
	if found.DeletionTimestamp != nil {
		return &TerminatingNamespace{Name: r.Namespace}
	}
	return allowed(r.Options.AllowedTargetNamespaceSelector, found)
}

// forbidsNamespace returns the error for a namespace forbidden to the release by a Policy.
func (r Request) forbidsNamespace(name string) error {
	return fmt.Errorf("namespace %s does not exist, and a deployment may not create it by Policy %s of namespace %s on the hub: create it on "+
		"this cluster, or have a Policy set allowNamespaceCreation", name, r.Options.NamespaceCreationForbiddenBy, r.Workspace)
}

// refuseNamespaces refuses new Namespaces among the objects, if a Policy forbids their creation.
func (c *Cluster) refuseNamespaces(ctx context.Context, r Request, objects []*unstructured.Unstructured) error {
	if r.Options.NamespaceCreationForbiddenBy == "" {
		return nil
	}
	for _, object := range objects {
		if object.GroupVersionKind() != namespaceKind {
			continue
		}
		_, err := c.Kube.CoreV1().Namespaces().Get(ctx, object.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return r.forbidsNamespace(object.GetName())
		} else if err != nil {
			return fmt.Errorf("reading namespace %s: %w", object.GetName(), err)
		}
	}
	return nil
}

// create creates the namespace of a release.
func create(ctx context.Context, namespaces typedcorev1.NamespaceInterface, r Request,
	labels, annotations map[string]string) (*corev1.Namespace, error) {
	made, err := namespaces.Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: r.Namespace, Labels: labels, Annotations: annotations},
	},
		metav1.CreateOptions{FieldManager: FieldManager})
	if err != nil {
		return nil, fmt.Errorf("creating namespace %s: %w", r.Namespace, err)
	}
	return made, nil
}

// marked returns a copy of annotations with the mark of a release.
func marked(annotations map[string]string, id ID) map[string]string {
	return with(with(annotations, helmReleaseName, id.Name), helmReleaseNamespace, id.Namespace)
}

// madeFor returns the value of annotationMadeFor.
func madeFor(o Owner) string { return o.Workspace + "/" + o.Bundle }

// with returns a copy of values with one more.
func with(values map[string]string, key, value string) map[string]string {
	all := maps.Clone(values)
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	return all
}

// within reports whether all has every label of some, with the same value.
func within(some, all map[string]string) bool {
	for key, value := range some {
		if is, there := all[key]; !there || is != value {
			return false
		}
	}
	return true
}

// allowed returns an error if the selector of allowed namespaces does not match.
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
	return fmt.Errorf("namespace %s may not be deployed to: its labels do not match spec.options.allowedTargetNamespaceSelector (%s)",
		namespace.Name, parsed)
}
