package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/kube"
)

// objectsFit checks that no object of a new release exists. Helm would fail at the first one,
// with the other chart already installed. The error names the objects of both charts.
func (i *initializer) objectsFit(cluster *checked) check {
	return check{"objects", false, func(ctx context.Context) (string, error) {
		var taken []string
		for _, r := range hubCharts() {
			found, err := i.takenBefore(ctx, cluster, r)
			if err != nil {
				return "", err
			}
			taken = append(taken, found...)
		}
		if len(taken) > 0 {
			return "", fmt.Errorf("objects on %s have the names of Muster's objects; nothing is changed. Delete them, or add them to the release "+
				"to overwrite them:\n%s",
				cluster.role, strings.Join(taken, "\n"))
		}
		return "no object is in the way", nil
	}}
}

// takenBefore returns the commands to adopt existing objects for a new release.
func (i *initializer) takenBefore(ctx context.Context, cluster *checked, r chartRelease) (commands []string, err error) {
	helm, err := i.helm(r)
	if err != nil || i.takesOver {
		return nil, err
	}
	if revisions, err := helm.history(); err != nil || len(revisions) > 0 {
		return nil, err
	}
	given, err := i.over(map[string]any{"apiServerURL": cluster.server})
	if err != nil {
		return nil, err
	}
	manifest, err := helm.render(ctx, given)
	if err != nil {
		return nil, err
	}
	objects, err := objectsOf(manifest)
	if err != nil {
		return nil, fmt.Errorf("reading the objects of chart %s: %w", r.chart, err)
	}
	for _, o := range objects {
		existing := kube.Metadata(o.GroupVersionKind())
		mapping, err := cluster.RESTMapper().RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		if meta.IsNoMatchError(err) {
			continue // the earlier chart defines the kind
		} else if err != nil {
			return nil, fmt.Errorf("asking %s for kind %s: %w", cluster.role, o.GetKind(), err)
		}
		key := client.ObjectKey{Name: o.GetName()}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			key.Namespace = o.GetNamespace()
			if key.Namespace == "" {
				key.Namespace = r.namespace
			}
		}
		switch err := cluster.Get(ctx, key, existing); {
		case apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err):
			return nil, notAsked{err}
		case err != nil:
			return nil, fmt.Errorf("reading %s %s on %s: %w", o.GetKind(), key.Name, cluster.role, err)
		case !isOfRelease(existing, r) && !isShared(existing):
			commands = append(commands, adoptCommand(cluster.contextName(), mapping.Resource.GroupResource().String(), existing, r))
		}
	}
	return commands, nil
}

// isOfRelease reports whether Helm considers an object part of a release, by Helm's own marks.
func isOfRelease(o metav1.Object, r chartRelease) bool {
	marks := o.GetAnnotations()
	return o.GetLabels()[labelMadeBy] == "Helm" && marks["meta.helm.sh/release-name"] == r.chart &&
		marks["meta.helm.sh/release-namespace"] == r.namespace
}

// isShared reports whether an object is the definition of a kind that the charts leave to its
// owner. A rendered chart contains the definition, because rendering does not look for the owner.
func isShared(o client.Object) bool {
	return o.GetObjectKind().GroupVersionKind().Kind == "CustomResourceDefinition" &&
		slices.Contains([]string{"appliedworks.placement.kubernetes-fleet.io", "clusterprofiles.multicluster.x-k8s.io"}, o.GetName())
}

func adoptCommand(context, resource string, o metav1.Object, r chartRelease) string {
	kubectl := "kubectl --context " + context
	if namespace := o.GetNamespace(); namespace != "" {
		kubectl += " -n " + namespace
	}
	return fmt.Sprintf("  %s label %s %s --overwrite %s=Helm && %[1]s annotate %[2]s %[3]s --overwrite meta.helm.sh/release-name=%[5]s "+
		"meta.helm.sh/release-namespace=%[6]s",
		kubectl, resource, o.GetName(), labelMadeBy, r.chart, r.namespace)
}

// objectsOf reads the objects of a manifest.
func objectsOf(manifest string) (objects []*unstructured.Unstructured, err error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096)
	for {
		o := &unstructured.Unstructured{}
		switch err := decoder.Decode(&o.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(o.Object) > 0:
			objects = append(objects, o)
		}
	}
}
