package hub_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"path/filepath"
	"strings"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/cli"
	helmkube "helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// rancherChart has the objects of Rancher Fleet's chart fleet-agent by their names: all of them
// ordinary, no hook among them.
var rancherChart = map[string]string{
	"Chart.yaml": "apiVersion: v2\nname: fleet-agent\nversion: 0.16.1\nappVersion: 0.16.1\n",
	"values.yaml": `
image: {os: "windows,linux", repository: rancher/fleet-agent, tag: v0.16.1}
apiServerURL: ""
apiServerCA: ""
agentTLSMode: system-store
garbageCollectionInterval: 15m
token: ""
tokenName: ""
clientID: ""
clusterNamespace: ""
systemRegistrationNamespace: cattle-fleet-clusters-system
noProxy: 127.0.0.0/8,10.0.0.0/8
internal: {systemNamespace: cattle-fleet-system, managedReleaseName: fleet-agent}
fleetAgent: {nodeSelector: {}, tolerations: [], hostNetwork: false}
kubectl: {}
global: {cattle: {systemDefaultRegistry: ""}}
debug: false
disableSecurityContext: false
agent: {replicas: 1, reconciler: {workers: {bundledeployment: "50", drift: "50"}}}
leaderElection: {leaseDuration: 30s, retryPeriod: 10s, renewDeadline: 25s}
`,
	"templates/all.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: {name: fleet-agent, namespace: {{ .Release.Namespace }}}
data:
  config: {{ dict "labels" .Values.labels "clientID" .Values.clientID "agentTLSMode" .Values.agentTLSMode | toJson | quote }}
---
apiVersion: v1
kind: Secret
metadata: {name: fleet-agent-bootstrap, namespace: {{ .Release.Namespace }}}
data:
  apiServerURL: {{ b64enc .Values.apiServerURL | quote }}
  apiServerCA: {{ b64enc .Values.apiServerCA | quote }}
  token: {{ b64enc .Values.token | quote }}
  tokenName: {{ b64enc .Values.tokenName | quote }}
  clusterNamespace: {{ b64enc .Values.clusterNamespace | quote }}
  systemRegistrationNamespace: {{ b64enc .Values.systemRegistrationNamespace | quote }}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: fleet-agent, namespace: {{ .Release.Namespace }}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: fleet-agent, namespace: {{ .Release.Namespace }}}
