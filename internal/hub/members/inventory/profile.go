package inventory

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	inventory "github.com/muster-fleet/muster/api/inventory/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/facts"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/naming"
)

// annotationLabels lists the labels copied from the membership object. The hub later removes copied
// labels after the membership object has lost them.
const annotationLabels = "muster/record-labels"

// usagePrefix starts the names of constantly changing properties; profiles omit these.
const usagePrefix = "resources.kubernetes-fleet.io/"

// describe returns the desired profile of a member: the current profile with the hub's fields set.
// The second result names the properties of the member too long for a profile.
func describe(o observed, now time.Time) (*inventory.ClusterProfile, []string) {
	profile := &inventory.ClusterProfile{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.namespace, Name: naming.ClusterProfile(o.key.Namespace, o.key.Name),
	}}
	if o.current != nil {
		profile = o.current.DeepCopy()
	}
	label(&profile.ObjectMeta, o)
	profile.Spec.ClusterManager.Name = manager
	profile.Spec.DisplayName = o.key.Name
	if o.key.Namespace != "" {
		profile.Spec.DisplayName = o.key.String()
	}
	status := &profile.Status
	set := func(kind string, condition metav1.Condition) {
		condition.Type, condition.ObservedGeneration, condition.LastTransitionTime = kind, profile.Generation, metav1.NewTime(now)
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	set(inventory.ConditionJoined, o.record.joined)
	if o.held(now) == 0 {
		set(inventory.ConditionControlPlaneHealthy, o.record.healthy)
	}
	if version := o.version(); version != "" {
		status.Version.Kubernetes = version
	}
	if !reported(o.report) {
		return profile, nil // keep the properties until the agent writes again a report deleted by mistake
	}
	var skipped []string
	status.Properties, skipped = properties(o.report.Status.Properties, status.Properties)
	return profile, skipped
}

// reported reports whether the member's agent has written its report.
func reported(report *clusterv1beta1.InternalMemberCluster) bool {
	return report != nil && len(report.Status.AgentStatus) > 0
}

// version returns the version of Kubernetes on the member; empty if unknown.
func (o observed) version() string {
	if o.report != nil {
		if version := o.report.Status.KubernetesVersion; version != "" {
			return version
		}
		if version := o.report.Status.Properties[facts.KubernetesVersion].Value; version != "" {
			return version
		}
	}
	return o.record.version
}

// label sets the labels for consumers' selectors, the labels of the membership object, and the
// references back to it. Labels of other writers stay.
func label(profile *metav1.ObjectMeta, o observed) {
	CopyLabels(profile, o.record.object.GetLabels(), reserved)
	profile.Labels[inventory.LabelClusterManager] = manager
	profile.Labels[fleet.LabelManaged] = "true"
	if o.key.Namespace == "" {
		profile.Labels[clusterv1beta1.LabelMemberName] = o.key.Name
		return
	}
	profile.Annotations[fleet.AnnotationClusterNamespace] = o.key.Namespace
	profile.Annotations[fleet.LabelCluster] = o.key.Name
}

// CopyLabels copies the unreserved labels of a membership object, and removes earlier copies of
// lost labels. Labels of other writers stay.
func CopyLabels(to *metav1.ObjectMeta, from map[string]string, reserved func(key string) bool) {
	if to.Labels == nil {
		to.Labels = map[string]string{}
	}
	if to.Annotations == nil {
		to.Annotations = map[string]string{}
	}
	copied := map[string]string{}
	for key, value := range from {
		if !reserved(key) {
			copied[key] = value
		}
	}
	for _, key := range strings.Split(to.Annotations[annotationLabels], ",") {
		delete(to.Labels, key)
	}
	maps.Copy(to.Labels, copied)
	to.Annotations[annotationLabels] = strings.Join(slices.Sorted(maps.Keys(copied)), ",")
	if len(copied) == 0 {
		delete(to.Annotations, annotationLabels)
	}
}

// reserved reports whether fleets or the inventory itself act on a label.
func reserved(key string) bool {
	for _, prefix := range []string{"x-k8s.io/", "multicluster.x-k8s.io", inventory.LabelClusterSetOfKEP} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return membernamespace.ReservedLabel(key)
}

// properties converts the properties reported by a member. An unchanged value keeps its time,
// because a new time alone justifies no write.
func properties(reported map[string]clusterv1beta1.PropertyValue,
	before []inventory.Property) (after []inventory.Property, skipped []string) {
	times := map[inventory.Property]*metav1.Time{}
	for _, old := range before {
		times[inventory.Property{Name: old.Name, Value: old.Value}] = old.LastObservedTime
	}
	for _, name := range slices.Sorted(maps.Keys(reported)) {
		value := reported[name]
		switch {
		case strings.HasPrefix(name, usagePrefix), name == "", value.Value == "":
			continue
		case utf8.RuneCountInString(name) > inventory.MaxPropertyName, utf8.RuneCountInString(value.Value) > inventory.MaxPropertyValue:
			skipped = append(skipped, name)
			continue
		}
		property := inventory.Property{Name: name, Value: value.Value}
		observed, known := times[property]
		if !known && !value.ObservationTime.IsZero() {
			observed = &value.ObservationTime
		}
		property.LastObservedTime = observed
		after = append(after, property)
	}
	return after, skipped
}
