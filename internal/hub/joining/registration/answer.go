package registration

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// annotationRequest on the objects of a legacy answer names the request. The request is in another
// namespace and cannot own them.
const annotationRequest = "muster/registration"

// legacyAnswer returns the answer for polling upstream agents: the right to read a Secret, and last
// the Secret.
func (c *Controller) legacyAnswer(r *fleet.ClusterRegistration, tokenAccount string, answer credential.Answer) []client.Object {
	secret := naming.CredentialSecret(r.Spec.ClientID, r.Spec.ClientRandom)
	meta := metav1.ObjectMeta{
		Name: secret, Namespace: c.answersIn(),
		Labels:      map[string]string{fleet.LabelManaged: "true"},
		Annotations: map[string]string{annotationRequest: client.ObjectKeyFromObject(r).String()},
	}
	reader := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: r.Namespace, Name: tokenAccount}
	if tokenAccount == "" {
		// Agents before 0.16 do not name their token. The name of the Secret is unguessable.
		reader = rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:" + r.Namespace}
	}
	labelled := *meta.DeepCopy()
	if len(validation.IsValidLabelValue(answer.ClusterName)) == 0 {
		labelled.Labels[fleet.LabelCluster] = answer.ClusterName
	}
	return []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret}, Verbs: []string{"get"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: secret},
			Subjects:   []rbacv1.Subject{reader},
		},
		&corev1.Secret{ObjectMeta: labelled, Type: fleet.SecretTypeCredential, StringData: map[string]string{
			"token":               answer.Token,
			"deploymentNamespace": answer.DeploymentNamespace,
			"clusterNamespace":    answer.ClusterNamespace,
			"clusterName":         answer.ClusterName,
			"systemNamespace":     answer.SystemNamespace,
		}},
	}
}

// withdrawAnswer deletes the objects for handing over the credential: the answer, then the right to
// read it. It returns the time until the right is removed.
func (c *Controller) withdrawAnswer(ctx context.Context, r *fleet.ClusterRegistration) (time.Duration, error) {
	if len(r.Status.Answer) > 0 {
		after := r.DeepCopy()
		after.Status.Answer = nil
		if err := kube.PatchStatus(ctx, c.Client, r, after); err != nil {
			return 0, client.IgnoreNotFound(err)
		}
		c.expected.Expect(client.ObjectKeyFromObject(after), after)
	}
	if len(r.Spec.AnswerKey) == 0 {
		if err := c.deleteAnswer(ctx, client.ObjectKeyFromObject(r), c.legacyAnswer(r, "", credential.Answer{})...); err != nil {
			return 0, err
		}
		if !r.Status.Granted { // no killed hub has left more than a name without its Secret
			return c.endReadingOf(ctx, client.ObjectKeyFromObject(r))
		}
		return c.endReading(ctx, r, c.answersIn(), naming.CredentialSecret(r.Spec.ClientID, r.Spec.ClientRandom))
	}
	return c.endReading(ctx, r, "", r.Name)
}

// deleteAnswer deletes the given objects if they are the answer to a request, or the right to read
// it, and no foreign objects. The cache holds them all.
func (c *Controller) deleteAnswer(ctx context.Context, request types.NamespacedName, objects ...client.Object) error {
	for _, object := range objects {
		have := kube.MetadataOf(c.Client.Scheme())(object)
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), have)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading %s: %w", kube.Describe(c.Client.Scheme(), object), err)
		}
		if err != nil || have.GetAnnotations()[annotationRequest] != request.String() {
			continue
		}
		object.SetUID(have.GetUID())
		if err := kube.DeleteByUID(ctx, c.Client, object); err != nil {
			return err
		}
	}
	return nil
}

// deleteOrphans deletes the answer to a deleted request, and the right to read it. A killed hub may
// have left only some of the objects.
func (c *Controller) deleteOrphans(ctx context.Context, request types.NamespacedName) error {
	orphans, err := c.answersTo(ctx, request)
	if err != nil || len(orphans) == 0 {
		return err
	}
	var r fleet.ClusterRegistration
	if err := c.Live.Get(ctx, request, &r); !apierrors.IsNotFound(err) || kube.NotServed(err) {
		return err // the cache lags behind, or the API server does not serve the kind; neither proves anything about the request
	}
	for i := range orphans {
		if err := kube.DeleteByUID(ctx, c.Client, &orphans[i]); err != nil {
			return err
		}
	}
	return nil
}

// answersTo lists the existing objects of a legacy answer to a request.
func (c *Controller) answersTo(ctx context.Context, request types.NamespacedName) (objects []metav1.PartialObjectMetadata, err error) {
	namespace := client.InNamespace(c.answersIn())
	for _, kind := range []schema.GroupVersionKind{
		rbacv1.SchemeGroupVersion.WithKind("Role"), rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
		corev1.SchemeGroupVersion.WithKind("Secret"),
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.Client.List(ctx, list, namespace, client.MatchingFields{indexRequest: request.String()}); err != nil {
			return nil, fmt.Errorf("listing each %s of the answer to ClusterRegistration %s: %w", kind.Kind, request, err)
		}
		for _, object := range list.Items {
			object.SetGroupVersionKind(kind)
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// requestOf indexes the objects of answers by their request.
func requestOf(o client.Object) []string {
	if request := o.GetAnnotations()[annotationRequest]; request != "" {
		return []string{request}
	}
	return nil
}
