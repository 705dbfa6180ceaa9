package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/facts"
	"github.com/muster-fleet/muster/internal/kube"
)

// LabelFacts keeps the labels of a membership object derived from the facts of its member. An
// annotation of the membership object names the facts, or else the settings do.
func (c *Controller) LabelFacts(ctx context.Context, record client.Object, report *clusterv1beta1.InternalMemberCluster) error {
	wanted := c.Config.Current().LabelsFromFacts
	if list, own := record.GetAnnotations()[fleet.AnnotationLabelsFromFacts]; own {
		wanted = facts.Wanted(list)
	}
	if len(wanted) > 0 && (report == nil || len(report.Status.AgentStatus) == 0) {
		return nil // keep the labels until the agent has written its report
	}
	var properties map[string]clusterv1beta1.PropertyValue
	if report != nil {
		properties = report.Status.Properties
	}
	after := kube.Whole(record)
	if !relabel(after, facts.Labels(wanted, properties)) {
		return nil
	}
	// The lock protects concurrent label edits by a user.
	patch := client.MergeFromWithOptions(kube.Whole(record), client.MergeFromWithOptimisticLock{})
	if err := c.Client.Patch(ctx, after, patch, kube.FieldOwner); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("labelling %s with facts: %w", kube.Describe(c.Client.Scheme(), record), err))
	}
	record.SetLabels(after.GetLabels())
	record.SetAnnotations(after.GetAnnotations())
	record.SetResourceVersion(after.GetResourceVersion())
	c.expected.Expect(client.ObjectKeyFromObject(record), record)
	ctrl.LoggerFrom(ctx).Info("Labels from facts changed", "labels", record.GetAnnotations()[fleet.AnnotationFactLabels])
	return nil
}

// relabel replaces the labels made from facts by an earlier reconcile. It reports whether any
// differs. A label set or changed by a user stays.
func relabel(record client.Object, desired map[string]string) bool {
	labels, annotations := maps.Clone(record.GetLabels()), maps.Clone(record.GetAnnotations())
	marked := map[string]string{}
	if err := json.Unmarshal([]byte(annotations[fleet.AnnotationFactLabels]), &marked); err != nil {
		marked = map[string]string{} // a user has edited the annotation: every label counts as the user's
	}
	for key, value := range marked {
		if labels[key] == value && facts.IsLabel(key) {
			delete(labels, key)
		}
	}
	kept := map[string]string{}
	for key, value := range desired {
		if _, users := labels[key]; !users {
			kept[key] = value
		}
	}
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, kept)
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(annotations, fleet.AnnotationFactLabels)
	if len(kept) > 0 {
		text, _ := json.Marshal(kept) // a map of texts never fails
		annotations[fleet.AnnotationFactLabels] = string(text)
	}
	if maps.Equal(labels, record.GetLabels()) && maps.Equal(annotations, record.GetAnnotations()) {
		return false
	}
	record.SetLabels(labels)
	record.SetAnnotations(annotations)
	return true
}
