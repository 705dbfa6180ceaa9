package hub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

const markOfHub = "muster/paused-until-left"

// serveClusterAPI makes the API server serve the clusters of Cluster API until the test ends.
func (f fixture) serveClusterAPI() {
	f.t.Helper()
	f.define(definitionOfClusterAPI)
}

// define makes the API server serve the kind of a CustomResourceDefinition until the test ends.
func (f fixture) define(text string) {
	f.t.Helper()
	definition := &unstructured.Unstructured{}
	f.check(yaml.Unmarshal([]byte(text), definition))
	f.check(f.Create(context.Background(), definition))
	f.t.Cleanup(func() {
		f.check(f.Delete(context.Background(), definition))
		f.eventually("the definition is gone", func() error {
			return gone(f.Get(context.Background(), client.ObjectKeyFromObject(definition), definition))
		})
	})
}

// capiCluster makes a cluster of Cluster API with the finalizer of its controller, which keeps it.
func (f fixture) capiCluster(name string, spec map[string]any) *unstructured.Unstructured {
	f.t.Helper()
	theirs := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	theirs.SetGroupVersionKind(schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta1", Kind: "Cluster"})
	theirs.SetNamespace(f.workspace)
	theirs.SetName(name)
	theirs.SetLabels(map[string]string{"env": "prod"})
	theirs.SetFinalizers([]string{"cluster.cluster.x-k8s.io/test"})
	f.eventually("the API server serves clusters of Cluster API", func() error { return f.Create(context.Background(), theirs) })
	f.t.Cleanup(func() {
		f.check(client.IgnoreNotFound(merge(f, theirs.DeepCopy(), `{"metadata":{"finalizers":null}}`)))
	})
	return theirs
}

// pausedByHub returns whether a cluster of Cluster API is paused, and marked.
func (f fixture) pausedByHub(theirs *unstructured.Unstructured) (paused, marked bool) {
	f.t.Helper()
	f.check(f.Get(context.Background(), client.ObjectKeyFromObject(theirs), theirs))
	paused, _, _ = unstructured.NestedBool(theirs.Object, "spec", "paused")
	_, marked = theirs.GetAnnotations()[markOfHub]
	return paused, marked
}

func (f fixture) untilPaused(theirs *unstructured.Unstructured, want bool) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("%s is paused: %t", theirs.GetName(), want), func() error {
		if paused, marked := f.pausedByHub(theirs); paused != want || marked != want {
			return fmt.Errorf("it is paused: %t, marked: %t", paused, marked)
		}
		return nil
	})
}

// untilSaid waits for an Event about an object of that name.
func (f fixture) untilSaid(name, reason, text string) {
	f.t.Helper()
	f.eventually(name+" has the Event "+reason, func() error {
		var list eventsv1.EventList
		if err := f.List(context.Background(), &list, client.InNamespace(f.workspace)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Reason == reason && e.Regarding.Name == name && strings.Contains(e.Note, text) {
				return nil
			}
		}
		return fmt.Errorf("there are %d other Events", len(list.Items))
	})
}

// leftFirst waits until the condition of a Cluster has a reason and a text.
func (f fixture) leftFirst(name, reason, text string) {
	f.t.Helper()
	f.eventually(name+" says "+reason, func() error {
		var member fleet.Cluster
		if err := f.get(&member, f.workspace, name); err != nil {
			return err
		}
		c := kube.FindCondition(member.Status.Conditions, fleet.ConditionLeftFirst)
		if c == nil || c.Reason != reason || !strings.Contains(c.Message, text) {
			return fmt.Errorf("it says %+v", c)
		}
		return nil
	})
}

// TestAMemberLeavesBeforeClusterAPIDeletesItsMachines has an agent that removes its deliveries.
func TestAMemberLeavesBeforeClusterAPIDeletesItsMachines(t *testing.T) {
	f := newAlone(t, `{"importLoopback":true,"clusterAPI":{"leaveFirst":"10m"}}`)
	ctx := context.Background()
	f.serveClusterAPI()
	theirs := f.capiCluster("web", map[string]any{"paused": false, "topology": map[string]any{"class": "edge"}})
	owner := []metav1.OwnerReference{{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "Cluster", Name: "web", UID: theirs.GetUID()}}
	namespace := f.namespace("agent-")
	down := f.cluster.Disguise(t, string(uuid.NewUUID()), nil)
	token := f.cluster.Account(t, "capi-importer", "cluster-admin")
	i := importing{fixture: f, down: down, remote: f.Client, token: token, agentNamespace: namespace}
	secret := i.secret("web-kubeconfig", down.Kubeconfig(t, i.token))
	secret.OwnerReferences, secret.Labels = owner, map[string]string{"cluster.x-k8s.io/cluster-name": "web"}
	f.check(f.Create(ctx, secret))
	i.record("web", "web-kubeconfig", func(c *fleet.Cluster) { c.OwnerReferences = owner })
	f.optIn()
	f.eventually("the agent is installed", func() error { return f.get(&corev1.Secret{}, namespace, naming.AgentBootstrapSecret) })
	m := &member{fixture: f, agentNamespace: namespace}
	m.start()
	f.untilReady("web", "Ready")
	m.stop()

	f.check(f.Delete(ctx, theirs))
	f.untilPaused(theirs, true)
	f.leftFirst("web", "LeavesFirst", "kubectl -n "+f.workspace+
		` patch clusters.cluster.x-k8s.io web --type merge -p '{"spec":{"paused":false}}'`)
	f.untilSaid("web", "LeavesFirst", "at most until ")
	f.restartHub()
	m.start()
	f.eventually("the Cluster has left", func() error { return gone(f.get(&fleet.Cluster{}, f.workspace, "web")) })
	f.untilPaused(theirs, false)
	f.untilSaid("web", "MachinesGo", "has left the fleet")
	if class, _, _ := unstructured.NestedString(theirs.Object, "spec", "topology", "class"); class != "edge" {
		t.Errorf("its spec is %v", theirs.Object["spec"])
	}

	f.check(merge(f, secret, `{"metadata":{"annotations":{"changed":"1"}}}`))
	f.restartHub()
	later := f.capiCluster("later", map[string]any{})
	f.capiSecret("later-kubeconfig", "later", later.GetUID())
	f.eventually("the hub has looked at a later Secret", func() error { return f.get(&fleet.Cluster{}, f.workspace, "later") })
	if err := gone(f.get(&fleet.Cluster{}, f.workspace, "web")); err != nil {
		t.Errorf("the Cluster that has left: %v", err)
	}
}

