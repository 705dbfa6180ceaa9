package bundle

import (
	"cmp"
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
	"github.com/muster-fleet/muster/internal/delivery/customization"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/bundles/policy"
	"github.com/muster-fleet/muster/internal/naming"
)

// desiredDeployment returns the deployment of a Bundle on a Cluster, without its options.
func desiredDeployment(bundle *fleet.Bundle, cluster *fleet.Cluster, deploymentID string) *fleet.BundleDeployment {
	d := &fleet.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.DeliveryNamespace(cluster), Name: bundle.Name, Labels: maps.Clone(bundle.Labels)},
	}
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
	delete(d.Labels, clusterv1beta1.AnnotationMemberEpoch) // set by the author
	delete(d.Labels, fleet.LabelCreatedByDisplayName)
	maps.Copy(d.Labels, delivery.EpochLabels(membership.Epoch(cluster)))
	d.Spec.Paused = bundle.Spec.Paused || membership.Paused(cluster)
	d.Spec.OffSchedule = membership.OutsideWindow(&cluster.Status) != ""
	d.Spec.DependsOn = bundle.Spec.DependsOn
	d.Spec.DeploymentID, d.Spec.StagedDeploymentID = deploymentID, deploymentID
	return d
}

// withOptions puts options into a deployment, and their values into a Secret with the same name.
// Without values it returns no Secret.
func withOptions(d *fleet.BundleDeployment, options fleet.BundleDeploymentOptions) *corev1.Secret {
	var secret *corev1.Secret
	if hasValues(options) {
		secret = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name, Labels: map[string]string{
				fleet.LabelManaged: "true", fleet.LabelBundleName: d.Labels[fleet.LabelBundleName],
				fleet.LabelBundleNamespace: d.Labels[fleet.LabelBundleNamespace],
			}},
			Type: fleet.SecretTypeDeployment,
			Data: map[string][]byte{fleet.KeyValues: options.Helm.Values.Raw, fleet.KeyStagedValues: options.Helm.Values.Raw},
		}
		d.Spec.ValuesHash = delivery.ValuesHash(secret.Data)
	}
	// An agent of Rancher Fleet expects options for Helm, and exits when it corrects drift
	// without them.
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

// computed is the computed state of a Bundle, valid until the Bundle changes. Without it
// everything is computed again.
type computed struct {
	uid        types.UID
	generation int64
	packed     packed
	// values are the values outside the Bundle itself. valuesProblem is the reason why there are
	// none.
	values        map[string][]byte
	valuesProblem error
	// outcomes by the UID of the Cluster.
	outcomes map[types.UID]outcome
	// confirmed is a removal confirmed by a user but not finished.
	confirmed confirmed
	// reported is the time of the last status write.
	reported time.Time
	// first is the UID of the Bundle, if this hub made its first deployment.
	first types.UID
	// completion holds the options added by the Policies of the namespace.
	completion policy.Completion
	// sources are the objects in downstreamResources; nil before they are read.
	sources map[fleet.DownstreamResource]original
	// unread is the error of the sources that could not be read last time.
	unread error
}

// begin drops the state computed for earlier versions of the Bundle.
func (m *computed) begin(bundle *fleet.Bundle, p packed) {
	m.uid, m.generation, m.packed = bundle.UID, bundle.Generation, p
	m.outcomes, m.values, m.valuesProblem, m.confirmed, m.sources, m.unread = map[types.UID]outcome{}, nil, nil, confirmed{}, nil, nil
}

// isOf reports whether the state was computed for the Bundle's current version.
func (m *computed) isOf(bundle *fleet.Bundle) bool {
	return m.uid == bundle.UID && m.generation == bundle.Generation
}

// outcome is the deployment ID of a Cluster, with the inputs of its computation.
type outcome struct {
	generation          int64
	labels, annotations map[string]string
	matched             []int
	id                  string
	// digest is the digest of the options in the form sent to the agent.
	digest    string
	hasValues bool
	// copies are the objects to copy to the member namespace, generation a number for their content.
	copies             []fleet.DownstreamResource
	generationOfCopies int64
	problem            error
	// former is the outcome by the former rules; nil until formerOutcome computes it.
	former *outcome
}

