package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/naming"
)

// installedByHelm lets the agent find a release of its own, and a program to deploy with.
func installedByHelm(x *exchanging) {
	x.given.Release = x.agentNamespace + "/" + naming.MemberAgentChart
	x.registered.check(x.registered.Create(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: x.agentNamespace, Name: "release", Labels: map[string]string{"owner": "helm", "name": naming.MemberAgentChart},
	}}))
	x.options = append(x.options, canReplaceItself)
}

// sentMember waits until the agent is sent another version than before.
func (x *exchanging) sentMember(before string) (d fleet.BundleDeployment) {
	x.registered.t.Helper()
	x.registered.eventually(x.name+" is sent a version", func() error {
		if err := x.registered.get(&d, x.namespaceName(), naming.MemberAgentChart); err != nil {
			return err
		}
		if label := d.Labels[fleet.LabelAgent]; label == before || label == "" {
			return fmt.Errorf("it is sent %q", label)
		}
		return nil
	})
	return d
}

// TestTheAgentOfAMemberClusterIsSentTheHubsVersion plays what the agent reports of its version.
func TestTheAgentOfAMemberClusterIsSentTheHubsVersion(t *testing.T) {
	f := newFixture(t)
	x := f.exchanging("upgraded", installedByHelm)
	d, ctx := x.sentMember(""), context.Background()
	if mc := x.record(); !metav1.IsControlledBy(&d, &mc) || mc.Status.AgentVersion == "" {
		t.Errorf("it is %v's, and the record has version %q", d.OwnerReferences, mc.Status.AgentVersion)
	}

	// The member reads its own version and the chart, and writes no more than a status.
	issued, static := x.registered.as(x.issued()), x.registered.as(x.static)
	content := &fleet.Content{ObjectMeta: metav1.ObjectMeta{Name: delivery.ContentName(d.Spec.DeploymentID)}}
	f.eventually("the member may read the chart", func() error { return issued.Get(ctx, client.ObjectKeyFromObject(content), content) })
	if err := static.Get(ctx, client.ObjectKeyFromObject(content), content); !apierrors.IsForbidden(err) {
		t.Errorf("the token of the identity reads the chart: %v", err)
	}
	own := fleet.BundleDeployment{}
	f.check(issued.Get(ctx, client.ObjectKeyFromObject(&d), &own))
	own.Spec.Options.Helm.ReleaseName = "other"
	for verb, err := range map[string]error{
		"update": issued.Update(ctx, &own), "delete": issued.Delete(ctx, &own),
		"create":       issued.Create(ctx, &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: "more"}}),
		"list":         issued.List(ctx, &fleet.BundleDeploymentList{}),
		"list Secrets": issued.List(ctx, &corev1.SecretList{}, client.InNamespace(d.Namespace)),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("the member may %s: %v", verb, err)
		}
	}
	other := f.register("beside")
	other.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	if err := other.agent.Get(ctx, client.ObjectKeyFromObject(&d), &own); !apierrors.IsForbidden(err) {
		t.Errorf("another member reads it: %v", err)
	}

	reportDeployment(t, issued, d, func(status map[string]any) {
		status["ready"], status["appliedDeploymentID"] = false, ""
		status["conditions"] = []any{map[string]any{"type": "Deployed", "status": "False", "reason": "DeployFailed", "message": "no such image"}}
	})
	if said := x.until("AgentUpToDate", metav1.ConditionFalse, "DidNotComeBack"); !strings.Contains(said.Message, "no such image") {
		t.Errorf("it says %s", said.Message)
	}
	ready(t, issued, d)
	x.until("AgentUpToDate", metav1.ConditionTrue, "UpToDate")

	f.change(&d, func() { d.Spec.Paused = true })
	f.eventually("a change by another client is undone", func() error {
		if err := f.get(&d, d.Namespace, d.Name); err != nil || d.Spec.Paused {
			return fmt.Errorf("it is paused: %v", err)
		}
		return nil
	})

	mc := x.record()
	f.change(&mc, func() { metav1.SetMetaDataLabel(&mc.ObjectMeta, fleet.LabelNonManagedAgent, "true") })
	x.until("AgentUpToDate", metav1.ConditionFalse, "NotManaged")
	f.eventually("the agent is left alone", func() error { return gone(f.get(&d, d.Namespace, d.Name)) })
	f.change(&mc, func() {
		delete(mc.Labels, fleet.LabelNonManagedAgent)
		metav1.SetMetaDataAnnotation(&mc.ObjectMeta, clusterv1beta1.AnnotationLeavePolicy, string(clusterv1beta1.LeaveOrphan))
	})
	x.sentMember("")

	// It leaves in the middle of that; the program of this test could remove nothing.
	f.check(f.Delete(ctx, &mc))
	x.untilGone()
}

// TestAnAgentThatRefusesUpgradesIsSentNothing has three agents that the hub must leave alone, each
// with the reason.
func TestAnAgentThatRefusesUpgradesIsSentNothing(t *testing.T) {
	f := newFixture(t)
	for prefix, row := range map[string]struct {
		reason string
		change func(*exchanging)
	}{
		"refuses": {"UpgradesRefused", func(x *exchanging) { x.given.UpgradedByUser = true }},
		"gitops":  {"CannotBeManaged", func(x *exchanging) { x.given.Release = x.agentNamespace + "/another" }},
		"off":     {"CannotBeManaged", func(x *exchanging) { x.options = append(x.options, func(o *agent.Options) { o.Delivery.Off = true }) }},
	} {
		x := f.exchanging(prefix, installedByHelm, row.change)
		if said := x.until("AgentUpToDate", metav1.ConditionFalse, row.reason); !strings.Contains(said.Message, "helm upgrade") {
			t.Errorf("%s says %s", prefix, said.Message)
		}
		if err := gone(f.get(&fleet.BundleDeployment{}, x.namespaceName(), naming.MemberAgentChart)); err != nil {
			t.Errorf("%s is sent a version: %v", prefix, err)
		}
		if slices.Contains(x.report().Status.Features, clusterv1beta1.FeatureManagedAgent) {
			t.Errorf("%s reports that the hub can upgrade it", prefix)
		}
		if meta.FindStatusCondition(x.record().Status.Conditions, "Joined").Status != metav1.ConditionTrue {
			t.Errorf("%s has not joined", prefix)
		}
	}
}
