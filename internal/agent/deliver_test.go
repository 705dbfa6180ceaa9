package agent

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent/client"
	"github.com/muster-fleet/muster/internal/agent/remote"
)

// deployments are those of the member namespace, as an admin reaches them.
func (h *testHub) deployments() *remote.Deployments {
	h.t.Helper()
	connection, err := client.Connect(h.config)
	check(h.t, err)
	resource, err := client.Of(connection, fleet.GroupVersion.WithResource("bundledeployments"), h.memberNamespace(),
		func() *fleet.BundleDeployment { return &fleet.BundleDeployment{} },
		func() *fleet.BundleDeploymentList { return &fleet.BundleDeploymentList{} })
	check(h.t, err)
	return resource
}

func TestWithoutItsDeployerTheAgentBeatsAndSaysThatNothingIsDeployed(t *testing.T) {
	for name, row := range map[string]struct {
		delivery Delivery
		want     string
	}{
		"the program is missing": {Delivery{Path: filepath.Join(t.TempDir(), "muster-deployer")}, "the program muster-deployer is missing beside the agent's"},
		"delivery is off":        {Delivery{Off: true}, "its agent was installed with fleetAgent.delivery=false"},
	} {
		t.Run(name, func(t *testing.T) {
			config := startCluster(t)
			hub, member := newTestHub(t, config), newTestMember(t, config)
			hub.serve(hub.grant)
			member.bootstrap(hub.values())
			agent := member.start(func(o *Options) { o.Delivery = row.delivery })
			agent.untilJoined()
			_, err := hub.deployments().Create(t.Context(), &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, metav1.CreateOptions{})
			check(t, err)
			agent.until("the BundleDeployment says why nothing comes of it", func() error {
				found, err := hub.deployments().Get(t.Context(), "web", metav1.GetOptions{})
				if err != nil {
					return err
				}
				if found.Status.Display.State != string(fleet.StateErrApplied) {
					return fmt.Errorf("its status is %+v", found.Status)
				}
				return containsAll(found.Status.Conditions[0].Message, row.want)
			})
			first := hub.beat()
			agent.until("a beat after that", func() error {
				if !hub.beat().After(first) {
					return fmt.Errorf("the Lease stands still")
				}
				return nil
			})
		})
	}
}

func TestWhyNothingIsDeployedIsWrittenOnceAndLeavesOtherConditions(t *testing.T) {
	config := startCluster(t)
	hub, member := newTestHub(t, config), newTestMember(t, config)
	hub.serve(hub.grant)
	member.bootstrap(hub.values())
	path := filepath.Join(t.TempDir(), "muster-deployer")
	missing := func(o *Options) { o.Delivery = Delivery{Path: path} }
	place := func(name string) {
		made, err := hub.deployments().Create(t.Context(), &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		check(t, err)
		made.Status.Conditions = []fleet.Condition{{Type: "Custom", Status: "True"}}
		_, err = hub.deployments().UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
		check(t, err)
	}
	told := func(agent *running, name string) (found *fleet.BundleDeployment) {
		agent.until(name+" says why nothing comes of it", func() error {
			var err error
			if found, err = hub.deployments().Get(t.Context(), name, metav1.GetOptions{}); err == nil && found.Status.Display.State != string(fleet.StateErrApplied) {
				err = fmt.Errorf("its status is %+v", found.Status)
			}
			return err
		})
		return found
	}
	hub.prepare(time.Hour)
	place("web")
	first := member.start(missing)
	before := told(first, "web")
	if got := before.Status.Conditions[0].Type; got != "Custom" || len(before.Status.Conditions) != 4 {
		t.Errorf("the conditions are %+v", before.Status.Conditions)
	}
	first.stop()
	second := member.start(missing)
	second.untilJoined()
	place("db")
	told(second, "db")
	place("app")
	told(second, "app")
	if after := told(second, "web"); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("it was written again: %+v, and was %+v", after.Status, before.Status)
	}
}
