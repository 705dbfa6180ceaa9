package hub_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	inventory "github.com/muster-fleet/muster/api/inventory/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

var isLabel = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$`)

// attackedMember is a Cluster that the editor creates with some keys, and the agent
// that registers as it.
type attackedMember struct {
	name    string
	marks   marks
	key     credential.AnswerKey
	request fleet.ClusterRegistration
	answer  credential.Answer
}

// keysEach is how many keys an object has at once.
const keysEach = 6

// marks are keys, each with a hostile value.
type marks map[string]string

// marked returns the keys in groups, each with one of the values.
func (e *editor) marked(turn int) []marks {
	var all []marks
	for group := range slices.Chunk(e.keys, keysEach) {
		made := marks{}
		for i, key := range group {
			made[key] = e.hostile.texts[(len(all)*keysEach+i+turn*5)%len(e.hostile.texts)]
		}
		all = append(all, made)
	}
	return all
}

// on sets the keys as annotations, and as labels where the value can be one.
func (m marks) on(o client.Object) {
	annotations, labels := map[string]string{}, map[string]string{}
	for key, value := range m {
		annotations[key] = value
		if isLabel.MatchString(value) {
			labels[key] = value
		}
	}
	o.SetAnnotations(annotations)
	o.SetLabels(labels)
}

// members creates Clusters with all keys, and requests of their agents.
func (e *editor) members(values map[string]string) []*attackedMember {
	e.t.Helper()
	var all []*attackedMember
	for i, set := range append(e.marked(0), e.marked(1)...) {
		all = append(all, &attackedMember{name: fmt.Sprintf("member-%d", i), marks: set, key: answerKey(e.t)})
	}
	inParallel(len(all), func(i int) {
		m := all[i]
		kept := marks{}
		for key, value := range m.marks { // what is refused at creation is tried again as an update
			o := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: e.workspace, Name: m.name}, Spec: fleet.ClusterSpec{ClientID: m.name}}
			marks{key: value}.on(o)
			if e.user.Create(context.Background(), o, client.DryRunAll) == nil {
				kept[key] = value
			}
		}
		o := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: e.workspace, Name: m.name}, Spec: fleet.ClusterSpec{ClientID: m.name}}
		kept.on(o)
		if err := e.user.Create(context.Background(), o); err != nil {
			e.t.Errorf("creating Cluster %s with %v: %v", m.name, kept, err)
		}
		request, err := e.ask(values, e.signed(e.keyOf(m.name), values, m.name, m.key))
		if err != nil {
			e.t.Errorf("asking as %s: %v", m.name, err)
		}
		m.request = request
	})
	return all
}

// spoil writes four more values of each of the member's keys into the Cluster of each
// member that was granted.
func (e *editor) spoil(members []*attackedMember) {
	inParallel(len(members), func(i int) {
		cluster := e.clusterRecord(members[i].name)
		for key := range members[i].marks {
			for j := range 4 {
				text := e.hostile.texts[(i+j*4)%len(e.hostile.texts)]
				annotation := fmt.Sprintf(`"annotations":{%q:%q}`, key, text)
				// The policies refuse some of these, and the API server what no label may be.
				if err := merge(e.user, cluster, fmt.Sprintf(`{"metadata":{%s,"labels":{%q:%q}}}`, annotation, key, text)); err != nil {
					_ = merge(e.user, cluster, fmt.Sprintf(`{"metadata":{%s}}`, annotation))
				}
			}
		}
	})
}

// grantedOf returns the members that have a credential, and reads it.
func (e *editor) grantedOf(members []*attackedMember) []*attackedMember {
	e.t.Helper()
	var granted []*attackedMember
	for _, m := range members {
		if err := e.Get(context.Background(), client.ObjectKeyFromObject(&m.request), &m.request); err != nil || !m.request.Status.Granted {
			continue
		}
		answer, err := m.key.Open(string(m.request.UID), m.request.Status.Answer)
		e.check(err)
		m.answer = answer
		granted = append(granted, m)
	}
	return granted
}

// endsAccess revokes the members, and fails for each that keeps access.
func (e *editor) endsAccess(members []*attackedMember) {
	e.t.Helper()
	for _, m := range members {
		e.check(revoke(e.Client, e.clusterRecord(m.name), `"true"`))
	}
	testkube.Eventually(e.t, "revoked members have no access", func() error {
		var kept []string
		for _, m := range members {
			in := client.InNamespace(m.answer.DeploymentNamespace)
			err := e.fixture.as(m.answer.Token).List(context.Background(), &fleet.BundleDeploymentList{}, in)
			left := gone(e.get(&corev1.Namespace{}, "", m.answer.DeploymentNamespace))
			if err == nil || left != nil {
				kept = append(kept, fmt.Sprintf("Cluster %s with %.300v: listing gives %v, the namespace is %v", m.name, m.marks, err, left))
			}
		}
		if len(kept) > 0 {
			return fmt.Errorf("%d keep it:\n%s", len(kept), strings.Join(kept, "\n"))
		}
		return nil
	})
}

// hubsOwn are the kinds in workspaces that only the hub writes.
var hubsOwn = map[string]bool{"AuditEntry": true, "ResourceBinding": true}

// TestAnEditorOfOneWorkspaceHarmsNoOther has a user with all rights on the hub's kinds in a
// workspace write hostile values into every field of every kind, and into every label and
// annotation of the hub. It takes two minutes: some 900 objects, each of which the hub reads and
// answers before what is outside of the workspace is compared.
func TestAnEditorOfOneWorkspaceHarmsNoOther(t *testing.T) {
	f := newAlone(t, "")
	_, values := f.token("new-token", "")
	attacked := f.neighbour()
	attacked.token("new-token", "")
	other := f.neighbour().importing(nil)
	_, others := other.fixture.token("other-token", "")
	other.granted(others, "other", nil)
	f.eventually("the use of the token is counted", func() error {
		var used fleet.ClusterRegistrationToken
		if err := f.get(&used, other.workspace, "other-token"); err != nil {
			return err
		}
		if used.Status.Registrations != 1 || used.Status.LastUsed == nil {
			return fmt.Errorf("%d uses", used.Status.Registrations)
		}
		return nil
	})
	beside := other.register("beside")
	beside.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	for _, name := range []string{beside.name, naming.ClusterProfile(other.workspace, naming.Cluster("other"))} {
		f.eventually("ClusterProfile "+name+" is there", func() error { return f.get(&inventory.ClusterProfile{}, inventoryNamespace, name) })
	}
	kinds := f.resources()
	workspaces := []string{f.workspace, attacked.workspace}
	names := []string{other.workspace, naming.Cluster("other"), naming.MemberNamespace(other.workspace, naming.Cluster("other")),
		other.workspace + "/" + naming.Cluster("other"), other.clusterID, "other", "other-token", beside.name, naming.SystemNamespace}
	join, all := f.sweeping(names...), attacked.sweeping(names...)
	former := f.former(beside.name, f.workspace, attacked.workspace, other.workspace)
	before := f.untilAtRest(kinds, former, workspaces...)
	t.Logf("%d objects are outside, %d keys, %d kinds", len(before), len(all.keys), len(all.kinds))

	members := join.members(values)
	for _, kind := range all.kinds {
		switch stored := all.attack(kind); {
		case hubsOwn[kind.Kind] && stored > 0:
			t.Errorf("a tenant wrote %d objects of kind %s", stored, kind.Kind)
		case hubsOwn[kind.Kind]:
		case stored == 0:
			refusal, _ := all.refused.Load(kind.Kind)
			t.Errorf("no %s was stored: %v", kind.Kind, refusal)
		default:
			t.Logf("%d objects of kind %s", stored, kind.Kind)
		}
	}
	f.untilAtRest(kinds, former, workspaces...)
	granted := join.grantedOf(members)
	if len(granted) < len(members)/2 {
		t.Errorf("%d of %d members were granted", len(granted), len(members))
	}
	join.spoil(granted)
	after := f.untilAtRest(kinds, former, workspaces...)
	for _, difference := range before.differences(after, workspaces...) {
		t.Error(difference)
	}
	join.endsAccess(granted)

	other.granted(others, "another", nil)
	other.begin()
	other.imported("my-cluster", "Imported")
	if f.hub.Ended() || strings.Contains(strings.ToLower(f.hub.Log()), "panic") {
		t.Errorf("the hub has ended, or panicked:\n%s", f.hub.Log())
	}
}
