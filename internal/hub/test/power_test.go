package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/charts"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/agentroles"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// asHub returns a client of an attacker who has stolen a token of the hub's own account. The client
// has nothing else.
func (f fixture) asHub() client.Client {
	f.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.HubServiceAccount}}
	bearer, err := kube.RequestToken(context.Background(), f.SubResource("token"), account, time.Hour)
	f.check(err)
	return f.as(bearer)
}

// denied waits until an attempt is refused: a policy is in force a moment after it was made, and
// the hub makes what it needs when it starts.
func (f fixture) denied(what string, attempt func() error) {
	f.t.Helper()
	f.eventually(what+" is refused", func() error {
		if err := attempt(); !apierrors.IsForbidden(err) {
			return fmt.Errorf("the API server says %v", err)
		}
		return nil
	})
}

// power is an attacker with the hub's account. Each attempt looks as much like the hub's own work
// as possible.
type power struct {
	fixture
	hub client.Client
	// bystander is the namespace of a tenant outside the fleet. It contains an account, a Secret, a
	// Role and a RoleBinding.
	bystander string
}

func (f fixture) power() power {
	f.t.Helper()
	p := power{f, f.asHub(), f.namespace("bystander-")}
	meta := metav1.ObjectMeta{Namespace: p.bystander, Name: "app"}
	for _, object := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta}, &corev1.Secret{ObjectMeta: meta},
		&rbacv1.Role{
			ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}},
		},
		&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "app"}},
		&coordinationv1.Lease{ObjectMeta: meta},
	} {
		f.check(f.Create(context.Background(), object))
	}
	for _, object := range []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "try"}}, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "try"},
	}} {
		object.SetNamespace(p.bystander)
		p.denied(fmt.Sprintf("to try a %T", object), func() error { return p.hub.Create(context.Background(), object, client.DryRunAll) })
	}
	return p
}

// meta returns the metadata of an object that looks like the hub's.
func (p power) meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{fleet.LabelManaged: "true"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: fleet.GroupVersion.String(), Kind: "ClusterRegistrationToken", Name: "x", UID: "x",
		}},
	}
}

func (p power) create(what string, object client.Object) {
	p.t.Helper()
	p.denied("to create "+what, func() error { return p.hub.Create(context.Background(), object.DeepCopyObject().(client.Object)) })
}

func (p power) issue(namespace, name string) {
	p.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.denied("a token of "+namespace+"/"+name, func() error {
		_, err := kube.RequestToken(context.Background(), p.hub.SubResource("token"), account, time.Hour)
		return err
	})
}

// me returns the subject that an attacker with the hub's account would give rights to.
func me(namespace string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "app"}}
}

func to(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

func TestTheHubsAccountIssuesNoTokenOfSomebodyElse(t *testing.T) {
	p := newFixture(t).power()
	p.check(client.IgnoreAlreadyExists(p.Create(context.Background(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "default"},
	})))
	p.check(p.Create(context.Background(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.bystander, Name: "agent"}}))
	p.check(p.Create(context.Background(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.bystander, Name: naming.MemberReconnectAccount},
	}))
	p.issue("kube-system", "default")
	p.issue(p.bystander, "app")
	p.issue(p.bystander, "agent") // with the name of a member's account
	p.issue(p.bystander, naming.MemberReconnectAccount)
	p.issue(naming.SystemNamespace, naming.HubServiceAccount)

	// The ways around: a right of its own, and a Secret that Kubernetes fills with a token.
	mine := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: naming.SystemNamespace, Name: naming.HubServiceAccount}}
	p.create("its right to issue in kube-system", &rbacv1.RoleBinding{
		ObjectMeta: p.meta("kube-system", "fleet-controller-tokens"), RoleRef: to("ClusterRole", "fleet-controller-tokens"), Subjects: mine,
	})
	p.create("its right to issue everywhere", &rbacv1.ClusterRoleBinding{
		ObjectMeta: p.meta("", "power-tokens"), RoleRef: to("ClusterRole", "fleet-controller-tokens"), Subjects: mine,
	})
	p.check(p.hub.Create(context.Background(), &rbacv1.RoleBinding{
		ObjectMeta: p.meta(p.bystander, "fleet-controller-tokens"), RoleRef: to("ClusterRole", "fleet-controller-tokens"), Subjects: mine,
	}))
	p.issue(p.bystander, "app") // where it has the right, as in a workspace
	for namespace, account := range map[string]string{"kube-system": "default", p.bystander: "app"} {
		secret := &corev1.Secret{ObjectMeta: p.meta(namespace, account+"-token"), Type: corev1.SecretTypeServiceAccountToken}
		secret.Annotations = map[string]string{corev1.ServiceAccountNameKey: account}
		p.create("the Secret with a token of "+namespace+"/"+account, secret)
	}
}

