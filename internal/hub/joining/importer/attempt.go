package importer

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/bundles/agentchart"
	"github.com/muster-fleet/muster/internal/kube"
)

// outcome is the result of an attempt without a problem.
type outcome struct {
	// waiting: the import token is missing, or the Cluster or its Secret has changed during the
	// attempt; an event enqueues the Cluster.
	waiting bool
	handed  fleet.ImportStatus
	url, ca string
	// note is a warning about a successful import.
	note string
	// keepsCondition keeps the condition Imported unchanged.
	keepsCondition bool
}

// attempt imports the cluster: it connects, checks the rights of the kubeconfig and the identity of
// the cluster, and installs the agent.
func (c *Controller) attempt(ctx context.Context, cluster *fleet.Cluster, o observed, why need) (outcome, error) {
	from, err := c.read(ctx, cluster)
	if err != nil {
		return outcome{}, err
	}
	out := outcome{url: from.url, ca: from.ca}
	if from.Insecure {
		out.note = "the certificate of " + from.Server +
			" is not verified, because the kubeconfig sets insecure-skip-tls-verify: an attacker on the network can read the registration token"
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
	values.Bootstrap, values.Internal.Generation = bootstrap, agentchart.Generation(now)
	objects, err := agentchart.Render(values)
	if err != nil {
		return outcome{}, badInput(reasons.InvalidSettings, "the agent cannot be installed with these settings: %s",
			kube.Clip(err.Error(), maxMessage))
	}
	pull, err := c.pullSecrets(ctx, cluster, values)
	if err != nil {
		return outcome{}, err
	}
	// The namespace comes first, and the pull secrets follow it.
	objects = append(objects[:1:1], append(pull, objects[1:]...)...)
	d, err := c.connect(from.Kubeconfig)
	if err != nil {
		return outcome{}, badInput(reasons.InvalidKubeconfig, "Secret %s: %s", from.key, err)
	}
	defer d.close()
	id, err := c.preflight(ctx, d, cluster, objects)
	if err != nil {
		return outcome{}, err
	}
	out.handed = fleet.ImportStatus{
		Time: metav1.NewTime(now), ClusterID: id, Namespace: values.Namespace(),
		SecretVersion: from.version, SecretHash: from.hash, SettingsHash: values.Hash(),
		APIServerURL: from.override.url, APIServerCA: from.override.ca,
	}
	if current, err := c.stillThere(ctx, cluster); err != nil || !current {
		c.tracker.unclaim(client.ObjectKeyFromObject(cluster))
		return outcome{waiting: true}, err
	}
	if why == needSecret && o.upToDate(cluster, out) {
		return out, nil
	}
	if err := c.install(ctx, installation{d, cluster, o, values, objects, id, from.url}); err != nil {
		return outcome{}, err
	}
	current, err := c.sameSecret(ctx, from)
	out.waiting = !current
	return out, err
}

// upToDate reports whether a new kubeconfig leads to the same cluster, with a healthy and current
// agent.
func (o observed) upToDate(cluster *fleet.Cluster, out outcome) bool {
	return o.agent == membership.AgentOnline && o.last.ClusterID == out.handed.ClusterID &&
		cluster.Status.APIServerURL == out.url && cluster.Status.APIServerCAHash == credential.CAHash([]byte(out.ca))
}

// preflight returns the ID of the cluster, or the problem that blocks the import. It changes
// nothing there.
func (c *Controller) preflight(ctx context.Context, d *downstream, cluster *fleet.Cluster,
	objects []*unstructured.Unstructured) (string, error) {
	if err := d.probe(ctx); err != nil {
		return "", d.explain("asking for its version", err)
	}
	missing, err := d.missingRights(ctx, objects)
	if err != nil {
		return "", d.explain("reviewing the rights of the kubeconfig", err)
	}
	if len(missing) > 0 {
		return "", setback(reasons.RightsMissing, "the user of the kubeconfig may not: %s", strings.Join(missing, "; "))
	}
	id, err := d.clusterID(ctx)
	if err != nil {
		return "", d.explain("reading namespace kube-system", err)
	}
	d.known = true
	return id, c.admit(ctx, d, cluster, id)
}

// stillThere reports whether the Cluster still exists: the agent of a deleted one would be left
// behind.
func (c *Controller) stillThere(ctx context.Context, cluster *fleet.Cluster) (bool, error) {
	var current fleet.Cluster
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(cluster), &current)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && current.UID == cluster.UID && current.DeletionTimestamp == nil, err
}

// sameSecret reports whether the Secret still has the version read before; if not, the hub repeats
// the import.
func (c *Controller) sameSecret(ctx context.Context, from origin) (bool, error) {
	secret := kube.CoreMetadata("Secret")
	err := c.Live.Get(ctx, from.key, secret)
	if apierrors.IsNotFound(err) {
		return true, nil // deleted after use
	}
	return err == nil && secret.ResourceVersion == from.version, err
}
