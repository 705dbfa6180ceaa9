package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	helmkube "helm.sh/helm/v4/pkg/kube"
	helm "helm.sh/helm/v4/pkg/release/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	wire "github.com/muster-fleet/muster/bench/rig"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// Idle programs replace the programs of other projects. The test imitates their effects on the
// hub.
var theirImages = []string{"mirror/rancher/fleet-agent=/bin/sleep", "kubefleet/member-agent=/bin/sleep", "kubefleet/hub-agent=/bin/sleep"}

// deploymentOf is a Deployment of theirs, by its selector and image.
func deploymentOf(name, namespace, selector, image string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: %s}
spec:
  replicas: 1
  selector: {matchLabels: {%s}}
  template:
    metadata: {labels: {%s}}
    spec:
      containers:
      - {name: %s, image: "%s", args: ["86400"]}
`, name, namespace, selector, selector, name, image)
}

var (
	rancherChart = map[string]string{
		"Chart.yaml":  "apiVersion: v2\nname: fleet-agent\nversion: 0.16.1\nappVersion: 0.16.1\n",
		"values.yaml": "image: {repository: rancher/fleet-agent, tag: v0.16.1}\napiServerURL: \"\"\nfleetAgent: {nodeSelector: {}}\n",
		"templates/all.yaml": deploymentOf("fleet-agent", "cattle-fleet-system", "app: fleet-agent",
			"{{ .Values.image.repository }}:{{ .Values.image.tag }}"),
	}
	kubeFleetChart = map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: member-agent\nversion: 0.3.1\nappVersion: 0.3.1\n",
		"values.yaml": "config: {provider: secret, hubURL: \"\", hubCA: \"\", memberClusterName: sample}\nsecret: {name: " +
			"hub-kubeconfig-secret, namespace: default}\nimage: {repository: kubefleet/member-agent, tag: v0.3.1}\nnamespace: fleet-system\n",
		"templates/all.yaml": deploymentOf("member-agent", "{{ .Values.namespace }}",
			"app.kubernetes.io/name: member-agent, app.kubernetes.io/instance: {{ .Release.Name }}",
			"{{ .Values.image.repository }}:{{ .Values.image.tag }}"),
	}
)

// their is a cluster with an installation of another project.
type their struct {
	t       *testing.T
	cluster testkube.Cluster
	client.Client
}

func (d their) check(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d their) install(files map[string]string, namespace string, values map[string]any) {
	d.t.Helper()
	d.installBy(true, files, namespace, values)
}

func chartOf(t *testing.T, files map[string]string) *chartv2.Chart {
	t.Helper()
	var buffered []*archive.BufferedFile
	for name, text := range files {
		buffered = append(buffered, &archive.BufferedFile{Name: name, Data: []byte(text)})
	}
	chart, err := loader.LoadFiles(buffered)
	if err != nil {
		t.Fatal(err)
	}
	return chart
}

// installBy installs a chart by server-side apply, or not, as Helm 3 does.
func (d their) installBy(serverSideApply bool, files map[string]string, namespace string, values map[string]any) {
	d.t.Helper()
	chart := chartOf(d.t, files)
	install := action.NewInstall(d.helm(chart.Name(), namespace))
	install.ReleaseName, install.Namespace, install.CreateNamespace, install.WaitStrategy = chart.Name(), namespace, true,
		helmkube.HookOnlyStrategy
	install.ServerSideApply = serverSideApply
	_, err := install.Run(chart, values)
	d.check(err)
}

// upgrade upgrades a release by another chart, as helm upgrade --reset-then-reuse-values
// --force-conflicts does. Helm accepts that flag only after a server-side apply.
func (d their) upgrade(files map[string]string, namespace string) {
	d.t.Helper()
	chart := chartOf(d.t, files)
	configuration := d.helm(chart.Name(), namespace)
	last, err := configuration.Releases.Last(chart.Name())
	d.check(err)
	upgrade := action.NewUpgrade(configuration)
	upgrade.Namespace, upgrade.ResetThenReuseValues, upgrade.WaitStrategy = namespace, true, helmkube.HookOnlyStrategy
	upgrade.ForceConflicts = appliedByServer(last.(*helm.Release))
	_, err = upgrade.Run(chart.Name(), chart, nil)
	d.check(err)
}

func (d their) uninstall(name, namespace string) {
	d.t.Helper()
	remove := action.NewUninstall(d.helm(name, namespace))
	remove.WaitStrategy = helmkube.HookOnlyStrategy
	_, err := remove.Run(name)
	d.check(err)
}

func (d their) helm(name, namespace string) *action.Configuration {
	d.t.Helper()
	kubeconfig := d.cluster.Dir + "/kubeconfig"
	admin := newAccess()
	admin.KubeConfig = &kubeconfig
	helm, err := admin.helm(chartRelease{name, namespace})
	d.check(err)
	return helm.Configuration
}

// namespaces creates missing namespaces.
func (d their) namespaces(names ...string) {
	d.t.Helper()
	for _, name := range names {
		if err := d.Create(d.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil &&
			!apierrors.IsAlreadyExists(err) {
			d.t.Fatal(err)
		}
	}
}

// as returns a client with a token.
func (d their) as(bearer string) (client.WithWatch, error) {
	config := rest.AnonymousClientConfig(d.cluster.Config)
	config.BearerToken = bearer
	return client.NewWithWatch(config, client.Options{Scheme: d.Scheme(), Mapper: d.RESTMapper()})
}

// plays sends heartbeats of another project's agent as long as its Deployment is in place.
func (d their) plays(agent types.NamespacedName, image string, beat func(context.Context) error) {
	d.t.Helper()
	done := make(chan struct{})
	ctx, stop := context.WithCancel(context.Background())
	d.t.Cleanup(func() { stop(); <-done })
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; time.Sleep(500 * time.Millisecond) {
			deployment := &appsv1.Deployment{}
			if d.Get(ctx, agent, deployment) == nil && strings.HasPrefix(deployment.Spec.Template.Spec.Containers[0].Image, image) {
				_ = beat(ctx) // the next heartbeat follows in a moment
			}
		}
	}()
}

// hasTheirAccount checks that an agent uses the ServiceAccount of its chart, without a name of
// its own.
func (d their) hasTheirAccount(agent types.NamespacedName) {
	d.t.Helper()
	deployment := &appsv1.Deployment{}
	d.check(d.Get(d.t.Context(), agent, deployment))
	if account := deployment.Spec.Template.Spec.ServiceAccountName; account != "" {
		d.t.Errorf("their agent, whose chart names no account, is to run with %s, which is gone with Muster's chart", account)
	}
}

func TestAClusterMigratesFromRancherFleetAndBackInOneLineEach(t *testing.T) {
	t.Parallel()
	hub, edge := withPods(t, "cli-ranch"), withPods(t, "cli-theirs", theirImages...)
	admin := contexts(t, hub, edge)
	admin.runs("init")
	h, d, ctx := their{t, hub, hub.Client(t)}, their{t, edge, edge.Client(t)}, t.Context()

	admin.refused("migrate --from openshift cli-theirs", "the system to replace is missing: use --from rancher-fleet or --from kubefleet")
	admin.refused("migrate --from rancher-fleet", "say which members change over, by their contexts")
	admin.refused("migrate --from rancher-fleet cli-their", "the kubeconfig has no context cli-their; did you mean cli-theirs?")
	admin.refused("migrate --from rancher-fleet cli-theirs",
		"cluster cli-theirs has no release fleet-agent in namespace cattle-fleet-system, so there is no agent to migrate")

	h.namespaces("ranch")
	values, err := wire.Token(ctx, h, "ranch", "t")
	h.check(err)
	bootstrap, err := h.as(values["token"])
	h.check(err)
	var bearer string
	var agent *wire.RancherAgent
	h.check(wire.Retry(ctx, func() (err error) { // the API server tells of new kinds a moment later
		agent, err = wire.JoinRancher(ctx, func(token string) (client.WithWatch, error) { bearer = token; return h.as(token) },
			bootstrap, values, "ranch-1")
		return err
	}))
	record := &fleet.Cluster{}
	h.check(h.Get(ctx, types.NamespacedName{Namespace: "ranch", Name: naming.Cluster("ranch-1")}, record))
	set := map[string]any{
		"apiServerURL": hub.Config.Host, "apiServerCA": string(hub.Config.CAData), "clientID": "ranch-1", "image": map[string]any{
			"repository": "mirror/rancher/fleet-agent", "tag": "v0.16.1",
		},
	}
	for key, value := range values {
		set[key] = value
	}
	d.installBy(false, rancherChart, naming.SystemNamespace, set)
	admin.refused("migrate --from rancher-fleet cli-theirs",
		"cluster cli-theirs is no member yet: the agent has no credential in Secret cattle-fleet-system/fleet-agent")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.AgentSecret},
		StringData: map[string]string{
			"kubeconfig": string(hub.Kubeconfig(t, "not.a.token")), "clusterNamespace": "ranch", "clusterName": "nobody",
			"deploymentNamespace": naming.MemberNamespace("ranch", record.Name)}}
	d.check(d.Create(ctx, secret))
	admin.refused("migrate --from rancher-fleet cli-theirs",
		"cluster cli-theirs is Cluster ranch/nobody of the hub at "+hub.Config.Host+", and this hub has none of that name")
	change := func(key, value string) {
		t.Helper()
		secret.StringData = map[string]string{key: value}
		d.check(d.Update(ctx, secret))
	}
	change("clusterName", record.Name)
	admin.refused("migrate --from rancher-fleet cli-theirs", "has no credential that this hub accepts for Cluster ranch/"+record.Name)
	change("kubeconfig", string(hub.Kubeconfig(t, values["token"]))) // the hub knows it, as another's
	admin.refused("migrate --from rancher-fleet cli-theirs", "has no credential that this hub accepts for Cluster ranch/"+record.Name)
	change("kubeconfig", string(hub.Kubeconfig(t, bearer)))
	d.plays(clusterAgent, "mirror/rancher/fleet-agent", agent.Beat)
	admin.untilReady("ranch/" + record.Name)

	title := "Cluster ranch/" + record.Name
	admin.runs("migrate --from rancher-fleet --back cli-theirs",
		title+" has release cattle-fleet-system/fleet-agent, revision 1, of another chart of that name, 0.16.1 already")
	admin.runs("migrate --from rancher-fleet --dry-run cli-theirs",
		title+" has release cattle-fleet-system/fleet-agent, revision 1, of another chart of that name, 0.16.1, which becomes Muster's 0.1.0")
	admin.refused("join --context cli-theirs --hub-context cli-ranch -n ranch", "is of another chart of that name",
		"docs/migration.md says how to change over, and muster migrate does it")
	for _, revision := range []string{"2", "3"} {
		admin.runs("migrate --from rancher-fleet cli-theirs", "chart fleet-agent 0.1.0 is installed, revision "+revision,
			"\nranch/"+record.Name+" Cluster ")
	}
	if has, err := d.helm("fleet-agent", naming.SystemNamespace).Releases.Last("fleet-agent"); err != nil {
		t.Error(err)
	} else if image, set := has.(*helm.Release).Config["image"]; set {
		t.Errorf("an upgrade by their chart would run %v", image)
	}
	uid := record.UID
	h.check(h.Get(ctx, client.ObjectKeyFromObject(record), record))
	if up := kube.FindCondition(record.Status.Conditions, fleet.ConditionAgentUpToDate); record.UID != uid || up == nil ||
		up.Reason != "SharedCredential" {
		t.Errorf("the hub says %+v", up)
	}
	admin.runs("migrate --from rancher-fleet --back cli-theirs",
		"revision 3, of Muster's 0.1.0, which becomes again what it was with revision 1, another chart of that name, 0.16.1",
		"\nranch/"+record.Name+" Cluster ",
		"What Muster's agent had stays, should it come back; to be rid of it: kubectl --context cli-theirs -n cattle-fleet-system delete "+
			"secret/fleet-agent-key configmap/muster-hub-term\n")
	d.hasTheirAccount(clusterAgent)
	h.check(h.Get(ctx, client.ObjectKeyFromObject(record), record))
	if up := kube.FindCondition(record.Status.Conditions, fleet.ConditionAgentUpToDate); record.UID != uid || up == nil ||
		up.Reason != "ForeignAgent" {
		t.Errorf("the hub says %+v", up)
	}

	admin.runs("migrate --from rancher-fleet cli-theirs")
	admin.runs("join --context cli-theirs --hub-context cli-ranch -n ranch --client-id ranch-1", "\nranch/"+record.Name+" Cluster ")
	testkube.Eventually(t, "the agent has a credential of its own", func() error {
		out, _, err := admin.run("migrate", "--from", "rancher-fleet", "--back", "--dry-run", "cli-theirs")
		if err != nil && strings.Contains(err.Error(), "has a credential of its own, which ends") {
			return nil
		}
		return fmt.Errorf("it may go back: %w %s", err, out)
	})
	admin.runs("leave ranch/"+record.Name+" --delete", " gone")

	d.upgrade(rancherChart, naming.SystemNamespace)
	theirs := &appsv1.Deployment{}
	d.check(d.Get(ctx, clusterAgent, theirs))
	if image := theirs.Spec.Template.Spec.Containers[0].Image; image != "rancher/fleet-agent:v0.16.1" {
		t.Errorf("after an upgrade by their chart, the agent runs %s", image)
	}
}

func TestTheImageOfOneChartIsNotLeftToTheOther(t *testing.T) {
	image := func(repository, tag string) map[string]any {
		return map[string]any{"repository": repository, "tag": tag}
	}
	ours := &chartv2.Chart{Metadata: &chartv2.Metadata{Home: "https://ours"}, Values: map[string]any{"image": image("muster-agent", "")}}
	theirs := &chartv2.Chart{Metadata: &chartv2.Metadata{Home: "https://theirs"}}
	for name, row := range map[string]struct {
		chart     *chartv2.Chart
		has, want map[string]any
	}{
		"theirs, from a mirror": {theirs, map[string]any{"token": "t", "image": image("mirror/agent", "v1")},
			map[string]any{"token": "t"}},
		"theirs, with what is no image's name": {theirs, map[string]any{"image": map[string]any{"tag": "v1", "os": "linux"}}, map[string]any{
			"image": map[string]any{"os": "linux"},
		}},
		"theirs, with no image":        {theirs, map[string]any{"token": "t"}, map[string]any{"token": "t"}},
		"theirs, with no value at all": {theirs, nil, nil},
		"Muster's, from a mirror": {ours, map[string]any{"image": image("mirror/muster-agent", "v2")}, map[string]any{
			"image": image("mirror/muster-agent", "v2"),
		}},
		"Muster's, with the defaults as values": {ours, map[string]any{"image": image("muster-agent", "")}, map[string]any{}},
		"Muster's, with another tag of its image": {ours, map[string]any{"image": image("muster-agent", "v2")}, map[string]any{
			"image": image("muster-agent", "v2"),
		}},
	} {
		before := fmt.Sprint(row.has)
		if diff := cmp.Diff(row.want, goesOnWith(&helm.Release{Chart: row.chart, Config: row.has}, ours)); diff != "" ||
			fmt.Sprint(row.has) != before {
			t.Errorf("%s, which is now %v (-want +got):\n%s", name, row.has, diff)
		}
	}
}
