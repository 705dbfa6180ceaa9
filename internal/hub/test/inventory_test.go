package hub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	inventory "github.com/muster-fleet/muster/api/inventory/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

const inventoryNamespace = "fleet-inventory"

// profile waits until a profile has two conditions with these reasons, and returns it.
func (f fixture) profile(name, joined, healthy string) inventory.ClusterProfile {
	f.t.Helper()
	var profile inventory.ClusterProfile
	f.eventually(fmt.Sprintf("ClusterProfile %s is %s and %s", name, joined, healthy), func() error {
		if err := f.get(&profile, inventoryNamespace, name); err != nil {
			return err
		}
		for kind, want := range map[string]string{"Joined": joined, "ControlPlaneHealthy": healthy} {
			got := meta.FindStatusCondition(profile.Status.Conditions, kind)
			if got == nil || string(got.Status)+" "+got.Reason != want {
				return fmt.Errorf("%s is %+v", kind, got)
			}
		}
		return nil
	})
	return profile
}

func (f fixture) untilNoProfile(namespace, name string) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("ClusterProfile %s/%s is gone", namespace, name), func() error {
		if err := f.get(&inventory.ClusterProfile{}, namespace, name); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
}

func TestBothDoorsHaveAProfileThatFollowsLossReturnAndLeave(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	agent := f.join(values, map[string]any{"clientID": "profile", "labels": map[string]string{"env": "dev"}})
	m := f.register("profile")
	m.eventually("the agent answers", func() error { return m.answer(metav1.ConditionTrue, "") })
	ofCluster, ofMember := f.workspace+"."+naming.Cluster("profile"), m.name
	profile := f.profile(ofCluster, "True ClusterJoined", "True AgentHealthy")
	if profile.Spec.DisplayName != f.workspace+"/"+naming.Cluster("profile") || profile.Labels["env"] != "dev" ||
		profile.Labels[inventory.LabelClusterManager] != "muster" {
		t.Errorf("of the Cluster: %+v", profile)
	}
	f.eventually("it has the version and the properties", func() error {
		if err := f.get(&profile, inventoryNamespace, ofCluster); err != nil {
			return err
		}
		if !strings.HasPrefix(profile.Status.Version.Kubernetes, "v1.") || len(profile.Status.Properties) != 2 {
			return fmt.Errorf("its status is %+v", profile.Status)
		}
		return nil
	})
	profile = f.profile(ofMember, "True MemberClusterJoined", "True AgentHealthy")
	if profile.Spec.DisplayName != m.name || profile.Labels[clusterv1beta1.LabelMemberName] != m.name {
		t.Errorf("of the MemberCluster: %+v", profile)
	}
	var namespace corev1.Namespace
	f.check(f.get(&namespace, "", inventoryNamespace))
	if namespace.Labels[inventory.LabelClusterSet] != "default" || namespace.Labels[inventory.LabelClusterSetOfKEP] != "default" {
		t.Errorf("the namespace's labels are %v", namespace.Labels)
	}

	m.eventually("the period is short", func() error {
		mc := m.record()
		mc.Spec.HeartbeatPeriodSeconds = 1
		return m.Update(context.Background(), &mc)
	})
	agent.stop()
	f.profile(ofCluster, "True ClusterJoined", "Unknown AgentLost")
	f.profile(ofMember, "True MemberClusterJoined", "Unknown AgentLost")
	agent.start()
	m.check(m.answer(metav1.ConditionTrue, ""))
	f.profile(ofCluster, "True ClusterJoined", "True AgentHealthy")
	f.profile(ofMember, "True MemberClusterJoined", "True AgentHealthy")

	mc, cluster := m.record(), f.untilReady(naming.Cluster("profile"), "Ready")
	f.check(f.Delete(context.Background(), &mc))
	f.check(f.Delete(context.Background(), &cluster))
	f.profile(ofMember, "True Leaving", "True AgentHealthy")
	m.check(m.answer(metav1.ConditionFalse, ""))
	f.untilNoProfile(inventoryNamespace, ofMember)
	f.untilNoProfile(inventoryNamespace, ofCluster)
}

func TestTenBeatsCauseNoWriteOfAProfile(t *testing.T) {
	f := newFixture(t)
	m := f.register("beats")
	m.eventually("the agent answers", func() error { return m.answer(metav1.ConditionTrue, "") })
	before := f.profile(m.name, "True MemberClusterJoined", "True AgentHealthy")
	changes := f.followSince(before.ResourceVersion, f.cluster.Config, &inventory.ClusterProfileList{},
		client.InNamespace(inventoryNamespace), client.MatchingFields{"metadata.name": m.name})
	for range 10 {
		m.eventually("the agent beats", func() error { return m.answer(metav1.ConditionTrue, "") })
	}
	// What the hub does for this label comes after all that it would have done for the beats.
	m.eventually("a label is set", func() error {
		mc := m.record()
		mc.Labels["after"] = "beats"
		return m.Update(context.Background(), &mc)
	})
	for change := range changes {
		profile, ok := change.Object.(*inventory.ClusterProfile)
		if !ok || change.Type != watch.Modified {
			t.Fatalf("got %s: %+v", change.Type, change.Object)
		}
		if profile.Labels["after"] == "beats" {
			break
		}
		t.Errorf("a beat caused a write (-before +after):\n%s", cmp.Diff(before, *profile))
	}
}

