package hub_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/cli"
	helmkube "helm.sh/helm/v4/pkg/kube"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// hosted is an agent on a host, as both parts of its chart install it.
type hosted struct {
	// on is the member, host the cluster of the Deployment.
	on, host fixture
	// namespace is the agent's on the member, hostNamespace the one on the host.
	namespace, hostNamespace string
	// account is the agent's on the member, deployment the name of the Deployment on the host.
	account, deployment string
	// volume is the directory of the kubeconfig.
	volume  string
	process *testkube.Program
}

const hostedRelease = "edge"

// helmInstall installs a chart from the sources, until the test ends.
func (f fixture) helmInstall(chartName, release, namespace string, values map[string]any) {
	f.t.Helper()
	settings := cli.New()
	settings.KubeConfig = filepath.Join(f.cluster.Dir, "kubeconfig")
	settings.SetNamespace(namespace)
	configuration := action.NewConfiguration()
	f.check(configuration.Init(settings.RESTClientGetter(), namespace, "secret"))
	chart, err := loader.LoadDir("../../../charts/" + chartName)
	f.check(err)
	install := action.NewInstall(configuration)
	install.ReleaseName, install.Namespace, install.WaitStrategy = release, namespace, helmkube.HookOnlyStrategy
	_, err = install.Run(chart, values)
	f.check(err)
	f.t.Cleanup(func() {
		remove := action.NewUninstall(configuration)
		remove.WaitStrategy, remove.IgnoreNotFound = helmkube.HookOnlyStrategy, true
		if _, err := remove.Run(release); err != nil {
			f.t.Error(err)
		}
	})
}

// memberAndHost returns the two clusters of a hosted agent.
func (f fixture) memberAndHost() *hosted {
	f.t.Helper()
	member, host := turnApart(f.t, "migrated"), testkube.Start(f.t, "delivered")
	h := &hosted{
		on: fixture{Client: member.Client(f.t), t: f.t, cluster: member}, host: fixture{Client: host.Client(f.t), t: f.t, cluster: host},
	}
	h.namespace, h.hostNamespace = h.on.namespace("agent-"), h.host.namespace("agents-")
	return h
}

// hosted installs both parts of the agent of a Cluster.
func (f fixture) hosted(clientID string) *hosted {
	f.t.Helper()
	h := f.memberAndHost()
	h.account, h.deployment = "fleet-agent", hostedRelease
	_, token := f.token("new-token", "")
	internal := map[string]any{"systemNamespace": h.namespace}
	h.on.helmInstall("fleet-agent", "fleet-agent", h.namespace, map[string]any{
		"apiServerURL": f.cluster.Config.Host, "apiServerCA": string(f.cluster.Config.CAData), "clientID": clientID,
		"token": token["token"], "internal": internal, "hosted": map[string]any{"part": "member"},
	})
	h.host.helmInstall("fleet-agent", hostedRelease, h.hostNamespace, map[string]any{
		"internal": internal, "hosted": map[string]any{"part": "host", "memberKubeconfigSecret": hostedRelease},
	})
	return h
}

// bearer returns a token of the agent's account on the member. It ends with a Secret of the name.
func (h *hosted) bearer(name string) string {
	h.on.t.Helper()
	ctx := context.Background()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name}}
	h.on.check(h.on.Create(ctx, secret))
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: name, UID: secret.UID},
	}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: h.account}}
	h.on.check(h.on.SubResource("token").Create(ctx, account, request))
	return request.Status.Token
}

// give writes the kubeconfig into the Secret of the host, and into the volume as the kubelet does.
func (h *hosted) give(kubeconfig []byte) {
	h.host.t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.hostNamespace, Name: hostedRelease}, Data: map[string][]byte{"kubeconfig": kubeconfig}}
	if h.volume == "" {
		h.volume = h.host.t.TempDir()
		h.host.check(h.host.Create(context.Background(), secret))
	} else {
		h.host.check(h.host.Update(context.Background(), secret))
	}
	h.host.check(os.WriteFile(filepath.Join(h.volume, "kubeconfig"), kubeconfig, 0o600))
}

// run runs the container of the Deployment.
func (h *hosted) run() {
	h.host.t.Helper()
	deployment := &appsv1.Deployment{}
	h.host.check(h.host.get(deployment, h.hostNamespace, h.deployment))
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	if pod.Volumes[0].Secret.SecretName != hostedRelease || *pod.AutomountServiceAccountToken || len(pod.Volumes) != 1 {
		h.host.t.Fatalf("the volumes of the Pod are %+v", pod.Volumes)
	}
	env := []string{"POD_NAME=pod", "HOSTNAME=pod", "POD_NAMESPACE=" + h.hostNamespace, "POD_UID=none"}
	for _, variable := range container.Env {
		if variable.ValueFrom == nil {
			env = append(env, variable.Name+"="+variable.Value)
		}
	}
	var args []string
	for _, argument := range container.Args {
		flag, _, _ := strings.Cut(argument, "=:")
		if flag != argument {
			argument = flag + "=127.0.0.1:0" // any port
		}
		args = append(args, strings.Replace(argument, container.VolumeMounts[0].MountPath, h.volume, 1))
	}
	testkube.Build(h.host.t, "muster-deployer") // in the directory of the agent
	h.process = testkube.RunWith(h.host.t, "muster-agent", env, args...)
}

