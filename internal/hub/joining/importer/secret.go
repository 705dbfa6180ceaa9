package importer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// origin is the content of a kubeconfig Secret, kept for one attempt only.
type origin struct {
	kubeconfig
	key     types.NamespacedName
	version string
	hash    string
	// url and ca lead the agent to the hub; override holds the values in the Secret.
	url, ca  string
	override struct{ url, ca string }
}

// read reads and checks the kubeconfig Secret.
func (c *Controller) read(ctx context.Context, cluster *fleet.Cluster) (origin, error) {
	s := origin{key: types.NamespacedName{Namespace: secretNamespace(cluster), Name: cluster.Spec.KubeConfigSecret}}
	if p := checkSecretKey(cluster, s.key); p != nil {
		return s, p
	}
	var secret corev1.Secret
	if err := c.Live.Get(ctx, s.key, &secret); client.IgnoreNotFound(err) != nil {
		return s, fmt.Errorf("reading Secret %s: %w", s.key, err)
	} else if err != nil || !consents(&secret, cluster) {
		return s, secretMissing(cluster, s.key)
	}
	settings := c.Config.Current()
	s.version, s.url, s.ca = secret.ResourceVersion, settings.APIServerURL, settings.APIServerCA
	if given := strings.TrimSpace(string(secret.Data[keyServerURL])); given != "" {
		url, err := credential.ParseServer(given)
		if err != nil { // the error may quote the key, and more people read conditions than Secrets
			return s, badInput(reasons.InvalidSettings,
				"the key %s of Secret %s is not the URL of an API server: want https://host, such as https://hub.example:6443", keyServerURL, s.key)
		}
		s.url, s.override.url = url, url
	}
	if given := secret.Data[keyServerCA]; len(given) > 0 {
		ca, err := credential.ParseCA(string(given))
		if err != nil {
			return s, badInput(reasons.InvalidSettings, "the key %s of Secret %s: %s", keyServerCA, s.key, err)
		}
		s.ca, s.override.ca = string(ca), string(ca)
	}
	if s.url == "" {
		return s, badInput(reasons.APIServerURLMissing,
			"cannot import cluster '%s/%s', missing apiServerURL in fleet config for cluster auto registration: "+
				"set apiServerURL with helm upgrade of the fleet chart, or under the key %s of Secret %s",
			cluster.Namespace, cluster.Name, keyServerURL, s.key)
	}
	sum := sha256.New()
	for _, key := range []string{keyKubeconfig, keyServerURL, keyServerCA} {
		fmt.Fprintf(sum, "%d:", len(secret.Data[key]))
		sum.Write(secret.Data[key])
	}
	s.hash = hex.EncodeToString(sum.Sum(nil))
	var p *problem
	if s.kubeconfig, p = parse(s.key.String(), secret.Data[keyKubeconfig], c.Clock.Now()); p != nil {
		return s, p
	}
	return s, nil
}

// secretNamespaces may hold kubeconfigs besides the Cluster's own namespace, as upstream.
var secretNamespaces = []string{
	"fleet-local", "fleet-default", "cattle-fleet-system", "fleet-system", "cattle-fleet-clusters-system", "fleet-clusters-system",
}

// secretNamespace returns the namespace of the kubeconfig Secret.
func secretNamespace(cluster *fleet.Cluster) string {
	if namespace := cluster.Spec.KubeConfigSecretNamespace; namespace != "" {
		return namespace
	}
	return cluster.Namespace
}

// checkSecretKey refuses impossible names of a kubeconfig Secret, before a message suggests a
// command with them.
func checkSecretKey(cluster *fleet.Cluster, key types.NamespacedName) *problem {
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

// consents reports whether a Cluster may use a kubeconfig Secret. It may use one of its own
// namespace, the place of Cluster API's and the hub's. It may use another one whose annotation or
// label names its workspace. Neither the Secret's name nor an owner reference of the Cluster proves
// anything, because the Cluster's owner writes both.
func consents(secret *corev1.Secret, cluster *fleet.Cluster) bool {
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

// secretMissing returns the problem of a Secret that does not exist or does not consent. The
// message does not distinguish the two for a Secret of another namespace, because its reader may
// not be allowed to list that namespace.
func secretMissing(cluster *fleet.Cluster, key types.NamespacedName) *problem {
	if key.Namespace == cluster.Namespace {
		return badInput(reasons.SecretMissing, "Secret %s does not exist: create it with a kubeconfig under the key %s", key, keyKubeconfig)
	}
	command := fmt.Sprintf("kubectl -n %s annotate secret %s %s=%s", key.Namespace, key.Name, fleet.AnnotationKubeconfigFor, cluster.Namespace)
	return badInput(reasons.ConsentMissing,
		"Secret %s does not exist, or does not let workspace %s use it; its owner consents with: %s (to others besides: a list with commas)",
		key, cluster.Namespace, command)
}

// Hub returns the address of the hub for a Cluster's agent: from the kubeconfig Secret of its
// import, else from the settings.
func Hub(cluster *fleet.Cluster, settings *clusterv1beta1.HubAddress) *clusterv1beta1.HubAddress {
	handed := cluster.Status.Import
	if cluster.Spec.KubeConfigSecret == "" || handed == nil || handed.APIServerURL == "" && handed.APIServerCA == "" {
		return settings
	}
	override := clusterv1beta1.HubAddress{}
	if settings != nil {
		override = *settings
	}
	override.APIServerURL = cmp.Or(handed.APIServerURL, override.APIServerURL)
	override.APIServerCA = cmp.Or(handed.APIServerCA, override.APIServerCA)
	return &override
}
