package kubeconfig

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

func TestWhoMayUseAKubeconfigSecret(t *testing.T) {
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web", UID: "1",
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "Cluster", Name: "web", UID: "2"},
		}}}
	for _, c := range []struct {
		name, namespace, lists, label string
		want                          bool
	}{
		{"its own namespace", "clusters", "", "", true},
		{"another, which says nothing", "fleet-default", "", "", false},
		{"one that lists the workspace", "fleet-default", "other, clusters", "", true},
		{"one that lists the Cluster", "fleet-default", "clusters/web", "", true},
		{"one that lists another Cluster", "fleet-default", "clusters/db,other/web", "", false},
		{"one that lists everybody, for whom there is no word", "fleet-default", "*", "", false},
		{"one whose label names the workspace", "fleet-default", "", "clusters", true},
		{"one whose label names another workspace", "fleet-default", "", "other", false},
		{"one whose label names everybody", "fleet-default", "", "*", false},
	} {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "web-kubeconfig", OwnerReferences: cluster.OwnerReferences},
		}
		if c.label != "" {
			secret.Labels = map[string]string{fleet.LabelKubeconfigReferenceableFrom: c.label}
		}
		if c.lists != "" {
			secret.Annotations = map[string]string{fleet.AnnotationKubeconfigFor: c.lists}
		}
		if got := Consents(secret, cluster); got != c.want {
			t.Errorf("%s: got %t", c.name, got)
		}
	}
}

func TestNothingButNamesStandsInACommand(t *testing.T) {
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web"}}
	for key, reason := range map[types.NamespacedName]string{
		{Namespace: "fleet-default", Name: "web-kubeconfig"}:       "",
		{Namespace: "clusters", Name: "web.kubeconfig"}:            "",
		{Namespace: "kube-system", Name: "web-kubeconfig"}:         reasons.SecretNamespaceNotAllowed,
		{Namespace: "cluster-x; reboot", Name: "web-kubeconfig"}:   reasons.SecretNamespaceNotAllowed,
		{Namespace: "fleet-default", Name: "a b=c; curl x | sh #"}: reasons.SecretMissing,
	} {
		p := CheckSecret(cluster, key)
		if p == nil && reason != "" || p != nil && p.Reason != reason {
			t.Errorf("%s: %v, want %q", key, p, reason)
		}
		if p != nil && strings.Contains(p.Message, "kubectl") {
			t.Errorf("%s stands in a command: %s", key, p.Message)
		}
	}
}
