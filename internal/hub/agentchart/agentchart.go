// Package agentchart renders the chart fleet-agent for the clusters on which the hub itself installs the agent.
//
// Its invariant: the agent has one manifest in this project, the chart; nothing is added to it here but its namespace, and nothing removed but what
// only Helm understands.
package agentchart

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/muster-fleet/muster/charts"
)

const release = "fleet-agent"

// last are the kinds that are applied after all others, which they need.
var last = []string{"Deployment", "PodDisruptionBudget"}

// Render returns the objects of the agent in the order in which they are to be applied.
func Render(values Values) ([]*unstructured.Unstructured, error) {
	loaded, err := charts.Load(release)
	if err != nil {
		return nil, err
	}
	given := map[string]any{}
	text, err := json.Marshal(values)
	if err == nil {
		err = json.Unmarshal(text, &given)
	}
	if err != nil {
		return nil, fmt.Errorf("preparing the values of the agent's chart: %w", err)
	}
	namespace := values.Internal.SystemNamespace
	options := common.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
	prepared, err := util.ToRenderValues(loaded, given, options, common.DefaultCapabilities)
	if err != nil {
		return nil, fmt.Errorf("the agent's chart does not accept its values: %w", err)
	}
	files, err := engine.Render(loaded, prepared)
	if err != nil {
		return nil, fmt.Errorf("rendering the agent's chart: %s", charts.Sentence(err))
	}
	objects := []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}}}}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(path, ".yaml") {
			continue
		}
		for _, document := range strings.Split(files[path], "\n---") {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
				return nil, fmt.Errorf("reading what %s rendered: %w", path, err)
			}
			if len(object.Object) > 0 && object.GetAnnotations()["helm.sh/hook"] != "test" {
				withoutHook(object)
				objects = append(objects, object)
			}
		}
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return slices.Index(last, a.GetKind()) - slices.Index(last, b.GetKind())
	})
	return objects, nil
}

// withoutHook removes the annotations of a Helm hook and the label of a release from an object.
func withoutHook(object *unstructured.Unstructured) {
	annotations, labels := object.GetAnnotations(), object.GetLabels()
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.Contains(key, "helm.sh/") })
	delete(labels, "app.kubernetes.io/managed-by")
	if len(labels) == 0 {
		labels = nil
	}
	object.SetLabels(labels)
	if len(annotations) == 0 {
		annotations = nil
	}
	object.SetAnnotations(annotations)
}
