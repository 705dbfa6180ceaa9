package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	helmkube "helm.sh/helm/v4/pkg/kube"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	wire "github.com/muster-fleet/muster/bench/rig"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// Programs that do nothing stand for those of the others, of which the test plays what a hub sees.
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
		"Chart.yaml":         "apiVersion: v2\nname: fleet-agent\nversion: 0.16.1\nappVersion: 0.16.1\n",
		"values.yaml":        "image: {repository: rancher/fleet-agent, tag: v0.16.1}\napiServerURL: \"\"\nfleetAgent: {nodeSelector: {}}\n",
		"templates/all.yaml": deploymentOf("fleet-agent", "cattle-fleet-system", "app: fleet-agent", "{{ .Values.image.repository }}:{{ .Values.image.tag }}"),
	}
	kubeFleetChart = map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: member-agent\nversion: 0.3.1\nappVersion: 0.3.1\n",
		"values.yaml": "config: {provider: secret, hubURL: \"\", hubCA: \"\", memberClusterName: sample}\nsecret: {name: hub-kubeconfig-secret, namespace: default}\n" +
			"image: {repository: kubefleet/member-agent, tag: v0.3.1}\nnamespace: fleet-system\n",
		"templates/all.yaml": deploymentOf("member-agent", "{{ .Values.namespace }}", "app.kubernetes.io/name: member-agent, app.kubernetes.io/instance: {{ .Release.Name }}", "{{ .Values.image.repository }}:{{ .Values.image.tag }}"),
	}
)

// their is a cluster on which something of the others is installed.
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
	var buffered []*archive.BufferedFile
	for name, text := range files {
		buffered = append(buffered, &archive.BufferedFile{Name: name, Data: []byte(text)})
	}
	chart, err := loader.LoadFiles(buffered)
	d.check(err)
	install := action.NewInstall(d.helm(chart.Name(), namespace))
	install.ReleaseName, install.Namespace, install.CreateNamespace, install.WaitStrategy = chart.Name(), namespace, true, helmkube.HookOnlyStrategy
	_, err = install.Run(chart, values)
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

// namespaces makes namespaces that may be there.
func (d their) namespaces(names ...string) {
	d.t.Helper()
	for _, name := range names {
		if err := d.Create(d.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil && !apierrors.IsAlreadyExists(err) {
			d.t.Fatal(err)
		}
	}
}

// as is a client of somebody who has a token.
func (d their) as(bearer string) (client.WithWatch, error) {
	config := rest.AnonymousClientConfig(d.cluster.Config)
	config.BearerToken = bearer
	return client.NewWithWatch(config, client.Options{Scheme: d.Scheme(), Mapper: d.RESTMapper()})
}

// plays has an agent of the others beat as long as its Deployment is theirs.
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
				_ = beat(ctx) // it beats again in a moment
			}
		}
	}()
}

