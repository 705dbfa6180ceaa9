package importer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hub/agentchart"
	"github.com/muster-fleet/muster/internal/kube"
)

// outcome is what a try came to, unless it met a problem.
type outcome struct {
	// waiting: the import token is not there yet, or what was read has changed meanwhile; an event wakes the Cluster.
	waiting bool
	handed  fleet.ImportStatus
	url, ca string
	// note is what the user should know although it worked.
	note string
}

// origin is what an import starts from: what is in the kubeconfig Secret, and what goes with it.
type origin struct {
	kubeconfig
	key     types.NamespacedName
	version string
	hash    string
	// url and ca are those of the hub that the agent is told; override are those that the Secret has.
	url, ca  string
	override struct{ url, ca string }
}

// try imports the cluster. What it learns from the Secret ends with it.
func (c *Controller) try(ctx context.Context, cluster *fleet.Cluster, o observed, why need) (outcome, error) {
	from, err := c.read(ctx, cluster)
	if err != nil {
		return outcome{}, err
	}
	out := outcome{url: from.url, ca: from.ca}
	if from.insecure {
		out.note = "the certificate of " + from.server + " is not verified, because the kubeconfig says insecure-skip-tls-verify: whoever is in between can read the registration token"
	}
	if why == needSecret && from.hash == o.last.SecretHash {
		out.handed = *o.last
		out.handed.SecretVersion = from.version
		return out, nil
	}
	bootstrap, err := c.token(ctx, cluster)
	if err != nil || bootstrap == nil {
		return outcome{waiting: true}, err
	}
	bootstrap.APIServerURL, bootstrap.APIServerCA = from.url, from.ca
	values := c.values(cluster)
	now := c.Clock.Now().Truncate(time.Second)
	values.Bootstrap, values.Internal.Generation = *bootstrap, agentchart.Generation(now)
	objects, err := agentchart.Render(values)
	if err != nil {
		return outcome{}, badInput(reasonInvalidSettings, "the agent cannot be installed with these settings: %s", kube.Clip(err.Error(), maxMessage))
	}
	pull, err := c.pullSecrets(ctx, cluster, values)
	if err != nil {
		return outcome{}, err
	}
	// The pull secrets follow the namespace, which comes first.
	objects = append(objects[:1:1], append(pull, objects[1:]...)...)
	d, err := c.visit(from.kubeconfig)
	if err != nil {
		return outcome{}, badInput(reasonInvalidKubeconfig, "Secret %s: %s", from.key, err)
	}
	defer d.close()
	id, err := c.inspect(ctx, d, cluster, objects)
	if err != nil {
		return outcome{}, err
	}
	out.handed = fleet.ImportStatus{
		Time: metav1.NewTime(now), ClusterID: id, Namespace: values.Namespace(),
		SecretVersion: from.version, SecretHash: from.hash, SettingsHash: values.Hash(),
		APIServerURL: from.override.url, APIServerCA: from.override.ca,
	}
	if current, err := c.stillThere(ctx, cluster); err != nil || !current {
		c.memory.release(id, client.ObjectKeyFromObject(cluster))
		return outcome{waiting: true}, err
	}
	if why == needSecret && o.unmoved(cluster, out) {
		return out, nil
	}
	if err := c.install(ctx, visit{d, cluster, o, values, objects, id, from.url}); err != nil {
		return outcome{}, err
	}
	current, err := c.sameSecret(ctx, from)
	out.waiting = !current
	return out, err
}

// unmoved says that a new kubeconfig leads to the same cluster, whose agent is well and needs nothing new.
func (o observed) unmoved(cluster *fleet.Cluster, out outcome) bool {
	return o.agent == agentWell && o.last.ClusterID == out.handed.ClusterID &&
		cluster.Status.APIServerURL == out.url && cluster.Status.APIServerCAHash == credential.CAHash([]byte(out.ca))
}

// read reads and checks the kubeconfig Secret.
func (c *Controller) read(ctx context.Context, cluster *fleet.Cluster) (origin, error) {
	s := origin{key: types.NamespacedName{Namespace: secretNamespace(cluster), Name: cluster.Spec.KubeConfigSecret}}
	if !secretNamespaceAllowed(cluster) {
		return s, badInput(reasonNamespaceNotAllowed, "kubeConfigSecretNamespace %q is not an allowed Fleet namespace", s.key.Namespace)
	}
	var secret corev1.Secret
	if err := c.Live.Get(ctx, s.key, &secret); apierrors.IsNotFound(err) {
		return s, badInput(reasonSecretMissing, "Secret %s does not exist: create it with a kubeconfig under the key %s", s.key, keyKubeconfig)
	} else if err != nil {
		return s, fmt.Errorf("reading Secret %s: %w", s.key, err)
	}
	settings := c.Config.Current()
	s.version, s.url, s.ca = secret.ResourceVersion, settings.APIServerURL, settings.APIServerCA
	if given := strings.TrimSpace(string(secret.Data[keyServerURL])); given != "" {
		url, err := credential.ParseServer(given)
		if err != nil {
			return s, badInput(reasonInvalidSettings, "the key %s of Secret %s is %q: %s", keyServerURL, s.key, kube.Clip(given, maxMessage), err)
		}
		s.url, s.override.url = url, url
	}
	if given := secret.Data[keyServerCA]; len(given) > 0 {
		ca, err := credential.ParseCA(string(given))
		if err != nil {
			return s, badInput(reasonInvalidSettings, "the key %s of Secret %s: %s", keyServerCA, s.key, err)
		}
		s.ca, s.override.ca = string(ca), string(ca)
	}
	if s.url == "" {
		return s, badInput(reasonURLMissing, "cannot import cluster '%s/%s', missing apiServerURL in fleet config for cluster auto registration: "+
			"set apiServerURL with helm upgrade of the fleet chart, or under the key %s of Secret %s", cluster.Namespace, cluster.Name, keyServerURL, s.key)
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

// inspect finds out whether the cluster can be imported, before anything is changed there, and which one it is.
func (c *Controller) inspect(ctx context.Context, d *downstream, cluster *fleet.Cluster, objects []*unstructured.Unstructured) (string, error) {
	if err := d.probe(ctx); err != nil {
		return "", explain(d.server, "asking for its version", err)
	}
	missing, err := d.missingRights(ctx, objects)
	if err != nil {
		return "", explain(d.server, "asking what the kubeconfig may do", err)
	}
	if len(missing) > 0 {
		return "", setback(reasonRightsMissing, "the user of the kubeconfig may not: %s", strings.Join(missing, "; "))
	}
	id, err := d.clusterID(ctx)
	if err != nil {
		return "", explain(d.server, "reading namespace kube-system", err)
	}
	return id, c.admit(ctx, cluster, id)
}

// stillThere says whether the Cluster is still wanted: an agent that nobody asked for any more would be left behind.
func (c *Controller) stillThere(ctx context.Context, cluster *fleet.Cluster) (bool, error) {
	var current fleet.Cluster
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(cluster), &current)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && current.UID == cluster.UID && current.DeletionTimestamp == nil, err
}

// sameSecret says whether the Secret is still the one that was read; if not, the import is done again with what it is now.
func (c *Controller) sameSecret(ctx context.Context, from origin) (bool, error) {
	secret := kube.Metadata(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := c.Live.Get(ctx, from.key, secret)
	if apierrors.IsNotFound(err) {
		return true, nil // it has served
	}
	return err == nil && secret.ResourceVersion == from.version, err
}
