package agentchart

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/charts"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/naming"
)

const (
	valuesFile = "values.yaml"
	definition = "templates/appliedworks.yaml"
)

// Resources returns the chart for a Bundle, compressed because every Cluster has one. Settings
// common to all agents of a hub become defaults of the chart's values. All agents therefore share
// one Content, and a user's own values take precedence.
func Resources(agent settings.Agent) ([]fleet.BundleResource, error) {
	return resourcesOf(release, agent, setDefaults)
}

// MemberResources returns the chart of the agents of MemberClusters for their BundleDeployments, in
// the same form.
func MemberResources(agent settings.Agent) ([]fleet.BundleResource, error) {
	return resourcesOf(naming.MemberAgentChart, agent, setMemberDefaults)
}

func resourcesOf(chart string, agent settings.Agent, setDefaults func(map[string]any, settings.Agent)) ([]fleet.BundleResource, error) {
	var resources []fleet.BundleResource
	err := fs.WalkDir(charts.FS, chart, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		inside := strings.TrimPrefix(name, chart+"/")
		if inside == definition || path.Base(inside) == ".helmignore" {
			return nil // the definition exists before the agent, and belongs to its installer
		}
		data, err := fs.ReadFile(charts.FS, name)
		if err == nil && inside == valuesFile {
			data, err = withDefaults(data, func(values map[string]any) { setDefaults(values, agent) })
		}
		if err != nil {
			return err
		}
		packed, err := delivery.Gzip(data)
		resources = append(resources, fleet.BundleResource{
			Name: inside, Content: base64.StdEncoding.EncodeToString(packed), Encoding: fleet.EncodingGzip,
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("packing the agent's chart: %w", err)
	}
	return resources, nil
}

// withDefaults edits the values of a chart.
func withDefaults(text []byte, edit func(map[string]any)) ([]byte, error) {
	values := map[string]any{}
	if err := yaml.Unmarshal(text, &values); err != nil {
		return nil, err
	}
	edit(values)
	return yaml.Marshal(values)
}

// setDefaults puts the settings of the hub into the values of the chart of Clusters' agents.
func setDefaults(values map[string]any, agent settings.Agent) {
	registry := strings.TrimSuffix(agent.Registry, "/")
	if agent.Image != "" {
		of := splitImage(strings.TrimPrefix(agent.Image, registry+"/"))
		set(values, of.Repository, "image", "repository")
		set(values, of.Tag, "image", "tag")
	}
	if agent.ImagePullPolicy != "" {
		set(values, agent.ImagePullPolicy, "image", "imagePullPolicy")
	}
	if agent.GarbageCollectionInterval > 0 {
		set(values, duration(agent.GarbageCollectionInterval), "garbageCollectionInterval")
	}
	set(values, registry, "global", "cattle", "systemDefaultRegistry")
	set(values, agent.PullSecrets, "global", "imagePullSecrets")
}

// setMemberDefaults puts the settings of the hub into the values of the chart of MemberClusters'
// agents. This chart has no value for the registry.
func setMemberDefaults(values map[string]any, agent settings.Agent) {
	if agent.Image != "" {
		of := splitImage(agent.Image)
		if registry := strings.TrimSuffix(agent.Registry, "/"); registry != "" {
			of.Repository = registry + "/" + strings.TrimPrefix(of.Repository, registry+"/")
		}
		set(values, of.Repository, "image", "repository")
		set(values, of.Tag, "image", "tag")
	}
	if agent.ImagePullPolicy != "" {
		set(values, agent.ImagePullPolicy, "image", "pullPolicy")
	}
	if len(agent.PullSecrets) > 0 {
		set(values, agent.PullSecrets, "imagePullSecrets")
	}
}

// Overrides returns the values of one agent with precedence over the user's values: the settings in
// the spec of its Cluster. If the hub itself installed the agent, there is no user; the other
// values of the installation are included. It returns nil if no value takes precedence.
func Overrides(cluster *fleet.Cluster, clientID, namespace string, agent settings.Agent) ([]byte, error) {
	spec, tree := cluster.Spec, map[string]any{}
	settled := Of(cluster, clientID, agent, namespace)
	text, err := json.Marshal(settled)
	if err == nil {
		err = json.Unmarshal(text, &tree)
	}
	if err != nil {
		return nil, fmt.Errorf("preparing the values of the agent: %w", err)
	}
	values := map[string]any{}
	if own, ok := tree["fleetAgent"].(map[string]any); ok && len(own) > 0 {
		values["fleetAgent"] = own
	}
	if spec.HostNetwork != nil {
		set(values, *spec.HostNetwork, "fleetAgent", "hostNetwork")
	}
	if spec.PrivateRepoURL != "" {
		set(values, settled.Global.Cattle.SystemDefaultRegistry, "global", "cattle", "systemDefaultRegistry")
	}
	if spec.AgentPullSecrets != nil {
		set(values, append([]string{}, settled.Global.ImagePullSecrets...), "global", "imagePullSecrets")
	}
	if last := cluster.Status.Import; last != nil && spec.KubeConfigSecret != "" {
		values["clientID"], values["agentTLSMode"] = settled.ClientID, settled.AgentTLSMode
		set(values, Generation(last.Time.Time), "internal", "generation")
	}
	if namespace != naming.SystemNamespace {
		set(values, namespace, "internal", "systemNamespace")
	}
	if len(values) == 0 {
		return nil, nil
	}
	return json.Marshal(values)
}

// set sets the value at a path of keys.
func set(values map[string]any, value any, keys ...string) {
	for _, key := range keys[:len(keys)-1] {
		inside, ok := values[key].(map[string]any)
		if !ok {
			inside = map[string]any{}
			values[key] = inside
		}
		values = inside
	}
	values[keys[len(keys)-1]] = value
}