func TestAClusterMigratesFromRancherFleetAndBackInOneLineEach(t *testing.T) {
	hub, edge := withPods(t, "cli-init"), withPods(t, "cli-theirs", theirImages...)
	admin := contexts(t, hub, edge)
	admin.runs("init")
	h, d, ctx := their{t, hub, hub.Client(t)}, their{t, edge, edge.Client(t)}, t.Context()

	admin.refused("migrate --from openshift cli-theirs", "say what is changed over from: --from rancher-fleet or --from kubefleet")
	admin.refused("migrate --from rancher-fleet", "say which members change over, by their contexts")
	admin.refused("migrate --from rancher-fleet cli-their", "the kubeconfig has no context cli-their; did you mean cli-theirs?")
	admin.refused("migrate --from rancher-fleet cli-theirs", "cluster cli-theirs has no release fleet-agent in namespace cattle-fleet-system, so there is nothing to change over")

	h.namespaces("ranch")
	values, err := wire.Token(ctx, h, "ranch", "t")
	h.check(err)
	bootstrap, err := h.as(values["token"])
	h.check(err)
	var bearer string
	var agent *wire.RancherAgent
	h.check(wire.Retry(ctx, func() (err error) { // the API server tells of new kinds a moment later
		agent, err = wire.JoinRancher(ctx, func(token string) (client.WithWatch, error) { bearer = token; return h.as(token) }, bootstrap, values, "ranch-1")
		return err
	}))
	record := &fleet.Cluster{}
	h.check(h.Get(ctx, types.NamespacedName{Namespace: "ranch", Name: naming.Cluster("ranch-1")}, record))
	set := map[string]any{"apiServerURL": hub.Config.Host, "apiServerCA": string(hub.Config.CAData), "clientID": "ranch-1", "image": map[string]any{"repository": "mirror/rancher/fleet-agent", "tag": "v0.16.1"}}
	for key, value := range values {
		set[key] = value
	}
	d.install(rancherChart, naming.SystemNamespace, set)
	admin.refused("migrate --from rancher-fleet cli-theirs", "cluster cli-theirs is no member yet: the agent has no credential in Secret cattle-fleet-system/fleet-agent")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.AgentSecret}, StringData: map[string]string{
		"kubeconfig": string(hub.Kubeconfig(t, "not.a.token")), "clusterNamespace": "ranch", "clusterName": "nobody", "deploymentNamespace": naming.MemberNamespace("ranch", record.Name)}}
	d.check(d.Create(ctx, secret))
	admin.refused("migrate --from rancher-fleet cli-theirs", "cluster cli-theirs is Cluster ranch/nobody of the hub at "+hub.Config.Host+", and this hub has none of that name")
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
	admin.runs("migrate --from rancher-fleet --back cli-theirs", title+" has release cattle-fleet-system/fleet-agent, revision 1, of another chart of that name, 0.16.1 already")
	admin.runs("migrate --from rancher-fleet --dry-run cli-theirs", title+" has release cattle-fleet-system/fleet-agent, revision 1, of another chart of that name, 0.16.1, which becomes Muster's 0.1.0")
	admin.refused("join --context cli-theirs --hub-context cli-init -n ranch", "is of another chart of that name", "muster migrate changes over")
	for _, revision := range []string{"2", "3"} {
		admin.runs("migrate --from rancher-fleet cli-theirs", "chart fleet-agent 0.1.0 is installed, revision "+revision, "\nranch/"+record.Name+" Cluster ")
	}
	uid := record.UID
	h.check(h.Get(ctx, client.ObjectKeyFromObject(record), record))
	if up := kube.FindCondition(record.Status.Conditions, fleet.ConditionAgentUpToDate); record.UID != uid || up == nil || up.Reason != "SharedCredential" {
		t.Errorf("the hub says %+v", up)
	}
	admin.runs("migrate --from rancher-fleet --back cli-theirs", "revision 3, of Muster's 0.1.0, which becomes again what it was with revision 1, another chart of that name, 0.16.1", "\nranch/"+record.Name+" Cluster ")
	h.check(h.Get(ctx, client.ObjectKeyFromObject(record), record))
	if up := kube.FindCondition(record.Status.Conditions, fleet.ConditionAgentUpToDate); record.UID != uid || up == nil || up.Reason != reasonForeignAgent {
		t.Errorf("the hub says %+v", up)
	}

	admin.runs("migrate --from rancher-fleet cli-theirs")
	admin.runs("join --context cli-theirs --hub-context cli-init -n ranch --client-id ranch-1", "\nranch/"+record.Name+" Cluster ")
	testkube.Eventually(t, "the agent has a credential of its own", func() error {
		out, _, err := admin.run("migrate", "--from", "rancher-fleet", "--back", "--dry-run", "cli-theirs")
		if err != nil && strings.Contains(err.Error(), "has a credential of its own, which ends") {
			return nil
		}
		return fmt.Errorf("it may go back: %w %s", err, out)
	})
	admin.runs("leave ranch/"+record.Name+" --delete", " gone")
}

