package access

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/inventory"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// annotationServer on a Secret of Argo CD is a digest of its namespace and API server.
const annotationServer = "muster/access-server"

// labelArgoCD marks a cluster Secret of Argo CD.
const labelArgoCD = "argocd.argoproj.io/secret-type"

// reconcile brings the Secret of a member for one tool to the desired state. It returns the
// interval until the next check of an object without a watch.
func (c *Controller) reconcile(ctx context.Context, m member, t tool, config settings.Config) (time.Duration, error) {
	o := observed{member: m, tool: t, listed: config.Access.Lists(m.key.Namespace)}
	if o.wanted() && o.listed {
		var err error
		if o.target, err = c.target(ctx, t.namespace); err != nil {
			return 0, err
		}
		if o.rival, err = c.rival(ctx, o); err != nil {
			return 0, err
		}
	}
	next := decide(o)
	current, ended := o.secrets()
	var err error
	switch next.action {
	case apply:
		next, err = c.apply(ctx, o)
	case remove:
		if current != nil {
			ended = append(ended, current)
		}
	case keep:
	}
	if err == nil {
		err = c.remove(ctx, o, ended)
	}
	if err == nil {
		next, err = c.publish(ctx, o, next)
	}
	if err != nil {
		return 0, err
	}
	c.report(o, next)
	if o.target != "" {
		return unwatchedRetry, nil
	}
	return 0, nil
}

// apply writes the Secret if it differs from the desired one.
func (c *Controller) apply(ctx context.Context, o observed) (decision, error) {
	before := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.tool.namespace, Name: o.tool.secretName(o.key)}}
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(before), before)
	switch {
	case apierrors.IsNotFound(err):
		if err := o.render(before); err != nil {
			return decision{}, err
		}
		if err := c.Client.Create(ctx, before, kube.FieldOwner); err != nil {
			return decision{}, fmt.Errorf("creating Secret %s/%s: %w", before.Namespace, before.Name, err)
		}
		c.Recorder.Eventf(o.record, nil, corev1.EventTypeNormal, reasons.AccessGiven, "Share",
			"%s can reach this member, with Secret %s/%s", o.tool.title, before.Namespace, before.Name)
		return decision{action: apply}, nil
	case err != nil:
		return decision{}, fmt.Errorf("reading Secret %s/%s: %w", before.Namespace, before.Name, err)
	case !o.owns(before):
		return decision{keep, reasons.AccessSecretTaken, fmt.Sprintf("%s does not get the kubeconfig of this member: Secret %s/%s "+
			"exists and is not the hub's; delete it if you do not need it", o.tool.title, before.Namespace, before.Name)}, nil
	}
	after := before.DeepCopy()
	if err := o.render(after); err != nil || equality.Semantic.DeepEqual(before, after) {
		return decision{action: apply}, err
	}
	if err := kube.Patch(ctx, c.Client, before, after); err != nil {
		return decision{}, fmt.Errorf("updating Secret %s/%s: %w", after.Namespace, after.Name, err)
	}
	return decision{action: apply}, nil
}

// owns reports whether the hub created a Secret for this member and tool.
func (o observed) owns(secret client.Object) bool {
	return secret.GetLabels()[fleet.LabelManaged] == "true" && secret.GetLabels()[fleet.LabelAccess] == o.tool.name &&
		secret.GetAnnotations()[fleet.AnnotationAccessOf] == o.key.String()
}

// render sets the hub's part of a Secret. Labels and annotations of other writers stay.
func (o observed) render(secret *corev1.Secret) (err error) {
	if secret.Data, err = o.tool.data(o.key, o.kubeconfig); err != nil {
		return fmt.Errorf("encoding the kubeconfig of %s for %s", o.key, o.tool.title) // the cause may quote it
	}
	if secret.Type == "" {
		secret.Type = corev1.SecretTypeOpaque
	}
	inventory.CopyLabels(&secret.ObjectMeta, o.record.GetLabels(), reserved)
	secret.Labels[fleet.LabelManaged], secret.Labels[fleet.LabelAccess] = "true", o.tool.name
	if o.key.Namespace != "" {
		secret.Labels[fleet.LabelWorkspace] = o.key.Namespace
	}
	secret.Annotations[fleet.AnnotationAccessOf] = o.key.String()
	if o.tool.name == argoCD {
		secret.Labels[labelArgoCD], secret.Annotations[annotationServer] = "cluster", o.serverDigest()
	}
	return nil
}

// reserved reports whether a label has a meaning to a fleet or to the tools, and is not copied.
func reserved(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return membernamespace.ReservedLabel(key) || strings.HasSuffix(domain, "argoproj.io") || strings.HasSuffix(domain, "fluxcd.io")
}

func (o observed) serverDigest() string {
	return naming.DigestOfParts(o.tool.namespace, authority(o.kubeconfig.Server))
}

// remove deletes Secrets of the hub, by the UID in its cache.
func (c *Controller) remove(ctx context.Context, o observed, secrets []client.Object) error {
	for _, secret := range secrets {
		if !o.owns(secret) {
			continue
		}
		if err := kube.DeleteByUID(ctx, c.Client, secret); err != nil {
			return err
		}
		if o.record != nil {
			c.Recorder.Eventf(o.record, nil, corev1.EventTypeNormal, reasons.AccessEnded, "Share", "%s has no kubeconfig of this member in "+
				"namespace %s any more", o.tool.title, secret.GetNamespace())
		}
	}
	return nil
}

// report emits one Event on the membership object for each new problem.
func (c *Controller) report(o observed, next decision) {
	key := subject{o.key.String(), o.tool.name}
	if next.message == "" {
		c.reported.Forget(key)
		return
	}
	before, _ := c.reported.Get(key)
	c.reported.Set(key, next.message)
	if before != next.message {
		c.Recorder.Eventf(o.record, nil, corev1.EventTypeWarning, next.reason, "Share", "%s", next.message)
	}
}