func TestTheHubsAccountWritesNoSecretOfSomebodyElse(t *testing.T) {
	p := newFixture(t).power()
	for _, namespace := range []string{"kube-system", naming.SystemNamespace, naming.MemberSystemNamespace, p.bystander} {
		p.create("a Secret in "+namespace, &corev1.Secret{ObjectMeta: p.meta(namespace, "power")})
	}
	p.create("values in kube-system", &corev1.Secret{ObjectMeta: p.meta("kube-system", "power"), Type: fleet.SecretTypeValues})
	for _, namespace := range []string{"kube-system", p.bystander} {
		version := &corev1.Secret{ObjectMeta: p.meta(namespace, "power"), Type: "muster/placement-version"}
		p.create("a version of a placement in "+namespace, version)
	}
	p.create("a Secret to bind tokens to in kube-system", &corev1.Secret{
		ObjectMeta: p.meta("kube-system", "power"), Type: fleet.SecretTypeLastingToken,
	})
	shared := &corev1.Secret{ObjectMeta: p.meta(p.bystander, "power"), Type: corev1.SecretTypeOpaque}
	shared.Labels[fleet.LabelAccess], shared.Annotations = "argocd", map[string]string{fleet.AnnotationAccessOf: "clusters/web"}
	p.create("a Secret for Argo CD elsewhere", shared)
	p.check(client.IgnoreAlreadyExists(p.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "argocd"}})))
	p.create("a Secret in the namespace of Argo CD that is for no member", &corev1.Secret{ObjectMeta: p.meta("argocd", "power")})
	for _, namespace := range []string{"kube-system", naming.MemberSystemNamespace, p.bystander} {
		copied := &corev1.ConfigMap{ObjectMeta: p.meta(namespace, "power")}
		copied.Labels = map[string]string{"muster/copied-from": "clusters"}
		p.create("a ConfigMap in "+namespace, copied)
		published := &corev1.ConfigMap{ObjectMeta: p.meta(namespace, "standby-power")}
		p.create("a credential for an agent of a lost hub in "+namespace, published)
	}
	answers := naming.RegistrationNamespace(naming.SystemNamespace)
	p.create("a ConfigMap beside the answers", &corev1.ConfigMap{ObjectMeta: p.meta(answers, "power")})
	app := types.NamespacedName{Namespace: p.bystander, Name: "app"}
	p.check(p.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name}}))
	for what, change := range map[string]string{
		"the label of the hub's own": `{"metadata":{"labels":{"fleet.cattle.io/managed":"true"}}}`, "other data": `{"data":{"a":"Yg=="}}`,
	} {
		p.denied(what+" on a Secret of somebody", func() error {
			return p.hub.Patch(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name}},
				client.RawPatch(types.MergePatchType, []byte(change)))
		})
	}
	for _, object := range []client.Object{
		&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}, &coordinationv1.Lease{},
	} {
		object.SetNamespace(app.Namespace)
		object.SetName(app.Name)
		p.denied(fmt.Sprintf("the deletion of somebody's %T", object), func() error { return p.hub.Delete(context.Background(), object) })
	}
	p.create("the Lease of another leader", &coordinationv1.Lease{ObjectMeta: p.meta("kube-system", "power")})
}

