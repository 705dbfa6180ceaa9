package importer

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/naming"
)

// TestAHubLeavesAnAgentAloneThatAnotherHubHasTakenOver has an old hub return beside the hub
// restored from its backup.
func TestAHubLeavesAnAgentAloneThatAnotherHubHasTakenOver(t *testing.T) {
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web", UID: "1"}}
	account := func(uid types.UID) *corev1.ServiceAccount {
		return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Namespace: membernamespace.OfCluster(cluster).Namespace, Name: naming.MemberServiceAccount, UID: uid,
		}}
	}
	before, same := &fleet.ImportStatus{ClusterID: "here"}, int64(1)
	for name, row := range map[string]struct {
		account  *corev1.ServiceAccount
		found    types.UID
		last     *fleet.ImportStatus
		deployed *int64
		want     bool
	}{
		"it has the credential of another account":         {account("ours"), "theirs", before, &same, true},
		"it has this hub's, from a former address":         {account("ours"), "ours", before, &same, false},
		"it has no readable credential":                    {account("ours"), "", before, &same, false},
		"this hub has never installed an agent":            {account("ours"), "theirs", nil, nil, false},
		"this hub had another cluster":                     {account("ours"), "theirs", &fleet.ImportStatus{ClusterID: "there"}, &same, false},
		"a user takes it back":                             {account("ours"), "theirs", before, new(int64), false},
		"this hub has lost its account, and makes another": {account(""), "theirs", before, &same, false},
	} {
		c := &Controller{Deps: Deps{Deps: controller.Deps{Client: fake.NewClientBuilder().WithObjects(row.account).Build()}}}
		i := installation{cluster: cluster, id: "here", observed: observed{last: row.last, deployed: row.deployed, generation: same}}
		if got, err := c.takenOver(t.Context(), i, &installedAgent{account: row.found}); got != row.want || err != nil {
			t.Errorf("%s: taken over %t, %v, want %t", name, got, err, row.want)
		}
	}
}
