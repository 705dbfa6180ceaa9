package customization

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery/templates"
)

// renderNamespace fills the templates in the labels and annotations of the namespace. The keys are
// no templates. A result that is not a valid label value is an error here, because the member would
// refuse the whole namespace.
func renderNamespace(options *fleet.BundleDeploymentOptions, cluster *fleet.Cluster) error {
	if options.Helm != nil && options.Helm.DisablePreProcess ||
		!anyTemplate(options.NamespaceLabels) && !anyTemplate(options.NamespaceAnnotations) {
		return nil
	}
	data, err := templateData(cluster)
	if err != nil {
		return err
	}
	return templates.With(func(filler *templates.Filler) error {
		if err := fillTexts(filler, "namespaceLabels", options.NamespaceLabels, data); err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(options.NamespaceLabels)) {
			if wrong := validation.IsValidLabelValue(options.NamespaceLabels[key]); len(wrong) > 0 {
				return fmt.Errorf("namespaceLabels.%s: the result is no value of a label: %s", key, strings.Join(wrong, "; "))
			}
		}
		return fillTexts(filler, "namespaceAnnotations", options.NamespaceAnnotations, data)
	})
}

// anyTemplate reports whether any of the values has a template.
func anyTemplate(of map[string]string) bool {
	for _, value := range of {
		if strings.Contains(value, "${") {
			return true
		}
	}
	return false
}

func fillTexts(filler *templates.Filler, path string, of map[string]string, data map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(of)) {
		filled, err := filler.Fill(of[key], data)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", path, key, err)
		}
		of[key] = filled
	}
	return nil
}
