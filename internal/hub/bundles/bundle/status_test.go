package bundle

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
)

func TestTheFirstStatusOfAnAgentsBundleWaitsForItsFirstReport(t *testing.T) {
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
	silent, reported := &fleet.BundleDeployment{}, &fleet.BundleDeployment{}
	reported.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionDeployed}}
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
		"a Bundle of a user":        {observed{bundle: change(func(b *fleet.Bundle) { b.Labels = nil }), targets: []target{{}}}, 0},
		"created a while ago":       {observed{bundle: created(change, now.Add(-controller.Adoption)), targets: []target{{}}}, 0},
		"the hub's clock is behind": {observed{bundle: created(change, now.Add(time.Hour)), targets: []target{{}}}, controller.Adoption},
	} {
		if got := row.observed.firstStatusIn(now); got != row.want {
			t.Errorf("%s: it waits for %s, want %s", name, got, row.want)
		}
	}
}

// created changes the time of a Bundle's creation.
func created(change func(func(*fleet.Bundle)) *fleet.Bundle, at time.Time) *fleet.Bundle {
	return change(func(b *fleet.Bundle) { b.CreationTimestamp = metav1.NewTime(at) })
}