func TestAHubAndItsMembersMigrateFromKubeFleetAndBack(t *testing.T) {
	hub, edge := withPods(t, "cli-kubefleet", theirImages...), withPods(t, "cli-theirs", theirImages...)
	admin := contexts(t, hub, edge)
	h, d, ctx := their{t, hub, hub.Client(t)}, their{t, edge, edge.Client(t)}, t.Context()
	admin.refused("migrate --from kubefleet", "there is no Deployment fleet-system/hub-agent on ")

	// What KubeFleet's hub leaves.
	hub.InstallCRDs(t)
	h.namespaces(naming.MemberSystemNamespace)
	h.install(map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: hub-agent\nversion: 0.3.1\n", "templates/all.yaml": deploymentOf("hub-agent", "fleet-system", "app: hub-agent", "kubefleet/hub-agent:v0.3.1"),
	}, naming.MemberSystemNamespace, nil)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: naming.MemberSystemNamespace, Name: "edge-access"}}
	h.check(h.Create(ctx, account))
	token, err := kube.RequestToken(ctx, h.SubResource("token"), account, 24*time.Hour)
	h.check(err)
	record := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"}, Spec: clusterv1beta1.MemberClusterSpec{
		Identity: rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}}
	h.check(h.Create(ctx, record))
	guards := func(name, service string) *admissionv1.ValidatingWebhookConfiguration {
		o := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionv1.ValidatingWebhook{{
			Name: name + ".example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionv1.SideEffectClassNone), TimeoutSeconds: new(int32(1)), FailurePolicy: new(admissionv1.Fail),
			ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: naming.MemberSystemNamespace, Name: service, Path: new("/validate")}},
			Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{"*"}, Rule: admissionv1.Rule{
				APIGroups: []string{"cluster.kubernetes-fleet.io"}, APIVersions: []string{"*"}, Resources: []string{service + "s"}}}},
		}}}
		o.Webhooks[0].Rules[0].Resources = map[bool][]string{true: {"memberclusters"}, false: {"nobodys"}}[service == "fleetwebhook"]
		h.check(h.Create(ctx, o))
		return o
	}
	theirs, others := guards("fleet-validating-webhook-configuration", "fleetwebhook"), guards("fleet-others", "other")
	h.replicas(kubeFleetHub, 1)

	admin.runs("migrate --from kubefleet --dry-run", "KubeFleet's hub agent fleet-system/hub-agent is scaled to 1, with 1 MemberClusters", "ValidatingWebhookConfiguration "+theirs.Name+" leads to it", "would install chart fleet ")
	h.replicas(kubeFleetHub, 1)
	h.install(map[string]string{"Chart.yaml": "apiVersion: v2\nname: fleet\nversion: 0.16.1\n"}, naming.SystemNamespace, nil)
	admin.refused("migrate --from kubefleet", "release fleet in namespace cattle-fleet-system is of another chart of that name")
	h.replicas(kubeFleetHub, 1)
	h.uninstall("fleet", naming.SystemNamespace)
	admin.runs("migrate --from kubefleet", "Deployment fleet-system/hub-agent is stopped", "ValidatingWebhookConfiguration "+theirs.Name+" is deleted", "The hub is up.", "The members stay joined")
	admin.runs("migrate --from kubefleet", "is scaled to 0", "The hub is up.")
	h.replicas(kubeFleetHub, 0)
	if err := h.Get(ctx, client.ObjectKeyFromObject(theirs), theirs); !apierrors.IsNotFound(err) {
		t.Errorf("the webhook that refuses everything: %v", err)
	}
	h.check(h.Get(ctx, client.ObjectKeyFromObject(others), others))

	agent, err := h.as(token)
	h.check(err)
	beat := func(ctx context.Context) error {
		report := &clusterv1beta1.InternalMemberCluster{}
		if err := agent.Get(ctx, types.NamespacedName{Namespace: naming.MemberClusterNamespace("edge"), Name: "edge"}, report); err != nil {
			return err
		}
		now := metav1.Now() // the others know no other field
		report.Status = clusterv1beta1.InternalMemberClusterStatus{AgentStatus: []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: now, Conditions: []metav1.Condition{
			{Type: clusterv1beta1.ConditionJoined, Status: metav1.ConditionTrue, Reason: "InternalMemberClusterJoined", LastTransitionTime: now},
			{Type: clusterv1beta1.ConditionHealthy, Status: metav1.ConditionTrue, Reason: "InternalMemberClusterHealthy", LastTransitionTime: now}}}}}
		return agent.Status().Update(ctx, report)
	}
	edge.InstallCRDs(t)
	d.namespaces(naming.MemberSystemNamespace)
	d.install(kubeFleetChart, naming.MemberSystemNamespace, map[string]any{"config": map[string]any{"hubURL": hub.Config.Host, "hubCA": string(hub.Config.CAData), "memberClusterName": "edge"}, "image": map[string]any{"repository": "kubefleet/member-agent", "tag": "v0.3.1"}})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: memberToken.Namespace, Name: memberToken.Name}, StringData: map[string]string{"token": "not.a.token"}}
	d.check(d.Create(ctx, secret))
	admin.refused("migrate --from kubefleet cli-theirs", "the agent on cluster cli-theirs has no credential that this hub accepts for MemberCluster edge: its hub is at "+hub.Config.Host)
	secret.StringData = map[string]string{"token": token}
	d.check(d.Update(ctx, secret))
	d.plays(memberAgent, "kubefleet/member-agent", beat)
	testkube.Eventually(t, "it is joined", func() error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil || meta.IsStatusConditionTrue(record.Status.Conditions, clusterv1beta1.ConditionJoined) {
			return err
		}
		return fmt.Errorf("not so: %+v", record.Status.Conditions)
	})

	admin.runs("migrate --from kubefleet cli-theirs", "MemberCluster edge has release fleet-system/member-agent, revision 1, of another chart of that name, 0.3.1, which becomes Muster's 0.1.0", "\nedge MemberCluster ")
	definition := kube.Metadata(definitions)
	d.check(d.Get(ctx, client.ObjectKey{Name: "appliedworks.placement.kubernetes-fleet.io"}, definition))
	if definition.Annotations["helm.sh/resource-policy"] != "keep" {
		t.Errorf("Helm may delete the definition of AppliedWorks: %v", definition.Annotations)
	}
	admin.refused("migrate --from kubefleet --back", "KubeFleet's hub does not hear Muster's agent, which 1 members have (edge)")
	admin.runs("migrate --from kubefleet --back cli-theirs", "which becomes again what it was with revision 1", "\nedge MemberCluster ")
	admin.runs("migrate --from kubefleet --back --dry-run", "Deployment cattle-fleet-system/fleet-controller would be scaled to 0, and fleet-system/hub-agent to 1.")
	admin.runs("migrate --from kubefleet --back", "Deployment cattle-fleet-system/fleet-controller is stopped", "KubeFleet's hub agent runs")
	h.replicas(musterHub, 0)
	h.replicas(kubeFleetHub, 1)
	admin.runs("migrate --from kubefleet", "The hub is up.")
	h.replicas(musterHub, 1)
}

// replicas checks how many a Deployment is to have.
func (d their) replicas(name types.NamespacedName, want int32) {
	d.t.Helper()
	deployment := &appsv1.Deployment{}
	d.check(d.Get(d.t.Context(), name, deployment))
	if *deployment.Spec.Replicas != want {
		d.t.Errorf("%s is scaled to %d instead of %d", name, *deployment.Spec.Replicas, want)
	}
}