// digestOfOptions returns the digest of a deployment with these options in the form returned by
// the API server.
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

// recordAnswer stores the digest of the options in the server's form. Defaults of the server are
// then not mistaken for an edit.
func (m *computed) recordAnswer(t target) {
	if o, known := m.outcomes[t.cluster.UID]; known && t.answered != "" {
		if t.rules == customization.Present {
			o.digest = t.answered
		} else if o.former != nil {
			o.former.digest = t.answered
		}
		m.outcomes[t.cluster.UID] = o
	}
}

// outcomeFor returns the desired deployment ID of a Cluster. It computes the ID again only after
// a change.
func (m *computed) outcomeFor(bundle *fleet.Bundle, cluster *fleet.Cluster, matched []int) outcome {
	known, ok := m.outcomes[cluster.UID]
	if ok && known.generation == cluster.Generation && maps.Equal(known.labels, cluster.Labels) &&
		maps.Equal(known.annotations, cluster.Annotations) && slices.Equal(known.matched, matched) {
		return known
	}
	o := m.compute(customization.Present, bundle, cluster, matched)
	m.outcomes[cluster.UID] = o
	return o
}

// formerOutcome returns the outcome by the former rules, and reports whether the deployment has
// exactly this ID. An upgraded hub therefore redeploys nothing.
func (m *computed) formerOutcome(d *fleet.BundleDeployment, bundle *fleet.Bundle, cluster *fleet.Cluster, matched []int) (outcome, bool) {
	o := m.outcomes[cluster.UID]
	if d == nil || d.Spec.DeploymentID == o.id || delivery.ContentName(d.Spec.DeploymentID) != m.packed.name {
		return outcome{}, false // the rules concern the options only
	}
	if o.former == nil {
		computed := m.compute(customization.Former, bundle, cluster, matched)
		o.former = &computed
		m.outcomes[cluster.UID] = o
	}
	return *o.former, o.former.problem == nil && o.former.id == d.Spec.DeploymentID
}

// settle completes a target with its outcome and its deployment; nil if there is none.
func (m *computed) settle(t *target, bundle *fleet.Bundle, d *fleet.BundleDeployment) {
	o := m.outcomeFor(bundle, t.cluster, t.matched)
	if before, runs := m.formerOutcome(d, bundle, t.cluster, t.matched); runs {
		o, t.rules = before, customization.Former
	}
	t.hasValues, t.digest, t.problem, t.completion = o.hasValues, o.digest, o.problem, m.completion
	t.desired, t.deployment = desiredDeployment(bundle, t.cluster, o.id), d
	t.copies, t.desired.Spec.DownstreamResourcesGeneration = o.copies, o.generationOfCopies
	delivered := d != nil && d.Spec.DeploymentID != ""
	t.heldBack = cmp.Or(membership.HeldByInitGate(t.cluster, bundle), membership.HeldByCordon(t.cluster, bundle, delivered),
		membership.HeldByTaint(t.cluster, bundle, t.matched, delivered))
}

func (m *computed) compute(version customization.Rules, bundle *fleet.Bundle, cluster *fleet.Cluster, matched []int) outcome {
	o := outcome{generation: cluster.Generation, labels: cluster.Labels, annotations: cluster.Annotations, matched: matched}
	options, err := customization.Options(version, bundle, matched, cluster)
	m.completion.Apply(&options)
	if err == nil {
		err = delivery.CheckComparePatches(options.Diff)
	}
	if err == nil && !m.packed.chart {
		err = delivery.CheckChartVersion(options.Helm)
	}
	identify := delivery.DeploymentID
	if version == customization.Former {
		identify = delivery.FormerDeploymentID
	}
	if err == nil {
		o.hasValues = hasValues(options)
		o.id, err = identify(m.packed.name, options)
	}
	if copies := delivery.CopiedFor(options); err == nil && len(copies) > 0 {
		var digest string
		digest, err = m.digestOfSources(copies)
		o.id, o.copies, o.generationOfCopies = delivery.WithCopies(o.id, digest), copies, copiesGeneration(copies, digest)
	}
	if err == nil {
		o.digest, err = digestOfOptions(options)
	}
	o.problem = err
	return o
}