func TestProfileOfAnotherManagerIsNeverTouched(t *testing.T) {
	f := newFixture(t)
	name := "foreign-" + strings.TrimPrefix(f.workspace, "clusters-")
	foreign := inventory.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: inventoryNamespace, Name: name, Labels: map[string]string{inventory.LabelClusterManager: "muster"},
		},
		Spec: inventory.ClusterProfileSpec{DisplayName: "mine", ClusterManager: inventory.ClusterManager{Name: "somebody"}},
	}
	f.eventually("it is there", func() error { return f.Create(context.Background(), &foreign) })
	m := f.register("foreign")
	m.eventually("the agent answers", func() error { return m.answer(metav1.ConditionTrue, "") })
	f.eventually("an event says so", func() error {
		var list eventsv1.EventList
		if err := f.List(context.Background(), &list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Reason == "ClusterProfileTaken" && e.Regarding.Name == name &&
				strings.Contains(e.Note, `belongs to cluster manager "somebody": delete it`) {
				return nil
			}
		}
		return fmt.Errorf("there are %d other events", len(list.Items))
	})
	var after inventory.ClusterProfile
	f.check(f.get(&after, inventoryNamespace, name))
	if diff := cmp.Diff(foreign, after); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	after.Spec.ClusterManager.Name = "muster"
	if err := f.Update(context.Background(), &after); !apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), "clusterManager is immutable") {
		t.Errorf("changing the manager: got %v, want it refused", err)
	}
	f.check(f.Delete(context.Background(), &foreign))
	f.profile(name, "True MemberClusterJoined", "True AgentHealthy")
}

func TestProfileEditedOrDeletedByHandIsHealed(t *testing.T) {
	f := newAlone(t, "")
	m := f.register("edited")
	m.eventually("the agent answers", func() error { return m.answer(metav1.ConditionTrue, "") })
	wanted := f.profile(m.name, "True MemberClusterJoined", "True AgentHealthy")
	healed := func(what string) {
		f.eventually(what+" is healed", func() error {
			var got inventory.ClusterProfile
			if err := f.get(&got, inventoryNamespace, m.name); err != nil {
				return err
			}
			diff := cmp.Diff(wanted.Labels, got.Labels) + cmp.Diff(wanted.Annotations, got.Annotations) + cmp.Diff(wanted.Spec, got.Spec)
			if diff += cmp.Diff(wanted.Status.Properties, got.Status.Properties); diff != "" {
				return errors.New(diff)
			}
			return nil
		})
	}
	f.eventually("it is edited", func() error {
		var edited inventory.ClusterProfile
		if err := f.get(&edited, inventoryNamespace, m.name); err != nil {
			return err
		}
		edited.Labels, edited.Annotations, edited.Spec.DisplayName = nil, map[string]string{"muster/record-labels": ""}, "somebody else"
		return f.Update(context.Background(), &edited)
	})
	delete(wanted.Annotations, "muster/record-labels")
	healed("what was edited")
	f.eventually("its status is edited", func() error {
		var edited inventory.ClusterProfile
		if err := f.get(&edited, inventoryNamespace, m.name); err != nil {
			return err
		}
		edited.Status = inventory.ClusterProfileStatus{}
		return f.Status().Update(context.Background(), &edited)
	})
	healed("the status")
	f.check(f.Delete(context.Background(), &wanted))
	healed("what was deleted")
	f.check(f.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: inventoryNamespace}}))
	f.eventually("the namespace is another", func() error {
		var got corev1.Namespace
		if err := f.get(&got, "", inventoryNamespace); err != nil || got.DeletionTimestamp != nil {
			return fmt.Errorf("it is %+v (%w)", got.Status, err)
		}
		return nil
	})
	f.profile(m.name, "True MemberClusterJoined", "True AgentHealthy")
}