spec:
  replicas: 1
  selector: {matchLabels: {app: fleet-agent}}
  template:
    metadata: {labels: {app: fleet-agent}}
    spec:
      serviceAccountName: fleet-agent
      containers:
      - name: fleet-agent
        image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"
        command: [fleetagent]
        env:
        - {name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
        - {name: CATTLE_ELECTION_LEASE_DURATION, value: {{ .Values.leaderElection.leaseDuration | quote }}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: default-allow-all, namespace: {{ .Release.Namespace }}}
spec: {podSelector: {}, ingress: [{}], egress: [{}], policyTypes: [Ingress, Egress]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: fleet-agent-system-fleet-agent-role}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: ["*"]}
- {nonResourceURLs: ["*"], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: fleet-agent-system-fleet-agent-role-binding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: fleet-agent-system-fleet-agent-role}
subjects: [{kind: ServiceAccount, name: fleet-agent, namespace: {{ .Release.Namespace }}}]
`,
}

// downstream is a cluster of its own on which both charts are installed in turn, with
// Helm as users have it.
type downstream struct {
	*member
	hub           fixture
	configuration *action.Configuration
	ours, theirs  func() *chartv2.Chart
}

func (f fixture) downstream() downstream {
	f.t.Helper()
	cluster := turnApart(f.t, "migrated") // some of what the charts make has no namespace
	on := fixture{Client: cluster.Client(f.t), t: f.t, cluster: cluster}
	d := downstream{member: &member{fixture: on, agentNamespace: on.namespace("agent-")}, hub: f}
	settings := cli.New()
	settings.KubeConfig = filepath.Join(cluster.Dir, "kubeconfig")
	settings.SetNamespace(d.agentNamespace)
	d.configuration = action.NewConfiguration()
	f.check(d.configuration.Init(settings.RESTClientGetter(), d.agentNamespace, "secret"))
	d.ours = func() *chartv2.Chart {
		loaded, err := loader.LoadDir("../../../charts/fleet-agent")
		f.check(err)
		return loaded
	}
	d.theirs = func() *chartv2.Chart {
		var files []*archive.BufferedFile
		for name, text := range rancherChart {
			files = append(files, &archive.BufferedFile{Name: name, Data: []byte(text)})
		}
		loaded, err := loader.LoadFiles(files)
		f.check(err)
		return loaded
	}
	f.uninstallLater(d.configuration)
	return d
}

// uninstallLater takes the agent's release away when the test ends: the next test could not install
// what it has without a namespace.
func (f fixture) uninstallLater(configuration *action.Configuration) {
	f.t.Cleanup(func() {
		remove := action.NewUninstall(configuration)
		remove.WaitStrategy = helmkube.HookOnlyStrategy
		if _, err := remove.Run("fleet-agent"); err != nil {
			f.t.Error(err)
		}
	})
}

// values returns the values of a token in the form of a values.yaml.
func (d downstream) values(token map[string]string, clientID string) map[string]any {
	return map[string]any{
		"apiServerURL": d.hub.cluster.Config.Host, "apiServerCA": string(d.hub.cluster.Config.CAData), "clientID": clientID,
		"token": token["token"], "tokenName": token["tokenName"], "clusterNamespace": token["clusterNamespace"],
		"systemRegistrationNamespace": token["systemRegistrationNamespace"], "internal": map[string]any{"systemNamespace": d.agentNamespace},
	}
}

func (d downstream) install(chart *chartv2.Chart, values map[string]any) {
	d.t.Helper()
	install := action.NewInstall(d.configuration)
	install.ReleaseName, install.Namespace, install.WaitStrategy = "fleet-agent", d.agentNamespace, helmkube.HookOnlyStrategy
	_, err := install.Run(chart, values)
	d.check(err)
}

// upgrade is helm upgrade; with --reuse-values if there are none.
func (d downstream) upgrade(chart *chartv2.Chart, values map[string]any) {
	d.t.Helper()
	up := action.NewUpgrade(d.configuration)
	up.Namespace, up.ReuseValues, up.WaitStrategy = d.agentNamespace, values == nil, helmkube.HookOnlyStrategy
	_, err := up.Run("fleet-agent", chart, values)
	d.check(err)
}

func (d downstream) rollback(revision int) {
	d.t.Helper()
	back := action.NewRollback(d.configuration)
	back.Version, back.WaitStrategy = revision, helmkube.HookOnlyStrategy
	d.check(back.Run("fleet-agent"))
}

// rancherAgent is an agent of Rancher Fleet on a downstream cluster, as its hub knows it.
type rancherAgent struct {
	legacyAgent
	// registered says that it had to register.
	registered bool
}

// startTheirs plays the start of an agent of Rancher Fleet: it goes on with Secret fleet-agent if
// BundleDeployments can be listed with that, else it registers; then it forgets the bootstrap
// Secret and looks at what it is to deploy.
func (d downstream) startTheirs() rancherAgent {
	d.t.Helper()
	ctx := context.Background()
	var a rancherAgent
	var unusable error
	if a.legacyAgent, unusable = d.stored(); unusable != nil {
		d.t.Logf("it registers, because %v", unusable)
		a.legacyAgent, a.registered = d.register(unusable), true
	}
	bootstrap := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: d.agentNamespace, Name: naming.AgentBootstrapSecret}}
	d.check(client.IgnoreNotFound(d.Delete(ctx, bootstrap)))
	var sent fleet.BundleDeploymentList
	d.check(a.legacyAgent.Client.List(ctx, &sent, client.InNamespace(a.answer["deploymentNamespace"])))
	for _, deployment := range sent.Items {
		if strings.HasPrefix(deployment.Name, "fleet-agent") {
			d.t.Errorf("it is sent %s, by which it would replace itself", deployment.Name)
		}
	}
	return a
}

// stored is the agent of the credential that is there, if it is one that such an agent can use.
func (d downstream) stored() (legacyAgent, error) {
	a := legacyAgent{fixture: d.hub, answer: map[string]string{}}
	var secret corev1.Secret
	if err := d.get(&secret, d.agentNamespace, naming.AgentSecret); err != nil {
		return a, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	if err != nil {
		return a, err
	}
	for key, value := range secret.Data {
		a.answer[key] = string(value)
	}
	if a.Client, err = client.New(config, client.Options{Scheme: d.hub.Scheme()}); err != nil {
		return a, err
	}
	return a, a.Client.List(context.Background(), &fleet.BundleDeploymentList{}, client.InNamespace(a.answer["deploymentNamespace"]))
}

// register registers with the bootstrap Secret, and deletes Secret fleet-agent
// before it makes its own.
func (d downstream) register(unusable error) legacyAgent {
	d.t.Helper()
	var bootstrap corev1.Secret
	if err := d.get(&bootstrap, d.agentNamespace, naming.AgentBootstrapSecret); err != nil {
		d.t.Fatalf("it can neither go on (%v) nor register (%v)", unusable, err)
	}
	var configMap corev1.ConfigMap
	d.check(d.get(&configMap, d.agentNamespace, naming.AgentConfigMap))
	var config struct {
		ClientID string `json:"clientID"`
	}
	d.check(json.Unmarshal([]byte(configMap.Data["config"]), &config))
	values := map[string]string{}
	for key, value := range bootstrap.Data {
		values[key] = string(value)
	}
	a := d.hub.legacyJoinAs(values, config.ClientID, rand.Text())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: d.agentNamespace, Name: naming.AgentSecret}}
	d.check(client.IgnoreNotFound(d.Delete(context.Background(), secret.DeepCopy())))
	secret.StringData = map[string]string{
		"kubeconfig": string(d.hub.cluster.Kubeconfig(d.t, a.answer["token"])), "deploymentNamespace": a.answer["deploymentNamespace"],
		"clusterNamespace": a.answer["clusterNamespace"], "clusterName": a.answer["clusterName"],
	}
	d.check(d.Create(context.Background(), secret))
	return a
}
