package agentbundle

import (
	"crypto/sha256"
	"encoding/hex"
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
	// annotationToldAt on a Bundle is when it was last changed.
	annotationToldAt = "muster/told-at"
	// annotationSettings is the digest of the settings that the agent was told, as the importer knows them.
	annotationSettings = "muster/agent-settings"
	digits             = 20
)

// BundleName is the name of the Bundle of a Cluster's agent.
func BundleName(cluster string) string { return naming.SafeConcat("fleet-agent", cluster) }

// packer keeps the chart packed as long as the settings stay the same.
type packer struct {
	mu        sync.Mutex
	settings  config.Agent
	resources []fleet.BundleResource
	digest    string
}

func (p *packer) pack(settings config.Agent) ([]fleet.BundleResource, string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.digest != "" && reflect.DeepEqual(p.settings, settings) {
		return p.resources, p.digest, nil
	}
	resources, err := agentchart.Resources(settings)
	if err != nil {
		return nil, "", err
	}
	digest, err := digestOf(resources)
	if err != nil {
		return nil, "", err
	}
	p.settings, p.resources, p.digest = settings, resources, digest
	return resources, digest, nil
}

// desired is the Bundle of a Cluster's agent, which runs in a namespace, and its version.
func (p *packer) desired(cluster *fleet.Cluster, namespace string, settings config.Agent, now time.Time) (*fleet.Bundle, version, error) {
	resources, common, err := p.pack(settings)
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
			Annotations: map[string]string{
				annotationToldAt:   now.UTC().Format(time.RFC3339),
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
	own, err := digestOfOptions(bundle.Spec)
	if err != nil {
		return nil, version{}, err
	}
	v := version{common: common, own: own}
	bundle.Labels = map[string]string{fleet.LabelManaged: "true", fleet.LabelAgent: v.String()}
	return bundle, v, nil
}

// versionOf is the version that a Bundle holds, whatever its label says.
func versionOf(bundle *fleet.Bundle) (version, error) {
	common, err := digestOf(bundle.Spec.Resources)
	if err != nil {
		return version{}, err
	}
	own, err := digestOfOptions(bundle.Spec)
	return version{common, own}, err
}

func digestOfOptions(spec fleet.BundleSpec) (string, error) {
	spec.Resources = nil
	return digestOf(spec)
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
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:digits], nil
}
