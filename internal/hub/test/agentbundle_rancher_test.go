package hub_test

import (
	"context"
	"crypto/sha1" //nolint:gosec // as Rancher Fleet does
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// rancherAgentBundle makes the Bundle that the hub of Rancher Fleet makes for its agent, and plays
// the agent that deploys it.
func (f fixture) rancherAgentBundle(cluster string) *fleet.Bundle {
	f.t.Helper()
	b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "fleet-agent-" + cluster}}
	set := "fleet-manage-agent/v1, Kind=Namespace" + f.workspace
	//nolint:gosec // as Rancher Fleet does
	b.Labels = map[string]string{"objectset.rio.cattle.io/hash": fmt.Sprintf("%x", sha1.Sum([]byte(set)))}
	b.Annotations = map[string]string{"objectset.rio.cattle.io/id": "fleet-manage-agent",
		"objectset.rio.cattle.io/owner-gvk":  "/v1, Kind=Namespace",
		"objectset.rio.cattle.io/owner-name": f.workspace}
	b.Spec.Resources = []fleet.BundleResource{{Name: "agent.yaml", Content: "{apiVersion: v1, kind: ConfigMap, metadata: {name: agent}}"}}
	b.Spec.Targets = []fleet.BundleTarget{{ClusterName: cluster}}
	f.check(f.Create(context.Background(), b))
	var placed fleet.BundleDeployment
	f.eventually("it is placed", func() error {
		if err := f.get(&placed, naming.MemberNamespace(f.workspace, cluster), b.Name); err != nil || placed.Spec.DeploymentID != "" {
			return err
		}
		return errors.New("it is held back")
	})
	ready(f.t, f.Client, placed)
	return b
}

// TestTheBundleOfRancherFleetsAgentGoesOnlyWhileMustersAgentActs: an agent of Rancher Fleet
// uninstalls a release whose BundleDeployment is deleted, and this release is what it runs by.
func TestTheBundleOfRancherFleetsAgentGoesOnlyWhileMustersAgentActs(t *testing.T) {
	f := newFixture(t)
	d := f.downstream()
	_, token := f.token("new-token", "")
	d.install(d.theirs(), d.values(token, "their-bundle"))
	name := naming.Cluster("their-bundle")
	theirs := d.startTheirs()
	f.check(theirs.beat(time.Now()))
	f.actsFor(name, "legacy")
	f.says(name, "ForeignAgent")
	bundle := f.rancherAgentBundle(name)
	stays := func() {
		t.Helper()
		var is fleet.Bundle
		f.check(f.get(&is, f.workspace, bundle.Name))
		var deployment fleet.BundleDeployment
		f.check(f.get(&deployment, naming.MemberNamespace(f.workspace, name), bundle.Name))
		if is.UID != bundle.UID || is.DeletionTimestamp != nil || deployment.DeletionTimestamp != nil {
			t.Errorf("Bundle %s is %s, deleted %v", bundle.UID, is.UID, is.DeletionTimestamp)
		}
	}
	// Each of these has the hub look at the agent again.
	f.check(theirs.beat(time.Now().Add(time.Second)))
	cluster := f.actsFor(name, "legacy")
	f.change(&cluster, func() { cluster.Labels = map[string]string{"env": "dev"} })
	d.upgrade(d.ours(), nil)
	stays()

	d.start()
	f.actsFor(name, "native")
	f.says(name, "SharedCredential", "may take over again at any time")
	f.eventually("the Bundle is gone, and placed nowhere", func() error {
		return errors.Join(gone(f.get(&fleet.Bundle{}, f.workspace, bundle.Name)),
			gone(f.get(&fleet.BundleDeployment{}, naming.MemberNamespace(f.workspace, name), bundle.Name)))
	})

	d.rollback(1)
	theirs = d.startTheirs()
	d.stop()
	f.check(theirs.beat(time.Now()))
	f.actsFor(name, "legacy")
	f.says(name, "ForeignAgent")
	bundle = f.rancherAgentBundle(name)
	f.check(theirs.beat(time.Now().Add(time.Second)))
	f.actsFor(name, "legacy")
	stays()
}

// TestAHubThatDiesAfterTheBundleOfRancherFleetsAgentIsDeletedGoesOn stops the hub between the
// Bundle and its BundleDeployment, once with the hub's finalizer and once without.
func TestAHubThatDiesAfterTheBundleOfRancherFleetsAgentIsDeletedGoesOn(t *testing.T) {
	f := newAlone(t, "")
	ctx := context.Background()
	d := f.downstream()
	_, token := f.token("new-token", "")
	d.install(d.theirs(), d.values(token, "their-bundle"))
	name := naming.Cluster("their-bundle")
	theirs := d.startTheirs()
	f.check(theirs.beat(time.Now()))
	cluster := f.actsFor(name, "legacy")
	f.change(&cluster, func() { metav1.SetMetaDataLabel(&cluster.ObjectMeta, fleet.LabelNonManagedAgent, "true") })
	f.says(name, "NotManaged")
	d.upgrade(d.ours(), nil)
	d.start()
	f.actsFor(name, "native")
	placement := naming.MemberNamespace(f.workspace, name)
	for _, free := range []bool{false, true} {
		bundle := f.rancherAgentBundle(name)
		f.hub.Kill()
		f.check(f.Delete(ctx, bundle.DeepCopy()))
		if free {
			f.check(merge(f.Client, bundle.DeepCopy(), `{"metadata":{"finalizers":null}}`))
			f.check(gone(f.get(&fleet.Bundle{}, f.workspace, bundle.Name)))
		}
		var deployment fleet.BundleDeployment
		if f.check(f.get(&deployment, placement, bundle.Name)); deployment.DeletionTimestamp != nil {
			t.Fatal("its BundleDeployment goes without a hub")
		}
		f.hub.Start()
		f.eventually("both are gone", func() error {
			return errors.Join(gone(f.get(&fleet.Bundle{}, f.workspace, bundle.Name)),
				gone(f.get(&fleet.BundleDeployment{}, placement, bundle.Name)))
		})
		f.actsFor(name, "native")
	}
	managed := f.clusterRecord(name)
	f.change(managed, func() { delete(managed.Labels, fleet.LabelNonManagedAgent) })
	f.says(name, "SharedCredential")
	f.untilReady(name, "Ready")
}
