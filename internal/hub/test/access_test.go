package hub_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	inventory "github.com/muster-fleet/muster/api/inventory/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// toolNamespaces are those that the admission policy of the tests knows.
var toolNamespaces = map[string]string{"argocd": "argocd", "flux": "flux-system", "inventory": "profile-readers"}

// shareWith turns tools on for workspaces.
func (f fixture) shareWith(workspaces string, namespaces map[string]string) {
	f.t.Helper()
	access := map[string]any{"workspaces": []string{workspaces}}
	for tool, namespace := range namespaces {
		err := f.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		f.check(client.IgnoreAlreadyExists(err))
		access[tool+"Namespace"] = namespace
	}
	text, err := json.Marshal(map[string]any{"importLoopback": true, "access": access})
	f.check(err)
	f.configure(string(text))
}

// shared waits for the Secret of a tool.
func (f fixture) shared(tool, workspace, name string, also ...func(*corev1.Secret) error) *corev1.Secret {
	f.t.Helper()
	secret := &corev1.Secret{}
	f.eventually(tool+" has the Secret of "+name, func() error {
		if err := f.get(secret, toolNamespaces[tool], naming.AccessSecret(tool, workspace, name)); err != nil {
			return err
		}
		for _, check := range also {
			if err := check(secret); err != nil {
				return err
			}
		}
		return nil
	})
	return secret
}

func (f fixture) notShared(tool, workspace, name string) {
	f.t.Helper()
	f.eventually(tool+" has no Secret of "+name, func() error {
		if err := f.get(&corev1.Secret{}, toolNamespaces[tool], naming.AccessSecret(tool, workspace, name)); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
}

// consentTo lets tools use a kubeconfig Secret.
func (f fixture) consentTo(secret client.Object, tools string) {
	f.t.Helper()
	f.check(merge(f, secret, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, fleet.AnnotationAccessFor, tools)))
}

// providers waits until the access providers of a profile are as wanted.
func (f fixture) providers(profile, want string) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("the access providers of %s are %q", profile, want), func() error {
		var p inventory.ClusterProfile
		if err := f.get(&p, inventoryNamespace, profile); err != nil {
			return err
		}
		var got string
		for _, provider := range p.Status.AccessProviders {
			var cluster clientcmdv1.Cluster
			f.check(json.Unmarshal(provider.Cluster.Raw, &cluster))
			var secret struct{ Namespace, Name string }
			f.check(json.Unmarshal(cluster.Extensions[0].Extension.Raw, &secret))
			got += provider.Name + " of " + secret.Namespace + "/" + secret.Name
		}
		if got != want {
			return fmt.Errorf("they are %q", got)
		}
		return nil
	})
}

// withheld waits for an Event on a Cluster.
func (f fixture) withheld(name, reason, says string) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("an Event on %s has the reason %s and says %q", name, reason, says), func() error {
		var list eventsv1.EventList
		if err := f.List(context.Background(), &list, client.InNamespace(f.workspace)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Regarding.Name == name && e.Reason == reason && strings.Contains(e.Note, says) {
				return nil
			}
		}
		return errors.New("there is none")
	})
}

// secretWith returns a kubeconfig Secret with annotations.
func (i importing) secretWith(name string, kubeconfig []byte, annotations map[string]string) *corev1.Secret {
	secret := i.secret(name, kubeconfig)
	secret.Annotations = annotations
	return secret
}

// quotesNoToken looks for the credential in Events, and in the metadata of the Secrets.
func (i importing) quotesNoToken() {
	i.t.Helper()
	var events eventsv1.EventList
	i.check(i.List(context.Background(), &events))
	for _, e := range events.Items {
		if strings.Contains(e.Note, i.token) {
			i.t.Errorf("an Event quotes the kubeconfig: %s", e.Reason)
		}
	}
	var secrets metav1.PartialObjectMetadataList
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	i.check(i.List(context.Background(), &secrets, client.HasLabels{fleet.LabelAccess}))
	for _, secret := range secrets.Items {
		if text := fmt.Sprint(secret.Labels, secret.Annotations); strings.Contains(text, i.token) {
			i.t.Errorf("the metadata of Secret %s quote the kubeconfig", secret.Name)
		}
	}
}

