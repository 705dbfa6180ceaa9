package bundle

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
)

func TestTheStatusOfAnAgentsBundleWaitsForTheFirstReportAboutAVersion(t *testing.T) {
	now, owns := time.Unix(1_700_000_000, 0), true
	agents := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{fleet.LabelAgent: "v1"}, CreationTimestamp: metav1.NewTime(now.Add(-controller.Adoption / 2)),
		OwnerReferences: []metav1.OwnerReference{{Kind: "Cluster", UID: "1", Controller: &owns}},
	}}
	change := func(edit func(*fleet.Bundle)) *fleet.Bundle {
		changed := agents.DeepCopy()
		edit(changed)
		return changed
	}
	c := &Controller{}
	c.sent.Set("sent", now.Add(-time.Second))
	c.sent.Set("unanswered", now.Add(-controller.Adoption))
	deployment := func(uid types.UID, applied string) *fleet.BundleDeployment {
		d := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{UID: uid}}
		d.Spec.DeploymentID, d.Status.AppliedDeploymentID = "v2", applied
		d.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionDeployed, Status: corev1.ConditionTrue}}
		return d
	}
	silent, reported := &fleet.BundleDeployment{}, &fleet.BundleDeployment{}
	reported.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionDeployed}}
	left := controller.Adoption - time.Second
	shown := change(func(b *fleet.Bundle) { b.Status.Conditions = reported.Status.Conditions })
	for name, row := range map[string]struct {
		observed observed
		want     time.Duration
	}{
		"no deployment yet":         {observed{bundle: agents, targets: []target{{}}}, controller.Adoption / 2},
		"no report yet":             {observed{bundle: agents, targets: []target{{deployment: silent}}}, controller.Adoption / 2},
		"the agent has reported":    {observed{bundle: agents, targets: []target{{deployment: reported}}}, 0},
		"no target":                 {observed{bundle: agents}, 0},
		"a problem of the target":   {observed{bundle: agents, targets: []target{{problem: errors.New("bad")}}}, 0},
		"a failed write":            {observed{bundle: agents, targets: []target{{failure: errors.New("bad")}}}, 0},
		"a problem of the Bundle":   {observed{bundle: agents, problem: errors.New("bad"), targets: []target{{}}}, 0},
		"it has a status":           {observed{bundle: shown, targets: []target{{}}}, 0},
		"a new version is written":  {observed{bundle: shown, targets: []target{{deployment: deployment("sent", "v2"), pending: 1}}}, left},
		"a new version is cached":   {observed{bundle: shown, targets: []target{{deployment: deployment("sent", "v1")}}}, left},
		"it has the new version":    {observed{bundle: shown, targets: []target{{deployment: deployment("sent", "v2")}}}, 0},
		"no answer for a while":     {observed{bundle: shown, targets: []target{{deployment: deployment("unanswered", "v1")}}}, 0},
		"sent by another process":   {observed{bundle: shown, targets: []target{{deployment: deployment("other", "v1")}}}, 0},
		"a Bundle of a user":        {observed{bundle: change(func(b *fleet.Bundle) { b.Labels = nil }), targets: []target{{}}}, 0},
		"created a while ago":       {observed{bundle: created(change, now.Add(-controller.Adoption)), targets: []target{{}}}, 0},
		"the hub's clock is behind": {observed{bundle: created(change, now.Add(time.Hour)), targets: []target{{}}}, controller.Adoption},
	} {
		if got := c.agentReportIn(row.observed, now); got != row.want {
			t.Errorf("%s: it waits for %s, want %s", name, got, row.want)
		}
	}
}

// created changes the time of a Bundle's creation.
func created(change func(func(*fleet.Bundle)) *fleet.Bundle, at time.Time) *fleet.Bundle {
	return change(func(b *fleet.Bundle) { b.CreationTimestamp = metav1.NewTime(at) })
}
