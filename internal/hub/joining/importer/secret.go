package importer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/kubeconfig"
)

// Keys of a kubeconfig Secret with the address of the hub.
const (
	keyServerURL = "apiServerURL"
	keyServerCA  = "apiServerCA"
)

// origin is the content of a kubeconfig Secret, kept for one attempt only.
type origin struct {
	kubeconfig.Kubeconfig
	key     types.NamespacedName
	version string
	hash    string
	// url and ca lead the agent to the hub; override holds the values in the Secret.
	url, ca  string
	override struct{ url, ca string }
}

// read reads and checks the kubeconfig Secret.
func (c *Controller) read(ctx context.Context, cluster *fleet.Cluster) (origin, error) {
	s := origin{key: kubeconfig.SecretOf(cluster)}
	if p := kubeconfig.CheckSecret(cluster, s.key); p != nil {
		return s, refused(p)
	}
	var secret corev1.Secret
	if err := c.Live.Get(ctx, s.key, &secret); client.IgnoreNotFound(err) != nil {
		return s, fmt.Errorf("reading Secret %s: %w", s.key, err)
	} else if err != nil || !kubeconfig.Consents(&secret, cluster) {
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
	for _, key := range []string{kubeconfig.Key, keyServerURL, keyServerCA} {
		fmt.Fprintf(sum, "%d:", len(secret.Data[key]))
		sum.Write(secret.Data[key])
	}
	s.hash = hex.EncodeToString(sum.Sum(nil))
	var p *kubeconfig.Problem
	if s.Kubeconfig, p = kubeconfig.Parse(s.key.String(), secret.Data[kubeconfig.Key], c.Clock.Now()); p != nil {
		return s, refused(p)
	}
	return s, nil
}

// secretMissing returns the problem of a missing Secret, or of one without consent. The message
// does not distinguish the two for a Secret of another namespace: the reader may not be allowed to
// list Secrets there.
func secretMissing(cluster *fleet.Cluster, key types.NamespacedName) *problem {
	if key.Namespace == cluster.Namespace {
		return badInput(reasons.SecretMissing, "Secret %s does not exist: create it with a kubeconfig under the key %s", key, kubeconfig.Key)
	}
	command := fmt.Sprintf("kubectl -n %s annotate secret %s %s=%s", key.Namespace, key.Name, fleet.AnnotationKubeconfigFor, cluster.Namespace)
	return badInput(reasons.ConsentMissing,
		"Secret %s does not exist, or does not let workspace %s use it; its owner consents with: %s (for several workspaces: a list with "+
			"commas)",
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