// TestToolsReachAMemberWhileItsOwnerConsents goes through the life of the Secrets of one member,
// and each end of it.
func TestToolsReachAMemberWhileItsOwnerConsents(t *testing.T) {
	f := newAlone(t, "")
	f.shareWith("*", toolNamespaces)
	i := f.importing(nil)
	cluster := i.begin()
	source := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "my-cluster-kubeconfig"}}
	profile := naming.ClusterProfile(f.workspace, "my-cluster")
	f.providers(profile, "")
	f.consentTo(source, "argocd, flux, inventory")

	reached, err := clientcmd.RESTConfigFromKubeConfig(f.shared("flux", f.workspace, "my-cluster").Data["value"])
	f.check(err)
	member, err := client.New(reached, client.Options{})
	f.check(err)
	f.check(member.Get(context.Background(), client.ObjectKey{Name: i.agentNamespace}, &corev1.Namespace{}))
	i.seesArgoCD(cluster)
	f.providers(profile, "kubeconfig-secretreader of profile-readers/"+naming.AccessSecret("inventory", f.workspace, "my-cluster"))

	before := f.shared("flux", f.workspace, "my-cluster", relabelled)
	f.consentTo(source, "flux,inventory")
	f.notShared("argocd", f.workspace, "my-cluster")
	if after := f.shared("flux", f.workspace, "my-cluster"); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the Secret of Flux was written without a change: %v", after.ManagedFields)
	}
	f.check(merge(f, cluster, `{"metadata":{"annotations":{"muster/revoked":"true"}}}`))
	f.notShared("flux", f.workspace, "my-cluster")
	f.notShared("inventory", f.workspace, "my-cluster")
	f.providers(profile, "")
	f.check(merge(f, cluster, `{"metadata":{"annotations":{"muster/revoked":null}}}`))
	f.shared("flux", f.workspace, "my-cluster")

	off := maps.Clone(toolNamespaces)
	delete(off, "flux")
	f.shareWith("*", off)
	f.notShared("flux", f.workspace, "my-cluster")
	f.shared("inventory", f.workspace, "my-cluster")
	f.shareWith("*", toolNamespaces)
	f.shared("flux", f.workspace, "my-cluster")
	f.check(f.Delete(context.Background(), source))
	f.notShared("flux", f.workspace, "my-cluster")
	f.notShared("inventory", f.workspace, "my-cluster")
	i.sharesAMemberCluster()
}

// relabelled checks that a Secret has the changed labels of the member.
func relabelled(s *corev1.Secret) error {
	if s.Labels["env"] != "prod" || s.Labels["demo"] != "" {
		return fmt.Errorf("its labels are %v", s.Labels)
	}
	return nil
}

// seesArgoCD checks the cluster Secret after a change of the member's labels.
func (i importing) seesArgoCD(cluster *fleet.Cluster) {
	i.t.Helper()
	i.check(merge(i, cluster, `{"metadata":{"labels":{"env":"prod","demo":null}}}`))
	secret := i.shared("argocd", i.workspace, "my-cluster", relabelled)
	if secret.Labels["argocd.argoproj.io/secret-type"] != "cluster" || string(secret.Data["server"]) != i.down.Config.Host ||
		string(secret.Data["name"]) != i.workspace+".my-cluster" ||
		!strings.Contains(string(secret.Data["config"]), i.token) {
		i.t.Errorf("the Secret of Argo CD has the server %s and the name %s", secret.Data["server"], secret.Data["name"])
	}
}