func TestProfilesMoveWithTheSettingAndTheClusterSetFollows(t *testing.T) {
	f := newAlone(t, "")
	m := f.register("move")
	m.eventually("the agent answers", func() error { return m.answer(metav1.ConditionTrue, "") })
	f.profile(m.name, "True MemberClusterJoined", "True AgentHealthy")
	elsewhere := f.namespace("kueue-")
	f.configure(fmt.Sprintf(`{"inventory":{"namespace":%q}}`, elsewhere))
	f.untilNoProfile(inventoryNamespace, m.name)
	f.eventually("it is elsewhere", func() error { return f.get(&inventory.ClusterProfile{}, elsewhere, m.name) })
	f.eventually("an event says which labels are missing", func() error {
		var list eventsv1.EventList
		if err := f.List(context.Background(), &list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Reason == "ClusterSetMissing" && e.Regarding.Name == elsewhere &&
				strings.Contains(e.Note, "kubectl label namespace "+elsewhere+" multicluster.x-k8s.io/clusterset=default") {
				return nil
			}
		}
		return fmt.Errorf("there are %d other events", len(list.Items))
	})
	f.configure(`{"inventory":{"clusterSet":"prod"}}`)
	f.untilNoProfile(elsewhere, m.name)
	f.profile(m.name, "True MemberClusterJoined", "True AgentHealthy")
	f.eventually("the namespace says prod", func() error {
		var namespace corev1.Namespace
		if err := f.get(&namespace, "", inventoryNamespace); err != nil {
			return err
		}
		if namespace.Labels[inventory.LabelClusterSet] != "prod" {
			return fmt.Errorf("its labels are %v", namespace.Labels)
		}
		return nil
	})
	f.configure(`{"inventory":{"namespace":""}}`)
	f.untilNoProfile(inventoryNamespace, m.name)
}

// TestProfilesAreInFleetSystemTooWhileTheSettingSaysSo: one there that is another
// manager's stays as it is.
func TestProfilesAreInFleetSystemTooWhileTheSettingSaysSo(t *testing.T) {
	f := newAlone(t, "")
	const system = naming.MemberSystemNamespace
	m, other := f.register("also"), f.register("kubefleets")
	m.eventually("the agent answers", func() error { return m.answer(metav1.ConditionTrue, "") })
	f.profile(m.name, "True MemberClusterJoined", "True AgentHealthy")
	if err := f.get(&inventory.ClusterProfile{}, system, m.name); !apierrors.IsNotFound(err) {
		t.Fatalf("without the setting, reading it in %s: %v", system, err)
	}
	theirs := &inventory.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: other.name}}
	theirs.Spec.ClusterManager.Name = "KubeFleet"
	f.check(client.IgnoreAlreadyExists(f.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}})))
	f.check(f.Create(context.Background(), theirs))

	f.configure(`{"inventory":{"alsoInFleetSystem":true}}`)
	f.eventually("it is there too", func() error { return f.get(&inventory.ClusterProfile{}, system, m.name) })
	f.eventually("both say the same", func() error {
		var here, there inventory.ClusterProfile
		if err := f.get(&here, inventoryNamespace, m.name); err != nil {
			return err
		}
		if err := f.get(&there, system, m.name); err != nil {
			return err
		}
		if diff := cmp.Diff(here.Status.Conditions, there.Status.Conditions,
			cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime", "ObservedGeneration")); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	f.eventually("an event says what helps", func() error {
		var list eventsv1.EventList
		if err := f.List(context.Background(), &list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Reason == "ClusterProfileTaken" && e.Regarding.Name == other.name && strings.Contains(e.Note, "alsoInFleetSystem") {
				return nil
			}
		}
		return fmt.Errorf("there are %d other events", len(list.Items))
	})

	f.configure(`{}`)
	f.untilNoProfile(system, m.name)
	f.profile(m.name, "True MemberClusterJoined", "True AgentHealthy")
	is := &inventory.ClusterProfile{}
	f.check(f.get(is, system, other.name))
	if is.UID != theirs.UID || is.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("the one of another manager is %+v", is)
	}
}

func TestProfileOfARecordThatWentUnseenIsRemovedWhenTheHubStarts(t *testing.T) {
	f := newAlone(t, "")
	m := f.register("unseen")
	m.eventually("the agent answers", func() error { return m.answer(metav1.ConditionTrue, "") })
	f.profile(m.name, "True MemberClusterJoined", "True AgentHealthy")
	f.hub.Kill()
	mc := m.record()
	f.check(f.Patch(context.Background(), &mc, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
	f.check(f.Delete(context.Background(), &mc))
	f.hub.Start()
	f.untilNoProfile(inventoryNamespace, m.name)
}

func TestHubWithoutTheKindRunsWithoutAnInventoryAndSaysSo(t *testing.T) {
	f := newAlone(t, "")
	f.hub.Kill()
	t.Cleanup(func() { f.cluster.InstallCRDs(t) })
	f.undefine("clusterprofiles.multicluster.x-k8s.io")
	f.eventually("the kind is gone", func() error {
		if err := f.List(context.Background(), &inventory.ClusterProfileList{}); !meta.IsNoMatchError(err) {
			return gone(err)
		}
		return nil
	})
	f.hub.Start()
	m := f.register("member")
	m.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	for _, want := range []string{"The hub cluster does not serve a kind", "multicluster.x-k8s.io/v1alpha1 ClusterProfile", "the inventory"} {
		if !strings.Contains(f.hub.Log(), want) {
			t.Errorf("the log does not have %q", want)
		}
	}
}
