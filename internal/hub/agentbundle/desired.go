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

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/agentchart"
	"github.com/muster-fleet/muster/internal/hub/config"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/naming"
)

const (
	// releaseName is that under which a user installs the agent's chart.
	releaseName = "fleet-agent"
	// history is how many revisions are kept: as many as Helm's command keeps.
	history = 10
	// annotationSentAt on a Bundle is when its version was written.
	annotationSentAt = "muster/told-at"
	// annotationSettings on a Bundle is the digest of the agent's settings, as the importer knows them.
	annotationSettings = "muster/agent-settings"
	// cachedResources is where the cache has the digest of a Bundle's resources. No object of an API server has an annotation with a space
	// in its name.
	cachedResources = "digest of resources"
	// digits is the length of each digest in a version.
	digits = 20
)

// BundleName is the name of the Bundle of a Cluster's agent.
func BundleName(cluster string) string { return naming.SafeConcat("fleet-agent", cluster) }

// WithDigest notes in the Bundle of an agent, before the cache drops its resources, what they are. A cache may transform an object twice.
func WithDigest(bundle *fleet.Bundle) error {
	if bundle.Labels[fleet.LabelAgent] == "" || bundle.Annotations[cachedResources] != "" {
		return nil
	}
	digest, err := digestOf(bundle.Spec.Resources)
	metav1.SetMetaDataAnnotation(&bundle.ObjectMeta, cachedResources, digest)
	return err
}

// ResourcesDigest is the digest that WithDigest noted; empty for a Bundle that is no agent's.
func ResourcesDigest(bundle *fleet.Bundle) string { return bundle.Annotations[cachedResources] }

// versionOf is the version that a Bundle of the cache holds, whatever its label says.
func versionOf(bundle *fleet.Bundle) (version, error) {
	spec := bundle.Spec
	spec.Resources = nil
	own, err := digestOf(spec)
	return version{ResourcesDigest(bundle), own}, err
}

// chart is the chart of the agent as it was packed for the settings of the hub, and its digest.
type chart struct {
	mu        sync.Mutex
	settings  config.Agent
	resources []fleet.BundleResource
	digest    string
}

func (c *chart) pack(settings config.Agent) (resources []fleet.BundleResource, digest string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.digest != "" && reflect.DeepEqual(c.settings, settings) {
		return c.resources, c.digest, nil
	}
	if resources, err = agentchart.Resources(settings); err == nil {
		digest, err = digestOf(resources)
	}
	if err == nil {
		c.settings, c.resources, c.digest = settings, resources, digest
	}
	return resources, digest, err
}

// bundleFor returns what the Bundle of a Cluster's agent, which runs in a namespace, should be, and its version.
func (c *chart) bundleFor(cluster *fleet.Cluster, namespace string, settings config.Agent, now time.Time) (*fleet.Bundle, version, error) {
	resources, common, err := c.pack(settings)
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
			Namespace: cluster.Namespace, Name: BundleName(cluster.Name),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cluster, fleet.GroupVersion.WithKind("Cluster"))},
			Finalizers:      []string{fleet.FinalizerBundle}, // which it would get by another write
			Annotations: map[string]string{
				annotationSentAt:   now.UTC().Format(time.RFC3339),
				annotationSettings: agentchart.Of(cluster, clientID, settings, namespace).Hash(),
			},
		},
		Spec: fleet.BundleSpec{
			Resources: resources,
			BundleDeploymentOptions: fleet.BundleDeploymentOptions{
				DefaultNamespace: namespace,
				Helm: &fleet.HelmOptions{
					ReleaseName: releaseName, TakeOwnership: true, MaxHistory: history, DisablePreProcess: true, DisableDNS: true,
					Values: &runtime.RawExtension{Raw: values},
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
	bundle.Annotations[cachedResources] = common
	v, err := versionOf(bundle)
	delete(bundle.Annotations, cachedResources)
	bundle.Labels = map[string]string{fleet.LabelManaged: "true", fleet.LabelAgent: v.String()}
	return bundle, v, err
}

// digestOf is a digest of what a value means as JSON, however that is written.
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
