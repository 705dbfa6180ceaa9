package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// elsewhere is the same hub and second cluster, seen from another workspace.
func (i importing) elsewhere() importing {
	i.t.Helper()
	i.workspace = i.namespace("clusters-")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "agent-"}}
	i.check(i.remote.Create(context.Background(), namespace))
	i.agentNamespace = namespace.Name
	return i
}

// TestAClaimToAClusterBlocksNobodysImport plays three attackers who know the UID of a cluster that
// is not theirs. The first holds a token of another workspace. The second, in another workspace,
// has an API server with the cluster's UID. The third is an agent of Rancher Fleet, confined by no
// policy, that writes the UID into its Cluster's status.
func TestAClaimToAClusterBlocksNobodysImport(t *testing.T) {
	i := newImporting(t, nil)
	holder := i.elsewhere()
	_, values := holder.fixture.token("new-token", "")
	holder.legacyJoin(values, i.clusterID)

	server := i.elsewhere()
	server.down = testkube.Start(t, "downstream").Disguise(t, i.clusterID, nil)
	server.begin()
	if is := server.imported("my-cluster", "Imported"); is.Status.Import.ClusterID != i.clusterID {
		t.Errorf("it was imported as %s", is.Status.Import.ClusterID)
	}

	_, values = i.fixture.token("new-token", "")
	legacy := i.legacyJoin(values, "legacy")
	i.eventually("the agent beats", func() error { return legacy.beat(time.Now()) })
	forger := i.untilReady(naming.Cluster("legacy"), "Ready")
	i.change(&forger, func() { forger.Spec.KubeConfigSecret = "missing" })
	i.imported(forger.Name, "SecretMissing")
	forged := fmt.Sprintf(`{"status":{"import":{"clusterID":%q}}}`, i.clusterID)
	i.check(i.Status().Patch(context.Background(), &forger, client.RawPatch("application/merge-patch+json", []byte(forged))))

	i.begin()
	i.imported("my-cluster", "Imported")
	i.runAgent()
	i.untilReady("my-cluster", "Ready")

	// Now an agent is there, whose credential proves whose the cluster is.
	late := i.elsewhere()
	late.agentNamespace = i.agentNamespace
	late.begin()
	refused := late.imported("my-cluster", "AlreadyRegistered")
	if message := kube.FindCondition(refused.Status.Conditions, fleet.ConditionImported).Message; !strings.Contains(message,
		"Cluster "+i.workspace+"/my-cluster") {
		t.Errorf("the message does not name the record: %q", message)
	}
	far := i.elsewhere()
	far.begin()
	far.imported("my-cluster", "AlreadyRegistered")
}
