package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/local"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/naming"
)

// deployments returns a client for the BundleDeployments of the member namespace, with an
// administrator's rights.
func (h *testHub) deployments() *hubclient.Deployments {
	h.t.Helper()
	resource, err := kubeclient.Of[fleet.BundleDeployment, fleet.BundleDeploymentList](h.connection,
		fleet.GroupVersion.WithResource("bundledeployments"), h.namespace)
	check(h.t, err)
	return resource
}

func TestWithoutItsDeployerTheAgentBeatsAndSaysThatNothingIsDeployed(t *testing.T) {
	for name, row := range map[string]struct {
		delivery Delivery
		want     string
	}{
		"the program is missing": {
			Delivery{Path: filepath.Join(t.TempDir(), "muster-deployer")}, "the program muster-deployer is missing beside the agent's",
		},
		"delivery is off": {Delivery{Off: true}, "its agent was installed with fleetAgent.delivery=false"},
	} {
		t.Run(name, func(t *testing.T) {
			hub, member := newCluster(t)
			hub.serve(hub.grant)
			member.bootstrap(hub.values())
			agent := member.start(func(o *Options) { o.Delivery = row.delivery })
			agent.untilJoined()
			_, err := hub.deployments().Create(t.Context(), &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}},
				metav1.CreateOptions{})
			check(t, err)
			agent.until("the BundleDeployment says why nothing comes of it", func() error {
				found, err := hub.deployments().Get(t.Context(), "web", metav1.GetOptions{})
				if err != nil {
					return err
				}
				if delivery.StateOf(found) != fleet.StateErrApplied {
					return fmt.Errorf("its status is %+v", found.Status)
				}
				return containsAll(found.Status.Conditions[0].Message, row.want)
			})
			hub.beatsAgain(agent)
		})
	}
}

func TestWhyNothingIsDeployedIsWrittenOnceAndLeavesOtherConditions(t *testing.T) {
	hub, member := newCluster(t)
	hub.serve(hub.grant)
	member.bootstrap(hub.values())
	path := filepath.Join(t.TempDir(), "muster-deployer")
	missing := func(o *Options) { o.Delivery = Delivery{Path: path} }
	place := func(name string) {
		made, err := hub.deployments().Create(t.Context(), &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}},
			metav1.CreateOptions{})
		check(t, err)
		made.Status.Conditions = []fleet.Condition{{Type: "Custom", Status: "True"}}
		_, err = hub.deployments().UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
		check(t, err)
	}
	reported := func(agent *running, name string) (found *fleet.BundleDeployment) {
		agent.until(name+" says why nothing comes of it", func() error {
			var err error
			if found, err = hub.deployments().Get(t.Context(), name, metav1.GetOptions{}); err == nil &&
				delivery.StateOf(found) != fleet.StateErrApplied {
				err = fmt.Errorf("its status is %+v", found.Status)
			}
			return err
		})
		return found
	}
	hub.prepare(time.Hour)
	place("web")
	first := member.start(missing)
	before := reported(first, "web")
	if got := before.Status.Conditions[0].Type; got != "Custom" || len(before.Status.Conditions) != 4 {
		t.Errorf("the conditions are %+v", before.Status.Conditions)
	}
	first.stop()
	second := member.start(missing)
	second.untilJoined()
	place("db")
	reported(second, "db")
	place("app")
	reported(second, "app")
	if after := reported(second, "web"); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("it was written again: %+v, and was %+v", after.Status, before.Status)
	}
}

func TestReleasesThatNoMemberIsNotedForAreLookedAtInAllNamespaces(t *testing.T) {
	config := startCluster(t)
	cluster, err := local.New(config, metav1.NamespaceDefault)
	check(t, err)
	kube, err := kubernetes.NewForConfig(config)
	check(t, err)
	const elsewhere = "releases-elsewhere"
	_, err = kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: elsewhere}},
		metav1.CreateOptions{})
	check(t, err)
	t.Cleanup(func() {
		check(t, kube.CoreV1().Secrets(elsewhere).DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	})
	for _, row := range []struct {
		name                 string
		labels               map[string]string
		delivered, unclaimed bool
	}{
		{"the agent's own release", map[string]string{"owner": "helm", "name": "fleet-agent"}, false, false},
		{"one that was delivered to this member", map[string]string{"owner": "helm", "name": "web", "muster/member": "this"}, true, false},
		{"one of another member", map[string]string{"owner": "helm", "name": "api", "muster/member": "other"}, true, false},
		{"one of a user or another agent", map[string]string{"owner": "helm", "name": "db"}, true, true},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "release-", Labels: row.labels}}
		_, err := kube.CoreV1().Secrets(elsewhere).Create(t.Context(), secret, metav1.CreateOptions{})
		check(t, err)
		delivered, err := cluster.HasReleases(t.Context(), "this")
		check(t, err)
		unclaimed, err := cluster.HasUnownedReleases(t.Context())
		check(t, err)
		if delivered != row.delivered || unclaimed != row.unclaimed {
			t.Errorf("with %s: delivered %t, unclaimed %t", row.name, delivered, unclaimed)
		}
	}
	for members, want := range map[string]bool{"before": false, "before,other": true, "before,this": true} {
		if delivered, err := cluster.HasReleases(t.Context(), strings.Split(members, ",")...); err != nil || delivered != want {
			t.Errorf("delivered to one of %s: %t, %v", members, delivered, err)
		}
	}
}

// TestOnlyAppliedWorksOfItsReportsAreLeftOfAMember: a leaving member would wait forever for others,
// because it does not remove them.
func TestOnlyAppliedWorksOfItsReportsAreLeftOfAMember(t *testing.T) {
	config := startCluster(t)
	cluster, err := local.New(config, metav1.NamespaceDefault)
	check(t, err)
	connection, err := kubeclient.Connect(config)
	check(t, err)
	all, err := kubeclient.Of[placement.AppliedWork, placement.AppliedWorkList](connection,
		placement.GroupVersion.WithResource("appliedworks"), "")
	check(t, err)
	for name, row := range map[string]struct {
		namespace, marked string
		left, lost        bool
	}{
		"of this report":                 {"of-works", "this", true, true},
		"of an earlier agent":            {"of-works", "", true, true},
		"of a lost report":               {"of-works", "before", false, true},
		"of another report":              {"of-works", "other", false, false},
		"of another member's namespace":  {"elsewhere", "this", false, false},
		"unmarked, of another namespace": {"elsewhere", "", false, false},
	} {
		a := &placement.AppliedWork{ObjectMeta: metav1.ObjectMeta{GenerateName: "left-"},
			Spec: placement.AppliedWorkSpec{WorkName: "web", WorkNamespace: row.namespace}}
		if row.marked != "" {
			a.Labels = map[string]string{naming.LabelMember: row.marked}
		}
		a, err := all.Create(t.Context(), a, metav1.CreateOptions{})
		check(t, err)
		left, err := cluster.HasApplied(t.Context(), "of-works", "this")
		check(t, err)
		lost, err := cluster.HasApplied(t.Context(), "of-works", "this", "before")
		check(t, err)
		if left != row.left || lost != row.lost {
			t.Errorf("%s: left %t, with the lost report %t", name, left, lost)
		}
		check(t, all.Delete(t.Context(), a.Name, metav1.DeleteOptions{}))
	}
}
