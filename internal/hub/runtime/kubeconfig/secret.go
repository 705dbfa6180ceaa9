// Package kubeconfig reads kubeconfigs of users, and decides about the right of a Cluster to use a
// Secret.
//
// It writes nothing. Its invariants: a kubeconfig of another namespace needs its owner's consent.
// No kubeconfig makes the hub run code, read files or call another server. No message quotes one.
package kubeconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// Problem is a fault that a user must correct. It never quotes the kubeconfig, because more people
// may read a condition than a credential.
type Problem struct{ Reason, Message string }

func (p *Problem) Error() string { return p.Reason + ": " + p.Message }

func badInput(reason, format string, args ...any) *Problem {
	return &Problem{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// secretNamespaces may hold kubeconfigs besides the Cluster's own namespace, as upstream.
var secretNamespaces = []string{
	"fleet-local", "fleet-default", "cattle-fleet-system", "fleet-system", "cattle-fleet-clusters-system", "fleet-clusters-system",
}

// SecretOf returns the name of the kubeconfig Secret of a Cluster.
func SecretOf(cluster *fleet.Cluster) types.NamespacedName {
	return types.NamespacedName{
		Namespace: cmp.Or(cluster.Spec.KubeConfigSecretNamespace, cluster.Namespace), Name: cluster.Spec.KubeConfigSecret,
	}
}

// CheckSecret refuses impossible names of a kubeconfig Secret, before a message suggests a
// command with them.
func CheckSecret(cluster *fleet.Cluster, key types.NamespacedName) *Problem {
	own := key.Namespace == cluster.Namespace
	if !own && !slices.Contains(secretNamespaces, key.Namespace) && !strings.HasPrefix(key.Namespace, "cluster-") {
		return badInput(reasons.SecretNamespaceNotAllowed, "kubeConfigSecretNamespace %q is not an allowed Fleet namespace", key.Namespace)
	}
	if problems := validation.IsDNS1123Label(key.Namespace); len(problems) > 0 {
		return badInput(reasons.SecretNamespaceNotAllowed, "kubeConfigSecretNamespace %q is no name of a namespace", key.Namespace)
	}
	if problems := validation.IsDNS1123Subdomain(key.Name); len(problems) > 0 {
		return badInput(reasons.SecretMissing, "kubeConfigSecret %q is no name of a Secret", key.Name)
	}
	return nil
}

// Consents reports whether a Cluster may use a kubeconfig Secret. It may use one of its own
// namespace, the place of Cluster API's and the hub's. It may use another one with an annotation or
// label for its workspace. Neither the Secret's name nor an owner reference of the Cluster proves
// anything, because the Cluster's owner writes both.
func Consents(secret *corev1.Secret, cluster *fleet.Cluster) bool {
	if secret.Namespace == cluster.Namespace ||
		secret.Labels[fleet.LabelKubeconfigReferenceableFrom] == cluster.Namespace {
		return true
	}
	for listed := range strings.SplitSeq(secret.Annotations[fleet.AnnotationKubeconfigFor], ",") {
		switch strings.TrimSpace(listed) {
		case cluster.Namespace, cluster.Namespace + "/" + cluster.Name:
			return true
		}
	}
	return false
}