// TestNoDeletionOfAClusterOfClusterAPIWaitsForEver has members that do not leave, and users who
// know better.
func TestNoDeletionOfAClusterOfClusterAPIWaitsForEver(t *testing.T) {
	f := newAlone(t, `{"importLoopback":true,"clusterAPI":{"leaveFirst":"20s"}}`)
	ctx := context.Background()
	f.serveClusterAPI()
	f.optIn()
	theirs := map[string]*unstructured.Unstructured{}
	for _, name := range []string{"stuck", "protected", "resumed"} {
		theirs[name] = f.capiCluster(name, map[string]any{})
		f.capiSecret(name+"-kubeconfig", name, theirs[name].GetUID())
		f.eventually(name+" is registered", func() error { return f.get(&fleet.Cluster{}, f.workspace, name) })
		patch := `{"metadata":{"finalizers":["example.com/hold"]}}`
		if name == "protected" {
			patch = `{"metadata":{"labels":{"muster/protected":"true"}}}`
		}
		member := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name}}
		f.check(merge(f, member, patch))
		t.Cleanup(func() {
			f.check(merge(f, member, `{"metadata":{"finalizers":null,"labels":{"muster/protected":null}}}`))
		})
	}
	began := time.Now()
	for _, name := range []string{"resumed", "stuck", "protected"} {
		f.check(f.Delete(ctx, theirs[name]))
	}
	f.untilPaused(theirs["resumed"], true)
	f.leftFirst("resumed", "LeavesFirst", "at most until ")
	f.check(merge(f, theirs["resumed"], `{"spec":{"paused":false}}`))
	f.leftFirst("resumed", "LeftLate", "A user has resumed cluster resumed of Cluster API")
	f.leftFirst("protected", "LeaveRefused", "muster/protected")
	for _, name := range []string{"stuck", "protected"} {
		f.untilPaused(theirs[name], false)
		if took := time.Since(began); took < 15*time.Second {
			t.Errorf("%s was resumed after %s", name, took)
		}
		f.leftFirst(name, "LeftLate", "did not leave the fleet in time")
		f.untilSaid(name, "LeftLate", "Cluster API continues with the deletion")
	}
	if paused, _ := f.pausedByHub(theirs["resumed"]); paused {
		t.Error("the hub has paused again what a user has resumed")
	}
	var member fleet.Cluster
	f.check(f.get(&member, f.workspace, "protected"))
	if member.DeletionTimestamp != nil {
		t.Error("a protected member was deleted")
	}
}

