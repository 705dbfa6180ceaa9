package bundle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/removal"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
)

// maxQuoted limits the quoted part of a mapping in a status.
const maxQuoted = 400

// consents reports whether a namespace accepts Bundles of another one. Tenants of a workspace may
// write their Bundles and Clusters, but usually not the Namespace itself.
func consents(namespace *metav1.PartialObjectMetadata, from string) bool {
	for name := range strings.SplitSeq(namespace.Annotations[fleet.AnnotationBundlesFrom], ",") {
		if strings.TrimSpace(name) == from {
			return true
		}
	}
	return false
}

// mayOpen reports whether mappings of one namespace may open another.
func mayOpen(settings settings.Mappings, from string, namespace *metav1.PartialObjectMetadata) bool {
	return namespace.Name == from || settings.Open ||
		consents(namespace, from) && (settings.ToLocal || !settings.IsLocal(namespace.Name))
}

// opens reports whether a mapping lets its Bundles into a namespace; nil means no namespace.
func opens(settings settings.Mappings, mapping *fleet.BundleNamespaceMapping, namespace *metav1.PartialObjectMetadata) bool {
	return selects(mapping, namespace) && mayOpen(settings, mapping.Namespace, namespace)
}

// selects reports whether a valid mapping selects a namespace, regardless of its consent; nil
// means no namespace.
func selects(mapping *fleet.BundleNamespaceMapping, namespace *metav1.PartialObjectMetadata) bool {
	if namespace == nil || invalid(mapping) != nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(mapping.NamespaceSelector)
	return err == nil && selector.Matches(labels.Set(namespace.Labels))
}

// invalid returns the reason why a mapping opens nothing.
func invalid(mapping *fleet.BundleNamespaceMapping) error {
	var problems []error
	for _, selector := range []struct {
		field string
		value *metav1.LabelSelector
	}{{"bundleSelector", mapping.BundleSelector}, {"namespaceSelector", mapping.NamespaceSelector}} {
		if _, err := metav1.LabelSelectorAsSelector(selector.value); err != nil {
			problems = append(problems, fmt.Errorf("%s: %s", selector.field, kube.Clip(err.Error(), maxQuoted)))
		}
	}
	return errors.Join(problems...)
}

// bundleSelector selects the Bundles of a mapping: all in its namespace if its selector is
// invalid.
func bundleSelector(mapping *fleet.BundleNamespaceMapping) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(mapping.BundleSelector)
	if err != nil {
		return labels.Everything()
	}
	return selector
}

// reach holds the namespaces allowed for the targets of a Bundle.
type reach struct {
	// workspaces are the Bundle's own namespace, and the namespaces opened for it by
	// BundleNamespaceMappings, sorted.
	workspaces []string
	// closed are the namespaces selected by mappings, without their own consent. They get nothing
	// new, and existing deployments stay.
	closed map[string]bool
	// problem names the invalid mappings that may select the Bundle. They open nothing, and nothing is
	// deleted because of them.
	problem error
}

// reach returns the namespaces allowed for the targets of a Bundle.
func (c *Controller) reach(ctx context.Context, bundle *fleet.Bundle) (reach, error) {
	found := reach{workspaces: []string{bundle.Namespace}, closed: map[string]bool{}}
	var mappings fleet.BundleNamespaceMappingList
	if err := c.Client.List(ctx, &mappings, client.InNamespace(bundle.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return found, fmt.Errorf("listing the BundleNamespaceMappings: %w", err)
	}
	for i := range mappings.Items {
		mapping := &mappings.Items[i]
		if !bundleSelector(mapping).Matches(labels.Set(bundle.Labels)) {
			continue
		}
		if problem := invalid(mapping); problem != nil {
			found.problem = errors.Join(found.problem,
				fmt.Errorf("BundleNamespaceMapping %s is invalid and opens nothing: %w", mapping.Name, problem))
			continue
		}
		selected, err := selectedNamespaces(ctx, c.Workspaces, mapping)
		if err != nil {
			return found, err
		}
		for j := range selected {
			if mayOpen(c.Config.Current().Mappings, mapping.Namespace, &selected[j]) {
				found.workspaces = append(found.workspaces, selected[j].Name)
			} else {
				found.closed[selected[j].Name] = true
			}
		}
	}
	slices.Sort(found.workspaces)
	found.workspaces = slices.Compact(found.workspaces)
	return found, nil
}

// selectedNamespaces returns the namespaces selected by a valid mapping, regardless of their
// consent.
func selectedNamespaces(ctx context.Context, namespaces client.Reader,
	mapping *fleet.BundleNamespaceMapping) ([]metav1.PartialObjectMetadata, error) {
	selector, err := metav1.LabelSelectorAsSelector(mapping.NamespaceSelector)
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := namespaces.List(ctx, list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing the namespaces of BundleNamespaceMapping %s: %w", mapping.Name, err)
	}
	return list.Items, nil
}

// findLeftover selects the deployments without a target to delete. It needs a cause: in the Bundle,
// in a mapping, or in an existing Cluster. None of these is a cause: a missing Cluster, a namespace
// without consent, a newly invalid mapping. The mapping problem names the namespaces without
// consent but with a deployment.
func (o *observed) findLeftover(to reach, present map[string]*fleet.Cluster, untargeted map[string]*fleet.BundleDeployment) {
	kept := map[string]bool{}
	for _, d := range untargeted {
		workspace := d.Labels[fleet.LabelClusterNamespace]
		switch {
		case slices.Contains(to.workspaces, workspace):
			if present[d.Namespace] != nil {
				o.leftover = append(o.leftover, leftover{d, removal.NoTarget})
			}
		case to.closed[workspace]:
			kept[workspace] = true
		case to.problem == nil:
			o.leftover = append(o.leftover, leftover{d, removal.NoMapping})
		}
	}
	if o.mappingProblem = to.problem; len(kept) > 0 {
		names := slices.Sorted(maps.Keys(kept))
		closed := kube.JoinNames(names[:min(len(names), maxProblems)], len(names))
		o.mappingProblem = errors.Join(to.problem,
			fmt.Errorf("a BundleNamespaceMapping selects %s, which does not consent: the deployments there stay "+
				"as they are, without updates; the condition Ready of the mapping has the command to consent; to remove them, delete the "+
				"BundleDeployments", closed))
	}
}
