package hub_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// TestADeletedDeploymentThatCannotBeWrittenIsHeldBack deletes what is missing then: its agent would
// take the absence for a removal.
func TestADeletedDeploymentThatCannotBeWrittenIsHeldBack(t *testing.T) {
	f := newFixture(t)
	p := f.place("a", nil)
	b := f.bundle("app", configMap+`
targets: [{clusterSelector: {}}]
`)
	d := p.deployment("app", there)
	good := b.Spec.Resources
	for what, harm := range map[string]func(){
		"invalid for all Clusters": func() {
			b.Spec.Resources = []fleet.BundleResource{{Name: "bad.yaml", Content: "a: 1\nb:\n  - c\n d: 2\n"}}
		},
		"invalid for this Cluster": func() {
			b.Spec.Helm = &fleet.HelmOptions{Values: &runtime.RawExtension{Raw: []byte(`{"x":{"zone":"${ .ClusterLabels.zone }"}}`)}}
		},
	} {
		f.change(b, harm)
		f.untilBundle("app", "Processed", corev1.ConditionFalse, "a")
		before := d.UID
		f.check(f.Delete(context.Background(), &d))
		d = p.deployment("app", func(d fleet.BundleDeployment) error {
			if d.UID == before || d.Spec.DeploymentID != "" || d.Spec.StagedDeploymentID == "" ||
				d.Labels[fleet.LabelBundleNamespace] != f.workspace {
				return fmt.Errorf("the Bundle is %s: it is %s, %+v", what, d.UID, d.Spec)
			}
			return nil
		})
		f.change(b, func() { b.Spec.Resources, b.Spec.Helm = good, nil })
		d = p.deployment("app", func(d fleet.BundleDeployment) error {
			if d.Spec.DeploymentID == "" {
				return errors.New("it is held back")
			}
			return nil
		})
		f.untilBundle("app", "Processed", corev1.ConditionTrue)
	}
}

func TestWhatAnotherHubHasDeliveredWaitsForAConfirmation(t *testing.T) {
	f := newFixture(t)
	p, other := f.place("a", map[string]string{"env": "prod"}), f.place("b", nil)
	for _, at := range []place{p, other} {
		d := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: at.namespace, Name: "app", Labels: map[string]string{
			fleet.LabelBundleName: "app", fleet.LabelBundleNamespace: f.workspace, fleet.LabelCluster: at.name,
			fleet.LabelClusterNamespace: f.workspace,
		}}, Spec: fleet.BundleDeploymentSpec{DeploymentID: "s-theirs:1", StagedDeploymentID: "s-theirs:1"}}
		f.check(f.Create(context.Background(), d))
	}
	b := f.bundle("app", configMap+`
targets: [{clusterSelector: {matchLabels: {env: prod}}}]
`)
	is := f.untilBundle("app", "Processed", corev1.ConditionFalse,
		"1 would get another version: a; 1 would lose it: b; deployed objects stay as they are")
	theirs := func(d fleet.BundleDeployment) error {
		if d.Spec.DeploymentID != "s-theirs:1" || d.DeletionTimestamp != nil {
			return fmt.Errorf("it is %+v", d.Spec)
		}
		return nil
	}
	f.change(b, func() { b.Labels = map[string]string{"an": "event"} })
	f.untilBundle("app", "Processed", corev1.ConditionFalse, "another hub deployed it")
	p.deployment("app", theirs)
	other.deployment("app", theirs)
	_, value := view.HeldRemoval(&is)
	f.change(b, func() { b.Annotations = map[string]string{fleet.AnnotationConfirmRemoval: value} })
	f.untilBundle("app", "Processed", corev1.ConditionTrue)
	p.deployment("app", func(d fleet.BundleDeployment) error {
		if theirs(d) == nil {
			return errors.New("it is as the other hub has deployed it")
		}
		return there(d)
	})
	f.eventually("the other has it no more", func() error {
		if err := f.get(&fleet.BundleDeployment{}, other.namespace, "app"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
}
