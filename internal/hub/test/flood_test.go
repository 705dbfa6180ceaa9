package hub_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// answers counts the answers of an API server by the priority level that served them.
type answers struct {
	mu sync.Mutex
	// all and refused are by the UID of the level.
	all, refused map[string]int
}

// counted is a client with nothing but a bearer token and connections of its own, whose
// answers are counted.
func (f fixture) counted(bearer string) (client.Client, *answers) {
	f.t.Helper()
	config := rest.AnonymousClientConfig(f.cluster.Config)
	config.BearerToken = bearer
	return f.countedBy(config)
}

func (f fixture) countedBy(config *rest.Config) (client.Client, *answers) {
	f.t.Helper()
	count := &answers{all: map[string]int{}, refused: map[string]int{}}
	config.QPS = -1
	config.NextProtos = []string{"http/1.1"} // a connection for each request under way
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, count} })
	made, err := client.New(config, client.Options{Scheme: f.Scheme(), Mapper: f.RESTMapper()})
	f.check(err)
	return made, count
}

type counting struct {
	next  http.RoundTripper
	count *answers
}

func (c counting) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	c.count.mu.Lock()
	defer c.count.mu.Unlock()
	level := response.Header.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID)
	c.count.all[level]++
	if response.StatusCode == http.StatusTooManyRequests {
		c.count.refused[level]++
	}
	return response, nil
}

// TestAFloodOfRequestsToRegisterStopsNoBeat lets the holders of two tokens ask with hundreds of
// connections, as fast as the API server answers, while members of every kind of agent beat.
func TestAFloodOfRequestsToRegisterStopsNoBeat(t *testing.T) {
	f := newAlone(t, "")
	_, values := f.token("new-token", "")
	f.token("another", "")
	members := f.crowd(4)
	legacy := f.legacyJoin(values, "legacy")
	f.eventually("the agent beats", func() error { return legacy.beat(time.Now()) })
	f.untilReady(legacy.answer["clusterName"], "Ready")
	alarms := f.alarms()

	beats, beating := map[string]*answers{}, sync.WaitGroup{}
	done := make(chan struct{})
	end := sync.OnceFunc(func() { close(done); beating.Wait() })
	t.Cleanup(end)
	beatOn := func(agent string, beat func() error) {
		beating.Go(func() {
			for {
				if err := beat(); err != nil {
					t.Errorf("the agent of %s beats: %v", agent, err)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	legacy.Client, beats["Rancher Fleet"] = f.counted(legacy.answer["token"])
	beatOn("Rancher Fleet", func() error { return legacy.beat(time.Now()) })
	kubefleet := *members.members[0] // a copy: the crowd goes on with a client of its own
	kubefleet.agent, beats["KubeFleet"] = f.counted(kubefleet.bearer(kubefleet.name))
	beatOn("KubeFleet", func() error { return kubefleet.answer(metav1.ConditionTrue, "v1") })
	native := members.members[1]
	own, count := f.counted(native.bearer(native.name))
	beats["Muster"] = count
	beatOn("Muster", func() error {
		patch := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
		return own.Patch(context.Background(), leaseOf(native.namespaceName()), client.RawPatch("application/merge-patch+json", []byte(patch)))
	})

	reporter, reports := f.counted(native.bearer(native.name))
	report := fmt.Sprintf(`{"apiVersion":%q,"kind":"InternalMemberCluster","metadata":{"name":%q},"status":{"agentVersion":"v1"}}`,
		clusterv1beta1.GroupVersion, native.name)
	reported := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Namespace: native.namespaceName(), Name: native.name}}
	f.check(reporter.Status().Patch(context.Background(), reported, client.RawPatch(types.ApplyPatchType, []byte(report)),
		client.FieldOwner("muster-agent"), client.ForceOwnership))

	hub := rest.CopyConfig(f.cluster.Config)
	hub.Impersonate.UserName = "system:serviceaccount:" + naming.SystemNamespace + ":fleet-controller"
	asLeader, ofLeader := f.countedBy(rest.CopyConfig(hub))
	asHub, ofHub := f.countedBy(hub)

	requests := f.flood("new-token", "another")
	f.check(asHub.List(context.Background(), &fleet.ClusterRegistrationList{}, client.InNamespace(f.workspace), client.Limit(1)))
	lease := client.ObjectKey{Namespace: naming.SystemNamespace, Name: naming.HubLease}
	f.check(client.IgnoreNotFound(asLeader.Get(context.Background(), lease, &coordinationv1.Lease{})))
	end()
	beatsLevel, requestsLevel := f.level("muster-beats"), f.level("muster-registrations")
	for agent, count := range beats {
		if count.all[beatsLevel] == 0 || len(count.all) != 1 || len(count.refused) > 0 {
			t.Errorf("the beats of %s were answered at %v, of which refused %v; want all at %s and none refused",
				agent, count.all, count.refused, beatsLevel)
		}
	}
	if len(reports.all) != 1 || reports.all[beatsLevel] != 0 {
		t.Errorf("a report of Muster's agent was answered at %v, and heartbeats at %s", reports.all, beatsLevel)
	}
	for _, count := range requests {
		if count.all[requestsLevel] == 0 || len(count.all) != 1 {
			t.Errorf("the requests were answered at %v, want all at %s", count.all, requestsLevel)
		}
	}
	if len(ofHub.all) != 1 || ofHub.all[f.level("muster-hub")] == 0 {
		t.Errorf("what the hub asked was answered at %v", ofHub.all)
	}
	if len(ofLeader.all) != 1 || ofLeader.all[f.level("leader-election")] == 0 {
		t.Errorf("the Lease of the leader was answered at %v", ofLeader.all)
	}
	for _, m := range members.members {
		if why := alarms.of(m.name); why != "" {
			t.Errorf("%s was shown as not healthy: %s", m.name, why)
		}
	}
	if why := alarms.of(f.workspace + "/" + legacy.answer["clusterName"]); why != "" {
		t.Errorf("the Cluster was shown as not ready: %s", why)
	}
}

// flood creates requests with the tokens of some holders, 150 at a time each.
func (f fixture) flood(tokens ...string) []*answers {
	f.t.Helper()
	const connections, each = 150, 8
	var counts []*answers
	flooding := sync.WaitGroup{}
	for _, token := range tokens {
		asking, count := f.counted(f.values(token)["token"])
		counts = append(counts, count)
		for i := range connections {
			flooding.Go(func() {
				for range each {
					r := &fleet.ClusterRegistration{
						ObjectMeta: metav1.ObjectMeta{
							GenerateName: "flood-", Namespace: f.workspace, Labels: map[string]string{fleet.LabelRegistrationToken: token},
						},
						Spec: fleet.ClusterRegistrationSpec{ClientID: fmt.Sprintf("%s-%d", token, i%4), ClientRandom: fmt.Sprint(i)},
					}
					_ = asking.Create(context.Background(), r) // whether it is refused is counted
				}
			})
		}
	}
	flooding.Wait()
	return counts
}

// level is the UID of a priority level.
func (f fixture) level(name string) string {
	f.t.Helper()
	var level flowcontrolv1.PriorityLevelConfiguration
	f.check(f.get(&level, "", name))
	return string(level.UID)
}
