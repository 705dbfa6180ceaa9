package agentbundle

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/lru"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/bundles/agentchart"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/naming"
)

const (
	// releaseName is the release name of a user's installation of the agent's chart.
	releaseName = "fleet-agent"
	// history is the number of revisions kept, the same as in Helm's command.
	history = 10
	// annotationSentAt on a Bundle is the time of writing its version.
	annotationSentAt = "muster/told-at"
	// annotationBefore on a Bundle is the common part of the version last confirmed by the agent.
	annotationBefore = "muster/confirmed-before"
	// annotationSettings on a Bundle is the digest of the agent's settings, in the importer's
	// form.
	annotationSettings = "muster/agent-settings"
	// hasResources is the cache's mark on a Bundle after it has dropped the Bundle's resources. No
	// object of an API server has an annotation with a space in its name.
	hasResources = "has resources"
	// charts is the number of packed charts kept, one for each of the hub's last settings.
	charts = 16
	// digits is the length of each digest in a version.
	digits = 20
)

// NoteResources marks an agent's Bundle with resources of its own, before the cache drops them. A
// Bundle written by the hub has none.
func NoteResources(bundle *fleet.Bundle) {
	if bundle.Labels[fleet.LabelAgent] != "" && len(bundle.Spec.Resources) > 0 {
		metav1.SetMetaDataAnnotation(&bundle.ObjectMeta, hasResources, "")
	}
}

// versionOf returns the version in a cached Bundle, regardless of its label. A Bundle with
// resources of its own has no version.
func versionOf(bundle *fleet.Bundle) (version, error) {
	if _, has := bundle.Annotations[hasResources]; has || bundle.Spec.ContentsID == "" {
		return version{}, nil
	}
	spec := bundle.Spec
	spec.ContentsID = ""
	own, err := digestOf(spec)
	return version{naming.Digest(bundle.Spec.ContentsID)[:digits], own}, err
}

// chart is the chart of an agent, packed for the settings of the hub.
type chart struct {
	// resources returns the files of the chart.
	resources func(settings.Agent) ([]fleet.BundleResource, error)

	mu       sync.Mutex
	settings settings.Agent
	// content is packed for these settings; nil before the first pack.
	content *fleet.Content
	// packed holds this Content and the Contents of earlier settings, by name.
	packed *lru.Cache
}

func (c *chart) pack(settings settings.Agent) (*fleet.Content, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.content != nil && reflect.DeepEqual(c.settings, settings) {
		return c.content, nil
	}
	resources, err := c.resources(settings)
	if err != nil {
		return nil, err
	}
	content, err := delivery.Pack(resources)
	if err != nil {
		return nil, fmt.Errorf("packing the agent's chart: %w", err)
	}
	c.settings, c.content = settings, content
	c.packed.Add(content.Name, content)
	return content, nil
}

// Content returns the Content with this name if it is the agent's chart for the hub's settings,
// now or earlier in this process. Otherwise it returns nil. Callers must not change the result.
func (c *Controller) Content(name string) (*fleet.Content, error) {
	if _, err := c.chart.pack(c.Config.Current().Agent); err != nil {
		return nil, err
	}
	content, _ := c.chart.packed.Get(name)
	known, _ := content.(*fleet.Content)
	return known, nil
}

// bundleFor returns the desired Bundle for a Cluster's agent in a namespace, and its version.
func (c *chart) bundleFor(cluster *fleet.Cluster, namespace string, settings settings.Agent,
	now time.Time) (*fleet.Bundle, version, error) {
	content, err := c.pack(settings)
	if err != nil {
		return nil, version{}, err
	}
	clientID := membership.ClientID(cluster)
	values, err := agentchart.Overrides(cluster, clientID, namespace, settings)
	if err != nil {
		return nil, version{}, err
	}
	bundle := &fleet.Bundle{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.Namespace, Name: naming.AgentBundle(cluster.Name),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cluster, fleet.GroupVersion.WithKind("Cluster"))},
			Finalizers:      []string{fleet.FinalizerBundle}, // saves a second write
			Annotations: map[string]string{
				annotationSentAt:   now.UTC().Format(time.RFC3339),
				annotationSettings: agentchart.Of(cluster, clientID, settings, namespace).Hash(),
			},
		},
		Spec: fleet.BundleSpec{
			ContentsID: content.Name, // all agents share it
			BundleDeploymentOptions: fleet.BundleDeploymentOptions{
				DefaultNamespace: namespace,
				Helm: &fleet.HelmOptions{
					ReleaseName: releaseName, TakeOwnership: true, MaxHistory: history, DisablePreProcess: true, DisableDNS: true,
				},
			},
			Targets: []fleet.BundleTarget{{
				ClusterName: cluster.Name,
				ClusterSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: fleet.LabelNonManagedAgent, Operator: metav1.LabelSelectorOpDoesNotExist},
				}},
			}},
		},
	}
	if values != nil { // else its deployment needs no Secret
		bundle.Spec.Helm.Values = &runtime.RawExtension{Raw: values}
	}
	v, err := versionOf(bundle)
	bundle.Labels = map[string]string{fleet.LabelManaged: "true", fleet.LabelAgent: v.String()}
	return bundle, v, err
}

// digestOf returns a digest of a value's meaning as JSON, independent of its formatting.
func digestOf(value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encoding a Bundle: %w", err)
	}
	var plain any
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&plain); err != nil {
		return "", fmt.Errorf("decoding a Bundle: %w", err)
	}
	if text, err = json.Marshal(plain); err != nil {
		return "", fmt.Errorf("encoding a Bundle: %w", err)
	}
	return naming.Digest(text)[:digits], nil
}