func TestTheHubsAccountGivesNobodyRights(t *testing.T) {
	p := newFixture(t).power()
	const mine = "fleet-controller" // a ClusterRole of which the hub has every right, so that RBAC lets it hand them out
	p.create("a binding to cluster-admin", &rbacv1.ClusterRoleBinding{
		ObjectMeta: p.meta("", "power"), RoleRef: to("ClusterRole", "cluster-admin"), Subjects: me(p.bystander),
	})
	p.create("a binding to its own rights", &rbacv1.ClusterRoleBinding{
		ObjectMeta: p.meta("", "power"), RoleRef: to("ClusterRole", mine), Subjects: me(p.bystander),
	})
	p.create("a binding to the right of members for somebody else",
		&rbacv1.ClusterRoleBinding{ObjectMeta: p.meta("", "power"), RoleRef: to("ClusterRole", "fleet-content"), Subjects: me(p.bystander)})
	p.create("a binding to the right of members beside those that it has for them",
		&rbacv1.ClusterRoleBinding{ObjectMeta: p.meta("", "power"), RoleRef: to("ClusterRole", "fleet-content"),
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: p.bystander, Name: "agent"}}})
	for _, namespace := range []string{"kube-system", p.bystander} {
		p.create("a binding to its own rights in "+namespace, &rbacv1.RoleBinding{
			ObjectMeta: p.meta(namespace, "power"), RoleRef: to("ClusterRole", mine), Subjects: me(p.bystander),
		})
		p.create("a binding to the right to come back in "+namespace, &rbacv1.RoleBinding{
			ObjectMeta: p.meta(namespace, agentroles.ReconnectRole), RoleRef: to("ClusterRole", agentroles.ReconnectRole), Subjects: me(p.bystander),
		})
		p.create("a Role to read Secrets in "+namespace, &rbacv1.Role{
			ObjectMeta: p.meta(namespace, "power"), Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"},
			}},
		})
	}
	p.create("a binding to a team's Role", &rbacv1.RoleBinding{
		ObjectMeta: p.meta(p.bystander, "power"), RoleRef: to("Role", "app"), Subjects: me(p.bystander),
	})
	secrets := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list"}}}
	p.create("a ClusterRole of its own", &rbacv1.ClusterRole{ObjectMeta: p.meta("", "power"), Rules: secrets})
	p.denied("another content of the ClusterRole that all members have", func() error {
		return p.hub.Patch(context.Background(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "fleet-content"}},
			client.RawPatch(types.MergePatchType, []byte(`{"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get","list"]}]}`)))
	})
}

func TestTheHubsAccountMakesNobodysNamespaceAMembers(t *testing.T) {
	p := newFixture(t).power()
	label := client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"fleet.cattle.io/managed":"true","kubernetes-fleet.io/is-fleet-resource":"true"}}}`))
	for _, name := range []string{"kube-system", naming.SystemNamespace, p.bystander} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.denied("to label namespace "+name, func() error { return p.hub.Patch(context.Background(), namespace.DeepCopy(), label) })
		both := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"muster/has-members":"true","team":"other"}}}`))
		p.denied("to label namespace "+name+" besides", func() error { return p.hub.Patch(context.Background(), namespace.DeepCopy(), both) })
		p.denied("to delete namespace "+name, func() error { return p.hub.Delete(context.Background(), namespace, client.DryRunAll) })
	}
}

// TestTheInstallerOfTheHubsAgentIsActedAsForAnHour looks at what lies in the Secret
// of the local cluster.
func TestTheInstallerOfTheHubsAgentIsActedAsForAnHour(t *testing.T) {
	f := newAlone(t, "")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: "fleet-controller-bootstrap"}}
	issue := func() (string, error) {
		return kube.RequestToken(context.Background(), f.asHub().SubResource("token"), account, time.Hour)
	}
	f.check(client.IgnoreNotFound(f.Delete(context.Background(), account)))
	if _, err := issue(); err == nil {
		t.Error("without bootstrap there is an account to act as")
	}
	f.cluster.InstallTemplate(t, "fleet/templates/bootstrap.yaml")
	f.configure(fmt.Sprintf(`{"bootstrap":{"namespace":%q}}`, f.workspace))
	var secret corev1.Secret
	f.eventually("the importer has a credential", func() error { return f.get(&secret, f.workspace, "local-cluster") })
	_, rest, _ := strings.Cut(string(secret.Data["value"]), "token: ")
	bearer, _, _ := strings.Cut(rest, "\n")
	claims, err := credential.ReadClaims(bearer)
	f.check(err)
	if life := claims.Expires.Sub(claims.Issued); life > time.Hour {
		t.Errorf("it lives %s", life)
	}
}

// TestThePolicyOfTheHubIsInstalledForItsAccount keeps the chart's policies in step with
// the account's name.
func TestThePolicyOfTheHubIsInstalledForItsAccount(t *testing.T) {
	policy, err := charts.FS.ReadFile("fleet/templates/admission-hub.yaml")
	if err != nil {
		t.Fatal(err)
	}
	who := "request.userInfo.username == 'system:serviceaccount:{{ .Release.Namespace }}:" + naming.HubServiceAccount + "'"
	if found := strings.Count(string(policy), who); found != 4 {
		t.Errorf("%d policies are about the hub's account, want 4", found)
	}
}
