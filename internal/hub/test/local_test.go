package hub_test

import (
	"fmt"
	"testing"
)

func TestTheHubIsAMemberOfItsOwnFleet(t *testing.T) {
	f := newAlone(t, "")
	m := &member{fixture: f, agentNamespace: f.namespace("agent-")}
	f.cluster.InstallTemplate(t, "fleet/templates/bootstrap.yaml")
	f.configure(fmt.Sprintf(`{"bootstrap":{"namespace":%q,"agentNamespace":%q}}`, f.workspace, m.agentNamespace))
	i := importing{fixture: f, down: f.cluster, remote: f.Client, agentNamespace: m.agentNamespace}
	i.imported("local", "Imported")
	m.start()
	cluster := f.untilReady("local", "Ready")
	if cluster.Labels["name"] != "local" || cluster.Status.Import.APIServerURL != f.cluster.Config.Host {
		t.Errorf("the local cluster is %v and was sent to %s", cluster.Labels, cluster.Status.Import.APIServerURL)
	}
}
