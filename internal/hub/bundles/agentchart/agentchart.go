// Package agentchart renders the chart fleet-agent for clusters with an agent installed by the hub
// itself.
//
// Its invariant: the chart is the only manifest of the agent in this project. The package adds
// only the agent's namespace and Helm's marks of a release. It removes only the marks of a Helm
// hook.
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

const (
	release   = "fleet-agent"
	hook      = "helm.sh/hook"
	managedBy = "app.kubernetes.io/managed-by"
)

// last lists the kinds applied after the objects they need.
var last = []string{"Deployment", "PodDisruptionBudget"}

// Render returns the objects of the agent in the order of application.
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
	objects := []*unstructured.Unstructured{{
		Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}},
	}}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(path, ".yaml") {
			continue
		}
		for _, document := range strings.Split(files[path], "\n---") {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
				return nil, fmt.Errorf("reading what %s rendered: %w", path, err)
			}
			if len(object.Object) > 0 && object.GetAnnotations()[hook] != "test" {
				mark(object, namespace)
				objects = append(objects, object)
			}
		}
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return slices.Index(last, a.GetKind()) - slices.Index(last, b.GetKind())
	})
	return objects, nil
}

// mark makes an object part of the chart's release. Helm can then upgrade the release, even after
// the agent's namespace was deleted and only cluster-scoped objects are left. As with Helm
// itself, a hook belongs to no release.
func mark(object *unstructured.Unstructured, namespace string) {
	annotations, labels := object.GetAnnotations(), object.GetLabels()
	if _, isHook := annotations[hook]; isHook {
		object.SetAnnotations(without(annotations, "helm.sh/"))
		object.SetLabels(without(labels, managedBy))
		return
	}
	set := func(in map[string]string, key, value string) map[string]string {
		if in == nil {
			in = map[string]string{}
		}
		in[key] = value
		return in
	}
	annotations = set(annotations, "meta.helm.sh/release-name", release)
	object.SetAnnotations(set(annotations, "meta.helm.sh/release-namespace", namespace))
	object.SetLabels(set(labels, managedBy, "Helm"))
}

// without removes the keys containing a text, and returns nil if none are left.
func without(all map[string]string, text string) map[string]string {
	maps.DeleteFunc(all, func(key, _ string) bool { return strings.Contains(key, text) })
	if len(all) == 0 {
		return nil
	}
	return all
}
