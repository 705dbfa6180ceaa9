package hub_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	inventory "github.com/muster-fleet/muster/api/inventory/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// TestAHubThatStartsWithoutSettingsDoesNothingThatDependsOnThem: these settings differ from the
// defaults in all that a hub does by them. One that took the defaults would move the inventory,
// send agents a version, and refuse to import.
func TestAHubThatStartsWithoutSettingsDoesNothingThatDependsOnThem(t *testing.T) {
	f := newAlone(t, "")
	elsewhere := f.namespace("inventory-")
	settings := f.configure(fmt.Sprintf(`{"importLoopback":true,"manageAgent":false,"inventory":{"namespace":%q}}`, elsewhere))
	m := f.register("profiled")
	m.eventually("the agent answers", func() error { return m.answer(metav1.ConditionTrue, "") })
	profile := &inventory.ClusterProfile{}
	f.eventually("its profile is where the settings say", func() error { return f.get(profile, elsewhere, m.name) })
	native := f.managed("unmanaged")
	f.untilReady(native.name, "Ready")
	i := f.importing(nil)
	i.begin()
	imported := i.imported("my-cluster", "Imported")
	stop := i.runAgent()
	f.untilReady("my-cluster", "Ready")
	stop()

	condition := func(name string, kind string) *fleet.Condition {
		t.Helper()
		cluster := f.clusterRecord(name)
		f.check(f.get(cluster, f.workspace, name))
		return kube.FindCondition(cluster.Status.Conditions, kind)
	}
	f.hub.Kill()
	f.check(f.Delete(context.Background(), settings))
	f.check(merge(f, imported, `{"spec":{"redeployAgentGeneration":1}}`))
	visits := i.visits.Load()
	f.hub.Start()
	// What it does about Clusters without the settings says that it has started whole, twice.
	for _, change := range []struct{ annotation, reason string }{{`"Perhaps"`, "LeavePolicyInvalid"}, {"null", ""}} {
		f.check(merge(f, f.clusterRecord(native.name), `{"metadata":{"annotations":{"muster/leave-policy":`+change.annotation+`}}}`))
		f.eventually("the condition Supported has the reason "+strconv.Quote(change.reason), func() error {
			supported := condition(native.name, fleet.ConditionSupported)
			if said := supported != nil && supported.Reason == change.reason; said != (change.reason != "") {
				return fmt.Errorf("it is %v", supported)
			}
			return nil
		})
	}
	before := profile.UID
	if err := f.get(profile, elsewhere, m.name); err != nil || profile.UID != before {
		t.Errorf("the profile was made anew: %v", err)
	}
	if err := f.get(&inventory.ClusterProfile{}, inventoryNamespace, m.name); !apierrors.IsNotFound(err) {
		t.Errorf("there is a profile where the defaults have it: %v", err)
	}
	if err := f.get(&fleet.Bundle{}, f.workspace, native.bundleName()); !apierrors.IsNotFound(err) {
		t.Errorf("the agent has a Bundle: %v", err)
	}
	if said := condition(native.name, fleet.ConditionAgentUpToDate); said.Reason != "SwitchedOff" {
		t.Errorf("the hub manages the agent: %+v", said)
	}
	was := kube.FindCondition(imported.Status.Conditions, fleet.ConditionImported)
	if is := condition("my-cluster", fleet.ConditionImported); *is != *was || i.visits.Load() != visits {
		t.Errorf("the cluster was asked %d times, and the import is %+v", i.visits.Load()-visits, is)
	}

	f.configure(`{"importLoopback":true}`)
	f.untilNoProfile(elsewhere, m.name)
	f.eventually("the agent has a Bundle", func() error { return f.get(&fleet.Bundle{}, f.workspace, native.bundleName()) })
	f.eventually("the agent is installed again", func() error {
		cluster := f.clusterRecord("my-cluster")
		if err := f.get(cluster, f.workspace, cluster.Name); err != nil {
			return err
		}
		if deployed := cluster.Status.AgentDeployedGeneration; deployed == nil || *deployed != 1 {
			return fmt.Errorf("it has generation %v; %v", deployed, condition("my-cluster", fleet.ConditionImported))
		}
		return nil
	})
}
