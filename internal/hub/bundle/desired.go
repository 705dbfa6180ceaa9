package bundle

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/naming"
)

// optionsFor returns the options of a Cluster with their values filled in.
func optionsFor(bundle *fleet.Bundle, matched []int, cluster *fleet.Cluster) (fleet.BundleDeploymentOptions, error) {
	var over []fleet.BundleDeploymentOptions
	for _, i := range matched {
		over = append(over, bundle.Spec.Targets[i].BundleDeploymentOptions)
	}
	options, err := mergeOptions(bundle.Spec.BundleDeploymentOptions, over...)
	if err != nil {
		return options, err
	}
	return options, render(&options, cluster)
}

// desiredDeployment returns the deployment of a Bundle on a Cluster, without its options.
func desiredDeployment(bundle *fleet.Bundle, cluster *fleet.Cluster, deploymentID string) *fleet.BundleDeployment {
	d := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: membership.DeliveryNamespace(cluster), Name: bundle.Name, Labels: maps.Clone(bundle.Labels)}}
	if d.Labels == nil {
		d.Labels = map[string]string{}
	}
	for key, value := range map[string]string{
		fleet.LabelManaged:          "true",
		fleet.LabelBundleName:       naming.SafeConcat(bundle.Name),
		fleet.LabelBundleNamespace:  bundle.Namespace,
		fleet.LabelCluster:          naming.SafeConcat(cluster.Name),
		fleet.LabelClusterNamespace: cluster.Namespace,
		fleet.LabelContentName:      delivery.ContentName(deploymentID),
	} {
		d.Labels[key] = value
	}
	delete(d.Labels, clusterv1beta1.AnnotationMemberEpoch) // the author's
	maps.Copy(d.Labels, delivery.EpochLabels(membership.Epoch(cluster)))
	d.Spec.Paused = bundle.Spec.Paused || cluster.Spec.Paused
	d.Spec.DependsOn = bundle.Spec.DependsOn
	d.Spec.DeploymentID, d.Spec.StagedDeploymentID = deploymentID, deploymentID
	return d
}

// withOptions puts options into a deployment, and their values into a Secret of its name; there is none if there are no values.
func withOptions(d *fleet.BundleDeployment, options fleet.BundleDeploymentOptions) *corev1.Secret {
	var secret *corev1.Secret
	if hasValues(options) {
		secret = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name, Labels: map[string]string{
				fleet.LabelManaged: "true", fleet.LabelBundleName: d.Labels[fleet.LabelBundleName], fleet.LabelBundleNamespace: d.Labels[fleet.LabelBundleNamespace],
			}},
			Type: fleet.SecretTypeDeployment,
			Data: map[string][]byte{fleet.KeyValues: options.Helm.Values.Raw, fleet.KeyStagedValues: options.Helm.Values.Raw},
		}
		d.Spec.ValuesHash = delivery.ValuesHash(secret.Data)
	}
	// An agent of Rancher Fleet takes it for granted that there are options for Helm, and ends when it corrects drift without them.
	helm := fleet.HelmOptions{}
	if options.Helm != nil {
		helm = *options.Helm
	}
	helm.Values = nil
	options.Helm = &helm
	d.Spec.Options, d.Spec.StagedOptions = options, options
	d.Spec.CorrectDrift = options.CorrectDrift
	return secret
}

func hasValues(options fleet.BundleDeploymentOptions) bool {
	return options.Helm != nil && options.Helm.Values != nil && len(options.Helm.Values.Raw) > 0
}

// computed is what was computed of a Bundle and holds until it changes; without it all is computed again.
type computed struct {
	uid        types.UID
	generation int64
	packed     packed
	// values are those that are not in the Bundle itself, valuesProblem is why there are none.
	values        map[string][]byte
	valuesProblem error
	// outcomes by the UID of the Cluster.
	outcomes map[types.UID]outcome
	// confirmed is the removal that a user has confirmed and that is not done.
	confirmed confirmed
	// reported is when the status was last written.
	reported time.Time
}

// begin forgets what was computed of the Bundle as it was before.
func (m *computed) begin(bundle *fleet.Bundle, p packed) {
	m.uid, m.generation, m.packed = bundle.UID, bundle.Generation, p
	m.outcomes, m.values, m.valuesProblem, m.confirmed = map[types.UID]outcome{}, nil, nil, confirmed{}
}

// isOf says whether this was computed of the Bundle as it is now.
func (m *computed) isOf(bundle *fleet.Bundle) bool {
	return m.uid == bundle.UID && m.generation == bundle.Generation
}

// outcome is the deployment ID of a Cluster and what it was computed from.
type outcome struct {
	generation          int64
	labels, annotations map[string]string
	matched             []int
	id                  string
	// digest is that of the options as the agent gets them.
	digest    string
	hasValues bool
	problem   error
}

// digestOfOptions is the digest of a deployment with these options as it comes back from the API server.
func digestOfOptions(options fleet.BundleDeploymentOptions) (string, error) {
	written := &fleet.BundleDeployment{}
	withOptions(written, options)
	text, err := json.Marshal(written.Spec)
	if err != nil {
		return "", fmt.Errorf("encoding a deployment: %w", err)
	}
	var read fleet.BundleDeploymentSpec
	if err := json.Unmarshal(text, &read); err != nil {
		return "", fmt.Errorf("decoding a deployment: %w", err)
	}
	return digestOf(read)
}

// recordAnswer takes over the options as the server stored them, so that its defaults are never taken for somebody's edit.
func (m *computed) recordAnswer(t target) {
	if o, known := m.outcomes[t.cluster.UID]; known && t.answered != "" {
		o.digest = t.answered
		m.outcomes[t.cluster.UID] = o
	}
}

// outcomeFor returns the deployment ID that a Cluster should have, computed anew only if something changed.
func (m *computed) outcomeFor(bundle *fleet.Bundle, cluster *fleet.Cluster, matched []int) outcome {
	known, ok := m.outcomes[cluster.UID]
	if ok && known.generation == cluster.Generation && maps.Equal(known.labels, cluster.Labels) &&
		maps.Equal(known.annotations, cluster.Annotations) && slices.Equal(known.matched, matched) {
		return known
	}
	o := outcome{generation: cluster.Generation, labels: cluster.Labels, annotations: cluster.Annotations, matched: matched}
	options, err := optionsFor(bundle, matched, cluster)
	if err == nil && !m.packed.chart {
		err = delivery.CheckChartVersion(options.Helm)
	}
	if err == nil {
		o.hasValues = hasValues(options)
		o.id, err = delivery.DeploymentID(m.packed.name, options)
	}
	if err == nil {
		o.digest, err = digestOfOptions(options)
	}
	o.problem = err
	m.outcomes[cluster.UID] = o
	return o
}
