package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// registered is a registration from Rancher Fleet's hub: the token of its account, and the
// heartbeat of its agent.
type registered struct {
	token string
	beat  func(context.Context) error
}

// registers creates the objects of Rancher Fleet's hub for a Cluster c-N of namespace default and
// its only registration, request-N.
func (h rancherHub) registers(cluster *fleet.Cluster) registered {
	h.t.Helper()
	of := "request-" + strings.TrimPrefix(cluster.Name, "c-")
	ctx, namespace := h.t.Context(), naming.MemberNamespace("default", cluster.Name)
	const gvk = "fleet.cattle.io/v1alpha1, Kind=ClusterRegistration"
	ofRequest := func(o client.Object, name, namespace string) client.Object {
		o.SetName(name)
		o.SetNamespace(namespace)
		o.SetLabels(map[string]string{fleet.LabelManaged: "true"})
		o.SetAnnotations(map[string]string{
			"fleet.cattle.io/cluster": cluster.Name, "fleet.cattle.io/cluster-registration": of,
			"fleet.cattle.io/cluster-registration-namespace": "default",
		})
		inSet(o, "cluster-registration", gvk, of, "default")
		h.check(h.Create(ctx, o))
		return o
	}
	h.check(h.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace,
		Labels:      map[string]string{fleet.LabelManaged: "true"},
		Annotations: map[string]string{"fleet.cattle.io/cluster": cluster.Name, "fleet.cattle.io/cluster-namespace": "default"}}}))
	request := &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: of,
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "fleet.cattle.io/v1alpha1", Kind: "Cluster", Name: cluster.Name, UID: cluster.UID}}}, Spec: fleet.ClusterRegistrationSpec{
		ClientID: cluster.Spec.ClientID, ClientRandom: "random",
	}}
	h.check(h.Create(ctx, request))
	request.Status.Granted, request.Status.ClusterName = true, cluster.Name
	h.check(h.Status().Update(ctx, request))
	cluster.Status.Namespace = namespace
	h.check(h.Status().Update(ctx, cluster))
	account := ofRequest(&corev1.ServiceAccount{}, of+"-uid", namespace)
	secret := &corev1.Secret{Type: corev1.SecretTypeServiceAccountToken,
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: of + "-uid-token",
			Annotations:     map[string]string{corev1.ServiceAccountNameKey: account.GetName()},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: account.GetName(), UID: account.GetUID()}}}}
	h.check(h.Create(ctx, secret))
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.GetName()}}
	ofRequest(&rbacv1.Role{Rules: []rbacv1.PolicyRule{{APIGroups: []string{"fleet.cattle.io"}, Resources: []string{"clusters/status"},
		ResourceNames: []string{cluster.Name}, Verbs: []string{"patch"}}}}, of, "default")
	ofRequest(&rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: of}, Subjects: subjects},
		of, "default")
	ofRequest(&rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "fleet-bundle-deployment"},
		Subjects: subjects}, of, namespace)
	ofRequest(&rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "fleet-content"},
		Subjects: subjects}, of+"-content", "")
	testkube.Eventually(h.t, "the account has a token", func() error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil || len(secret.Data["token"]) > 0 {
			return err
		}
		return fmt.Errorf("it has none")
	})
	token := string(secret.Data["token"])
	agent, err := h.as(token)
	h.check(err)
	return registered{token, func(ctx context.Context) error {
		patch := fmt.Sprintf(`[{"op":"add","path":"/status/agent","value":{"lastSeen":%q,"namespace":"cattle-fleet-system"}}]`,
			time.Now().UTC().Format(time.RFC3339))
		seen := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: cluster.Name}}
		return agent.Status().Patch(ctx, seen, client.RawPatch(types.JSONPatchType, []byte(patch)))
	}}
}