// untilLogged waits for a number of lines with a text.
func (h *hosted) untilLogged(text string, times int) {
	h.host.t.Helper()
	h.host.eventually("the agent logs "+text, func() error {
		if n := strings.Count(h.process.Log(), text); n < times {
			return fmt.Errorf("it has done so %d times", n)
		}
		return nil
	})
}

// mayOnHost reports a right of the agent's account on the host.
func (h *hosted) mayOnHost(verb, resource, name string) bool {
	h.host.t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   "system:serviceaccount:" + h.hostNamespace + ":" + hostedRelease,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + h.hostNamespace, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: h.hostNamespace, Verb: verb, Resource: resource, Name: name},
	}}
	h.host.check(h.host.Create(context.Background(), review))
	return review.Status.Allowed
}

// TestAHostedAgentDeliversChangesItsKubeconfigAndLeaves has three clusters: a hub, a host and a
// member. It takes the time of three reads of the kubeconfig.
func TestAHostedAgentDeliversChangesItsKubeconfigAndLeaves(t *testing.T) {
	f := newFixture(t)
	h := f.hosted("hosted")
	name := naming.Cluster("hosted")
	h.give(h.on.cluster.Kubeconfig(t, h.bearer("first")))
	h.run()
	f.untilReady(name, "Ready")

	var report clusterv1beta1.InternalMemberCluster
	f.check(f.get(&report, naming.MemberNamespace(f.workspace, name), name))
	for feature, offered := range map[string]bool{
		clusterv1beta1.FeatureHosted: true, clusterv1beta1.FeatureUninstall: true, clusterv1beta1.FeatureManagedAgent: false,
	} {
		if slices.Contains(report.Status.Features, feature) != offered {
			t.Errorf("%s: the agent offers %v", feature, report.Status.Features)
		}
	}
	f.eventually("the hub leaves the agent to the user", func() error {
		var cluster fleet.Cluster
		if err := f.get(&cluster, f.workspace, name); err != nil {
			return err
		}
		if c := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionAgentUpToDate); c == nil || c.Reason != "CannotBeManaged" {
			return fmt.Errorf("the condition is %+v", c)
		}
		return nil
	})
	for _, secret := range []string{hostedRelease, "another", ""} {
		for _, verb := range []string{"get", "list", "watch", "create", "update", "delete"} {
			if h.mayOnHost(verb, "secrets", secret) {
				t.Errorf("on the host, the agent may %s secret %q", verb, secret)
			}
		}
	}

	target := h.on.namespace("target-")
	bundle := f.bundle("app", "defaultNamespace: "+target+configMap+everywhere)
	f.eventually("the Bundle is delivered", func() error { return h.on.get(&corev1.ConfigMap{}, target, f.workspace) })

	h.give([]byte("no kubeconfig"))
	h.untilLogged("key kubeconfig of secret "+h.hostNamespace+"/"+hostedRelease+" of the host is no kubeconfig", 1)
	h.give(h.on.cluster.Kubeconfig(t, h.bearer("second")))
	h.untilLogged("Agent started", 2)
	f.check(h.on.Delete(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "first"}}))
	f.change(bundle, func() {
		bundle.Spec.Resources[0].Content = strings.Replace(bundle.Spec.Resources[0].Content, f.workspace, "changed", 1)
	})
	f.eventually("the change is delivered", func() error { return h.on.get(&corev1.ConfigMap{}, target, "changed") })

	h.leaves(f, name)
	if err := h.on.get(&corev1.ConfigMap{}, target, "changed"); err != nil {
		t.Errorf("the delivery is gone: %v", err)
	}
}

// leaves lets the member leave with its agent.
func (h *hosted) leaves(f fixture, name string) {
	f.t.Helper()
	var record fleet.Cluster
	f.check(f.get(&record, f.workspace, name))
	f.uninstallAgent(&record)
	f.check(f.Delete(context.Background(), &record))
	f.eventually("the Cluster is gone", func() error { return gone(f.get(&fleet.Cluster{}, f.workspace, name)) })
	for _, object := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: naming.AgentSecret}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: naming.AgentKeySecret}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: naming.HostedAgentConfigMap}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "fleet-agent"}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "fleet-agent-delivery"}},
	} {
		h.on.eventually(fmt.Sprintf("%T %s is gone", object, object.GetName()), func() error {
			return gone(h.on.get(object, object.GetNamespace(), object.GetName()))
		})
	}
	f.check(h.host.get(&appsv1.Deployment{}, h.hostNamespace, hostedRelease))
	f.eventually("an Event names the part on the host", func() error {
		var events eventsv1.EventList
		if err := f.List(context.Background(), &events); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == "AgentStays" && e.Regarding.UID == record.UID && strings.Contains(e.Note, "Its Deployment stays on its host") {
				return nil
			}
		}
		return fmt.Errorf("there is none")
	})
	h.process.Kill()
	h.process.Start() // a new Pod names the cause
	h.untilLogged("if the cluster has left the fleet, uninstall this release on the host", 1)
}
