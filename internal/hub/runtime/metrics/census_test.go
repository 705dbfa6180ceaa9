package metrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

func TestWhatWaitsAndWhatFailsIsCounted(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{fleet.AddToScheme, placement.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	request := func(name string, state fleet.RegistrationState) client.Object {
		return &fleet.ClusterRegistration{
			ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name}, Status: fleet.ClusterRegistrationStatus{State: state},
		}
	}
	bundle := func(name string, state fleet.BundleState) client.Object {
		ready := fleet.Condition{Type: fleet.ConditionReady, Status: "True"}
		if state != fleet.StateReady {
			ready.Status, ready.Reason = "False", string(state)
		}
		return &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name},
			Status: fleet.BundleStatus{Conditions: []fleet.Condition{ready}, Display: fleet.BundleDisplay{State: string(state)}}}
	}
	const ask = "a would go; kubectl annotate muster/confirm-removal=0cebe578"
	held := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "held"}, Status: fleet.BundleStatus{
		Conditions: []fleet.Condition{{Type: fleet.ConditionProcessed, Status: "False", Reason: "RemovalHeld", Message: ask}}}}
	place := func(name, message string) client.Object {
		return &placement.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Status: placement.PlacementStatus{
			Conditions: []metav1.Condition{{
				Type: "ResourcePlacementResourceSelected", Status: metav1.ConditionFalse, Reason: "AuthorMayNotRead", Message: message,
			}}}}
	}
	repo := func(name string, failing bool) client.Object {
		return &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name},
			Status: fleet.GitRepoStatus{Display: fleet.SourceDisplay{Error: failing}}}
	}
	c := Census{fake.NewClientBuilder().WithScheme(scheme).WithObjects(request("a", fleet.RegistrationPending),
		request("b", fleet.RegistrationPending),
		request("c", fleet.RegistrationGranted), request("d", ""), bundle("failing", fleet.StateErrApplied), bundle("fine", fleet.StateReady),
		bundle("paused", fleet.StatePaused), bundle("after", fleet.StateWaitingForDependency), bundle("asked", reasons.RemovalHeld),
		&fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "new"}}, held, place("held", ask), place("held-too", ask),
		place("limited", "left out"), repo("away", true), repo("read", false)).Build(), true}
	want := `
# HELP muster_hub_bundles Bundles by their worst state on a Cluster.
# TYPE muster_hub_bundles gauge
muster_hub_bundles{state="ErrApplied"} 1
muster_hub_bundles{state="Modified"} 0
muster_hub_bundles{state="New"} 2
muster_hub_bundles{state="NotReady"} 0
muster_hub_bundles{state="OutOfSync"} 0
muster_hub_bundles{state="OutsideWindow"} 0
muster_hub_bundles{state="Paused"} 1
muster_hub_bundles{state="Pending"} 0
muster_hub_bundles{state="Ready"} 1
muster_hub_bundles{state="WaitApplied"} 0
muster_hub_bundles{state="WaitingForApproval"} 1
muster_hub_bundles{state="WaitingForDependency"} 1
# HELP muster_hub_removals_held Bundles and placements waiting for the confirmation of a removal.
# TYPE muster_hub_removals_held gauge
muster_hub_removals_held{kind="Bundle"} 1
muster_hub_removals_held{kind="ClusterResourcePlacement"} 0
muster_hub_removals_held{kind="ResourcePlacement"} 2
# HELP muster_hub_requests ClusterRegistrations by state. Pending requests wait for an approval or a denial.
# TYPE muster_hub_requests gauge
muster_hub_requests{state="Conflict"} 0
muster_hub_requests{state="Denied"} 0
muster_hub_requests{state="Granted"} 1
muster_hub_requests{state="New"} 1
muster_hub_requests{state="Pending"} 2
muster_hub_requests{state="Waiting"} 0
# HELP muster_hub_sources_failing GitRepos and HelmOps with a repository, commit or chart that cannot be used.
# TYPE muster_hub_sources_failing gauge
muster_hub_sources_failing{kind="GitRepo"} 1
muster_hub_sources_failing{kind="HelmOp"} 0
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}
