package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/naming"
)

// revisionOf returns a revision of Muster's hub chart, or of the other chart of that name.
func revisionOf(t *testing.T, number int, ours bool, status common.Status) *helm.Release {
	t.Helper()
	chart, err := inMemory(t).load()
	if err != nil {
		t.Fatal(err)
	}
	if !ours {
		chart = &chartv2.Chart{Metadata: &chartv2.Metadata{Name: "fleet", Home: "https://theirs", Version: "0.16.1"}}
	}
	return &helm.Release{
		Name: "fleet", Namespace: naming.SystemNamespace, Version: number, Chart: chart, Info: &helm.Info{
			Status: status, LastDeployed: time.Now(),
		},
	}
}

func TestTheWayBackIsGoneOnWithWhenItFailed(t *testing.T) {
	const ours, theirs = true, false
	for name, row := range map[string]struct {
		revisions []*helm.Release
		want      string
	}{
		"it went back": {
			[]*helm.Release{revisionOf(t, 1, theirs, common.StatusSuperseded), revisionOf(t, 2, ours, common.StatusSuperseded),
				revisionOf(t, 3, theirs, common.StatusDeployed)}, " already",
		},
		"the rollback failed": {[]*helm.Release{revisionOf(t, 1, theirs, common.StatusSuperseded),
			revisionOf(t, 2, ours, common.StatusSuperseded), revisionOf(t, 3, theirs, common.StatusFailed)},
			"becomes again what it was with revision 1"},
		"the rollback was killed": {[]*helm.Release{revisionOf(t, 1, theirs, common.StatusDeployed), revisionOf(t, 2, ours, common.StatusFailed),
			revisionOf(t, 3, theirs, common.StatusPendingRollback)},
			"becomes again what it was with revision 1"},
		"it is Muster's": {
			[]*helm.Release{revisionOf(t, 1, theirs, common.StatusSuperseded), revisionOf(t, 2, ours, common.StatusDeployed)},
			"becomes again what it was with revision 1",
		},
	} {
		m := &migrator{back: true}
		if change, err := m.plan(&migratedAgent{helm: inMemory(t), revisions: row.revisions}); err != nil ||
			!strings.Contains(change.says, row.want) {
			t.Errorf("%s: %v, %q", name, err, change.says)
		}
	}
}

func TestARollbackWaitsForWhoeverChangesTheRelease(t *testing.T) {
	on := inMemory(t)
	for _, r := range []*helm.Release{revisionOf(t, 1, false, common.StatusSuperseded), revisionOf(t, 2, true, common.StatusPendingUpgrade)} {
		if err := on.Releases.Create(r); err != nil {
			t.Fatal(err)
		}
	}
	ended, goesOn := revisionOf(t, 2, true, common.StatusDeployed), make(chan error)
	go func() { goesOn <- on.rollBack(t.Context(), 1) }()
	select {
	case err := <-goesOn:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(2 * lookEvery):
	}
	if err := on.Releases.Update(ended); err != nil {
		t.Fatal(err)
	}
	if err := <-goesOn; err != nil {
		t.Error(err)
	}
	if revisions, err := on.history(); err != nil || len(revisions) != 3 || revisions[2].Info.Status != common.StatusDeployed ||
		revisions[2].Info.RollbackRevision != 1 {
		t.Errorf("the release is %+v, %v", revisions, err)
	}
}

func TestTheHubSaysWhoseAnAgentIsThatItMayNotManage(t *testing.T) {
	h := newAccess()
	for name, row := range map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"Rancher Fleet's":                    {map[string]string{"muster/agent": "legacy"}, false},
		"Muster's in its place":              {map[string]string{"muster/agent": "legacy", "muster/acting-agent": "native"}, true},
		"Rancher Fleet's in its place again": {map[string]string{"muster/agent": "legacy", "muster/acting-agent": "legacy"}, false},
		"Muster's":                           {map[string]string{"muster/agent": "native"}, true},
	} {
		for _, reason := range []string{"SwitchedOff", "NotManaged"} {
			record := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ranch", Name: "edge"}}
			record.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionAgentUpToDate, Status: corev1.ConditionFalse, Reason: reason}}
			account := &corev1.ServiceAccount{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: membernamespace.OfCluster(record).Namespace, Name: naming.MemberServiceAccount, Annotations: row.annotations,
				},
			}
			hub := &checked{access: h, Client: fake.NewClientBuilder().WithScheme(h.scheme).WithObjects(account).Build()}
			if got, err := hub.takesForOurs(t.Context(), record); err != nil || got != row.want {
				t.Errorf("%s, %s: %v, %v", name, reason, got, err)
			}
		}
	}
}

func TestAHubIsNotStoppedWhileClustersAreItsMembers(t *testing.T) {
	h := newAccess()
	cluster := func(workspace, name string, joined bool) *fleet.Cluster {
		c := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: name}}
		if joined {
			c.Status.Agent.LastSeen = metav1.Now()
		}
		return c
	}
	for name, row := range map[string]struct {
		has  []client.Object
		want string
	}{
		"it has none":          {nil, ""},
		"its own is one":       {[]client.Object{cluster("fleet-local", localCluster, true)}, ""},
		"one has never joined": {[]client.Object{cluster("clusters", "web", false)}, ""},
		"two have joined": {
			[]client.Object{cluster("fleet-local", localCluster, true), cluster("clusters", "web", true), cluster("clusters", "db", true)},
			"and 2 have joined this hub (clusters/db, clusters/web)",
		},
	} {
		hub := &checked{access: h, Client: fake.NewClientBuilder().WithScheme(h.scheme).WithObjects(row.has...).Build()}
		if err := hub.nobodyIsLeft(t.Context()); (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatTheAgentLeavesIsNamedIfItIsThere(t *testing.T) {
	h := newAccess()
	named := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	c := &checked{access: h, Client: fake.NewClientBuilder().WithScheme(h.scheme).WithObjects(
		&corev1.Secret{ObjectMeta: named("fleet-system", naming.AgentKeySecret)}, &corev1.Secret{
			ObjectMeta: named("fleet-system", naming.MemberAgentCredentialSecret),
		},
		&corev1.ConfigMap{ObjectMeta: named("fleet-system", naming.ObeyedTermConfigMap)},
		&corev1.ConfigMap{ObjectMeta: named("fleet-system", naming.LearnedHubConfigMap)}, &corev1.Secret{
			ObjectMeta: named("fleet-system", naming.AgentSecret),
		},
		&corev1.Secret{ObjectMeta: named("cattle-fleet-system", naming.AgentKeySecret)}).Build()}
	for namespace, want := range map[string][]string{
		"fleet-system": {"secret/fleet-agent-key", "secret/member-agent-credential", "configmap/member-agent-hub",
			"configmap/muster-hub-term"},
		"cattle-fleet-system": {"secret/fleet-agent-key"},
		"default":             nil,
	} {
		got, err := c.leftOf(t.Context(), namespace)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("in namespace %s: %v (-want +got):\n%s", namespace, err, diff)
		}
	}
}