// sharesAMemberCluster gives Flux a kubeconfig of a MemberCluster, until the MemberCluster goes.
func (i importing) sharesAMemberCluster() {
	i.t.Helper()
	m := i.register("shared", func(mc *clusterv1beta1.MemberCluster) {
		mc.Annotations = map[string]string{fleet.AnnotationAccessSecret: i.workspace}
	})
	secret := i.secret(i.workspace, i.down.Kubeconfig(i.t, i.token))
	secret.Namespace, secret.Annotations = naming.SystemNamespace, map[string]string{fleet.AnnotationAccessFor: "flux"}
	i.check(i.Create(context.Background(), secret))
	i.shared("flux", "", m.name)
	mc := m.record()
	i.check(i.Delete(context.Background(), &mc))
	i.notShared("flux", "", m.name)
}

// TestNoTenantHasTheHubShareWhatIsNotTheirs has the hub refuse each kubeconfig and place that it
// must not use, and then share one, so that it has seen all of them.
func TestNoTenantHasTheHubShareWhatIsNotTheirs(t *testing.T) {
	f := newAlone(t, "")
	f.shareWith(f.workspace, toolNamespaces)
	i, ctx, tenant := f.importing(nil), context.Background(), f.tenant()
	kubeconfig := i.down.Kubeconfig(t, i.token)
	both := map[string]string{fleet.AnnotationAccessFor: "argocd,flux"}

	treasure := i.secret("treasure", kubeconfig)
	treasure.Namespace, treasure.Annotations = f.namespace("cluster-"), both
	f.check(f.Create(ctx, treasure))
	f.check(tenant.Create(ctx, &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "thief"},
		Spec:       fleet.ClusterSpec{KubeConfigSecret: "treasure", KubeConfigSecretNamespace: treasure.Namespace},
	}))
	f.check(tenant.Create(ctx, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "annotated",
		Annotations: map[string]string{fleet.AnnotationAccessSecret: "../treasure"}}}))

	unlisted := f.neighbour()
	secret := i.secret("kubeconfig", kubeconfig)
	secret.Namespace, secret.Annotations = unlisted.workspace, both
	f.check(f.Create(ctx, secret))
	f.check(f.Create(ctx, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: unlisted.workspace, Name: "web"},
		Spec: fleet.ClusterSpec{KubeConfigSecret: "kubeconfig", AgentNamespace: i.agentNamespace}}))
	unlisted.withheld("web", "AccessWithheld", "access.workspaces")

	foreign := &corev1.Secret{Data: map[string][]byte{"value": []byte("theirs")}, ObjectMeta: metav1.ObjectMeta{
		Namespace: "flux-system", Name: naming.AccessSecret("flux", f.workspace, "my-cluster"),
		Labels: map[string]string{fleet.LabelAccess: "flux"},
	}}
	f.check(f.Create(ctx, foreign))
	i.begin()
	f.consentTo(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "my-cluster-kubeconfig"}}, "argocd,flux")
	f.shared("argocd", f.workspace, "my-cluster")
	f.withheld("my-cluster", "AccessSecretTaken", foreign.Name)
	f.check(f.Create(ctx, i.secretWith("second", kubeconfig, both)))
	f.check(tenant.Create(ctx, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "second",
		Annotations: map[string]string{fleet.AnnotationAccessSecret: "second"}}}))
	f.shared("flux", f.workspace, "second")
	f.withheld("second", "AccessWithheld", "the same API server")

	for _, name := range []string{"thief", "annotated", "second"} {
		f.notShared("argocd", f.workspace, name)
	}
	f.notShared("flux", f.workspace, "thief")
	f.shareWith(f.workspace, map[string]string{"flux": unlisted.workspace})
	f.withheld("second", "AccessWithheld", "belongs to the fleet, to a member or to a workspace")
	f.notShared("argocd", f.workspace, "my-cluster")
	f.check(f.get(foreign, foreign.Namespace, foreign.Name))
	if string(foreign.Data["value"]) != "theirs" {
		t.Error("the hub wrote a Secret of another owner")
	}
	f.check(f.Delete(ctx, foreign))
	i.quotesNoToken()
}
