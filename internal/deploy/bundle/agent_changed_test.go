package bundle

import (
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

// rancherChart is one of the name of the agent's, with the ClusterRole of the same
// name and other rights.
func (r *rig) rancherChart() *chartv2.Chart {
	r.t.Helper()
	loaded, err := loader.LoadFiles([]*archive.BufferedFile{
		{Name: "Chart.yaml", Data: []byte("apiVersion: v2\nname: fleet-agent\nversion: 0.16.1\nhome: https://fleet.example.com\n")},
		{Name: "templates/role.yaml", Data: []byte(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: fleet-agent-system-fleet-agent-role}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: fleet-agent-system-fleet-agent-role-binding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: fleet-agent-system-fleet-agent-role}
subjects: [{kind: ServiceAccount, name: fleet-agent, namespace: {{ .Release.Namespace }}}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: fleet-agent, namespace: {{ .Release.Namespace }}}
`)},
	})
	r.check(err)
	return loaded
}

// TestAReleaseThatTheUserGaveToTheAgentOfRancherFleetIsNotTakenBack: the agent that is replaced
// runs until the other one has started, and still gets its Bundle.
func TestAReleaseThatTheUserGaveToTheAgentOfRancherFleetIsNotTakenBack(t *testing.T) {
	r := newRigAlone(t)
	u := r.user()
	u.install(map[string]any{
		"apiServerURL": "https://hub.example.com", "token": "t", "tokenName": "n", "clusterNamespace": "clusters",
		"internal": map[string]any{"systemNamespace": r.agent},
	})
	first := r.start()
	r.placeAgent(settings.Agent{}, nil)
	first.stop()
	u.chart = r.rancherChart
	u.upgrade(nil)
	taken := u.revision().Version
	role := &rbacv1.ClusterRole{}
	whole := func() {
		t.Helper()
		r.check(r.kube.Get(t.Context(), client.ObjectKey{Name: "fleet-agent-system-fleet-agent-role"}, role))
		if len(role.Rules) != 1 || role.Rules[0].Verbs[0] != "*" {
			t.Errorf("the role of the other agent has the rules %v", role.Rules)
		}
	}
	whole()

	second := r.start()
	r.setAgent(settings.Agent{Image: "muster-agent:v2"}, nil)
	refused := r.until("fleet-agent-web", fleet.StateErrApplied)
	if message := readyMessage(refused); u.revision().Version != taken ||
		!strings.Contains(message, "of another chart fleet-agent by now, version 0.16.1") {
		t.Errorf("there is revision %d after %d: %s", u.revision().Version, taken, message)
	}
	whole()
	r.check(r.kube.Delete(t.Context(), r.get("fleet-agent-web")))
	r.says(second, "Release removed")
	second.stop()
	whole()
	if last := u.revision(); last.Version != taken || last.Chart.Metadata.Version != "0.16.1" {
		t.Errorf("the release is revision %d of chart %s", last.Version, last.Chart.Metadata.Version)
	}
}