// TestNobodysMemberLeavesForAClusterOfClusterAPI has clusters of Cluster API that have the name of
// a Cluster, and no other right to it, and one that clusterctl moves.
func TestNobodysMemberLeavesForAClusterOfClusterAPI(t *testing.T) {
	f := newAlone(t, `{"importLoopback":true,"clusterAPI":{"labels":["env"],"leaveFirst":"10m"}}`)
	ctx := context.Background()
	f.serveClusterAPI()
	f.optIn()
	quiet := f.neighbour()
	f.check(quiet.Create(ctx, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: quiet.workspace, Name: "mine"}}))
	f.check(f.Create(ctx, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "mine"},
		Spec: fleet.ClusterSpec{KubeConfigSecret: "mine-kubeconfig"}}))
	mine := f.capiCluster("mine", map[string]any{})
	f.capiSecret("mine-kubeconfig", "mine", mine.GetUID())
	uninvited := quiet.capiCluster("mine", map[string]any{})

	moved := f.capiCluster("moved", map[string]any{"paused": true})
	f.capiSecret("moved-kubeconfig", "moved", moved.GetUID())
	proof := f.capiCluster("proof", map[string]any{})
	f.capiSecret("proof-kubeconfig", "proof", proof.GetUID())
	label := func(name, want string) func() error {
		return func() error {
			var member fleet.Cluster
			if err := f.get(&member, f.workspace, name); err != nil || member.Labels["env"] != want {
				return errors.Join(err, fmt.Errorf("its label is %q", member.Labels["env"]))
			}
			return nil
		}
	}
	f.eventually("the hub has looked at a later cluster", label("proof", "prod"))
	if err := gone(f.get(&fleet.Cluster{}, f.workspace, "moved")); err != nil {
		t.Errorf("a paused cluster of Cluster API is registered: %v", err)
	}
	f.check(merge(f, moved, `{"spec":{"paused":null}}`))
	f.eventually("it is registered once it is no longer paused", label("moved", "prod"))
	f.check(merge(f, moved, `{"metadata":{"labels":{"env":"test"},"annotations":{"cluster.x-k8s.io/paused":""}}}`))
	f.check(merge(f, proof, `{"metadata":{"labels":{"env":"test"}}}`))
	f.eventually("the hub has looked at a later change", label("proof", "test"))
	f.check(label("moved", "prod")())

	for _, each := range []*unstructured.Unstructured{mine, uninvited, moved, proof} {
		f.check(f.Delete(ctx, each))
	}
	f.untilSaid("proof", "MachinesGo", "has left the fleet")
	for _, each := range []*unstructured.Unstructured{mine, uninvited, moved} {
		if paused, marked := f.pausedByHub(each); paused || marked {
			t.Errorf("the hub has paused %s/%s: %v", each.GetNamespace(), each.GetName(), each.Object)
		}
		var member fleet.Cluster
		if err := f.get(&member, each.GetNamespace(), each.GetName()); err != nil || member.DeletionTimestamp != nil {
			t.Errorf("%s/%s leaves: %v", each.GetNamespace(), each.GetName(), err)
		}
	}
	f.theHubsAccountOnlyPausesDeletedClusters(mine)
}

// theHubsAccountOnlyPausesDeletedClusters plays a thief of the hub's account.
func (f fixture) theHubsAccountOnlyPausesDeletedClusters(deleted *unstructured.Unstructured) {
	f.t.Helper()
	hub, alive := f.asHub(), f.capiCluster("alive", map[string]any{"topology": map[string]any{"class": "edge"}})
	f.denied("to pause a cluster that is not being deleted", func() error { return merge(hub, alive.DeepCopy(), `{"spec":{"paused":true}}`) })
	f.denied("to delete one", func() error { return hub.Delete(context.Background(), alive.DeepCopy(), client.DryRunAll) })
	for what, patch := range map[string]string{
		"its class":             `{"spec":{"topology":{"class":"other"}}}`,
		"its finalizers":        `{"metadata":{"finalizers":null}}`,
		"its labels":            `{"metadata":{"labels":{"a":"b"}}}`,
		"a user's annotation":   `{"metadata":{"annotations":{"a":"b"}}}`,
		"its owners":            `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"1"}]}}`,
		"its state":             `{"status":{"phase":"Deleting"}}`,
		"a pause and the class": `{"spec":{"paused":true,"topology":{"class":"other"}}}`,
	} {
		f.denied("to change "+what, func() error { return merge(hub, deleted.DeepCopy(), patch, client.DryRunAll) })
	}
	f.check(merge(hub, deleted.DeepCopy(), `{"metadata":{"annotations":{"`+markOfHub+`":"x"}},"spec":{"paused":true}}`, client.DryRunAll))
}

// TestAStandbyLetsNoMemberLeaveForClusterAPI: the Lease is another's until the test deletes it.
func TestAStandbyLetsNoMemberLeaveForClusterAPI(t *testing.T) {
	f := newAlone(t, `{"importLoopback":true,"clusterAPI":{"leaveFirst":"10m"}}`, "--leader-elect=true")
	ctx := context.Background()
	f.serveClusterAPI()
	f.optIn()
	theirs := f.capiCluster("web", map[string]any{})
	f.capiSecret("web-kubeconfig", "web", theirs.GetUID())
	f.eventually("the Cluster exists", func() error { return f.get(&fleet.Cluster{}, f.workspace, "web") })
	f.hub.Kill()
	lease := &coordinationv1.Lease{}
	f.check(f.Get(ctx, types.NamespacedName{Namespace: naming.SystemNamespace, Name: "muster-hub"}, lease))
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new("another"), new(int32(3600))
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	f.check(f.Update(ctx, lease))
	f.hub.Start()
	f.check(f.Delete(ctx, theirs))
	time.Sleep(5 * time.Second)
	if paused, marked := f.pausedByHub(theirs); paused || marked {
		t.Error("a hub that does not lead has paused a cluster of Cluster API")
	}
	var member fleet.Cluster
	f.check(f.get(&member, f.workspace, "web"))
	if member.DeletionTimestamp != nil {
		t.Error("a hub that does not lead has deleted a Cluster")
	}
	f.check(f.Delete(ctx, lease))
	f.untilSaid("web", "MachinesGo", "has left the fleet")
}
