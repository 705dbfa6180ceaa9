package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"helm.sh/helm/v4/pkg/kube"
	helm "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/muster-fleet/muster/internal/naming"
)

const (
	// LabelSet is the label of every object deployed by an agent of either kind.
	LabelSet      = naming.LabelObjectSet
	annotationSet = "objectset.rio.cattle.io/id"
)

var (
	namespaceKind = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	crdKind       = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
)

// renderer is the post-renderer: it marks and confines the manifests before Helm applies them.
type renderer struct {
	ctx context.Context //nolint:containedctx // Helm's interface has none
	// cluster has the agent's rights, acting the rights of the deployment's account.
	cluster, acting *Cluster
	request         Request
	// adopts is called if an object of an installation exists already; nil for an upgrade.
	adopts func()
	// replaced are handed-over objects with a changed immutable field.
	replaced sync.Map
}

// Run implements Helm's post-renderer.
func (r *renderer) Run(rendered *bytes.Buffer) (*bytes.Buffer, error) {
	objects, err := parse(rendered.Bytes())
	if err != nil {
		return nil, fmt.Errorf("reading the rendered chart: %w", err)
	}
	for i, copied := range r.request.Copies {
		objects = slices.Insert(objects, i, copied.DeepCopy())
	}
	if err := normalize(objects); err != nil {
		return nil, err
	}
	objects, repeated := lastOfEach(objects, r.request.Namespace)
	r.request.noteRepeated(repeated)
	if err := r.cluster.refuseNamespaces(r.ctx, r.request, objects); err != nil {
		return nil, err
	}
	// The history of the release holds the rendered manifests. Its sources would double it, and a
	// Secret is limited in size.
	r.request.Chart.Templates, r.request.Chart.Files, r.request.Chart.Schema = nil, nil, nil
	crds, brought := r.mark(objects)
	if target := r.request.Options.TargetNamespace; target != "" {
		// Definitions come first, because objects of their kinds cannot be looked up yet.
		for _, object := range slices.Concat(crds, objects) {
			if err := r.force(object, target); err != nil {
				return nil, err
			}
		}
	}
	if r.adopts != nil {
		if there, err := r.anyThere(objects); err != nil {
			return nil, err
		} else if there {
			r.adopts()
		}
	}
	if err := r.cluster.prepareNamespace(r.ctx, r.acting, r.request, brought); err != nil {
		return nil, err
	}
	if err := r.establish(objects, crds); err != nil {
		return nil, err
	}
	if err := r.spareAgent(objects); err != nil {
		return nil, err
	}
	if err := r.prove(objects); err != nil {
		return nil, err
	}
	if err := r.cluster.labelNamespace(r.ctx, r.acting, r.request); err != nil {
		return nil, err
	}
	return encode(objects)
}

// anyThere reports whether any of the objects exists on the cluster.
func (r *renderer) anyThere(objects []*unstructured.Unstructured) (bool, error) {
	for _, object := range objects {
		mapping, served, err := r.cluster.Find(r.ctx, object.GroupVersionKind())
		if err != nil {
			return false, err
		}
		if !served || object.GetName() == "" {
			continue
		}
		_, err = at(r.acting, mapping, Summary{Namespace: r.request.Namespace}, object).Get(r.ctx, object.GetName(), metav1.GetOptions{})
		if err == nil {
			return true, nil
		} else if !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("looking whether %s is there: %w", named(Summary{Namespace: r.request.Namespace}, object), err)
		}
	}
	return false, nil
}

// mark marks all objects with the Bundle. It returns the CustomResourceDefinitions among them, and
// whether the release brings its namespace.
func (r *renderer) mark(objects []*unstructured.Unstructured) (crds []*unstructured.Unstructured, brought bool) {
	set := setOf(r.request.Bundle)
	for _, object := range objects {
		put(object.GetLabels(), LabelSet, naming.ObjectSetHash(set), object.SetLabels)
		put(object.GetAnnotations(), annotationSet, set, object.SetAnnotations)
		if isCRD(object) && !r.request.Options.DeleteCRDResources {
			put(object.GetAnnotations(), kube.ResourcePolicyAnno, kube.KeepPolicy, object.SetAnnotations)
		}
		switch {
		case isHook(object):
			// Helm marks its managed objects, but not hooks. Hooks are removed with the release all the
			// same. If a hook becomes an ordinary object of the chart, the release recognizes it as its own.
			Mark(object, r.request.ID())
		case isCRD(object):
			crds = append(crds, object)
		case isNamespace(object, r.request.Namespace):
			brought = true
		}
	}
	return crds, brought
}

// force sets the namespace of a confined Bundle.
func (r *renderer) force(object *unstructured.Unstructured, namespace string) error {
	kind := object.GroupVersionKind()
	mapping, err := r.cluster.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fmt.Errorf("looking up %s: %w", kind, err)
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return fmt.Errorf("%s %s is cluster-scoped, but spec.options.namespace confines the Bundle to namespace %s: take it out of the Bundle, "+
			"or use defaultNamespace instead", kind.Kind, object.GetName(), namespace)
	}
	object.SetNamespace(namespace)
	return nil
}

// establish applies the CustomResourceDefinitions if manifests use unserved kinds, because Helm
// cannot map them.
func (r *renderer) establish(objects, crds []*unstructured.Unstructured) error {
	if len(crds) == 0 {
		return nil
	}
	unknown := false
	for _, object := range objects {
		kind := object.GroupVersionKind()
		if _, err := r.cluster.Mapper.RESTMapping(kind.GroupKind(), kind.Version); meta.IsNoMatchError(err) {
			unknown = true
		} else if err != nil {
			return fmt.Errorf("looking up %s: %w", kind, err)
		}
	}
	if !unknown {
		return nil
	}
	if r.request.Rendered != nil {
		r.request.Rendered() // the API server may take longer for definitions than a chart for its templates
	}
	if err := r.acting.establish(r.ctx, crds, r.request.ID()); err != nil {
		return err
	}
	r.cluster.Mapper.Reset()
	return nil
}

func isHook(object *unstructured.Unstructured) bool {
	return object.GetAnnotations()[helm.HookAnnotation] != ""
}

func isNamespace(object *unstructured.Unstructured, name string) bool {
	return object.GroupVersionKind() == namespaceKind && object.GetName() == name
}

func isCRD(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == crdKind
}

func put(values map[string]string, key, value string, set func(map[string]string)) {
	if values == nil {
		values = map[string]string{}
	}
	values[key] = value
	set(values)
}

// setOf returns the object set of a BundleDeployment, with upstream's name.
func setOf(bundle string) string { return "default-" + bundle }

// parse reads a stream of YAML documents, and the items of lists.
func parse(manifest []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(object.Object) == 0:
			continue
		case !object.IsList():
			objects = append(objects, object)
			continue
		}
		err = object.EachListItem(func(item runtime.Object) error {
			objects = append(objects, item.(*unstructured.Unstructured))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
}

func encode(objects []*unstructured.Unstructured) (*bytes.Buffer, error) {
	var buffer bytes.Buffer
	for _, object := range objects {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		buffer.WriteString("---\n")
		buffer.Write(text)
	}
	return &buffer, nil
}
