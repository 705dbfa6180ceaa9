package registration

import (
	"context"
	"fmt"

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

// roleName returns the name of the Role and the RoleBinding that let an agent read its request.
// They do not use the request's name, because the agent chooses it, and a foreign Role may have the
// same name.
func roleName(r *fleet.ClusterRegistration) string {
	return naming.SafeConcat("registration", string(r.UID))
}

// readRight lets one account read its request.
func readRight(r *fleet.ClusterRegistration, tokenAccount string) []client.Object {
	meta := metav1.ObjectMeta{
		Name: roleName(r), Namespace: r.Namespace,
		Labels:          map[string]string{fleet.LabelManaged: "true"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(r, fleet.GroupVersion.WithKind("ClusterRegistration"))},
	}
	return []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusterregistrations"},
			ResourceNames: []string{r.Name}, Verbs: []string{"get", "list", "watch"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: roleName(r)},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.Namespace, Name: tokenAccount}},
		},
	}
}

// makeReadable lets a native agent watch its request before any other step, so that the agent need
// not poll.
func (c *Controller) makeReadable(ctx context.Context, r *fleet.ClusterRegistration, o observation) error {
	if !o.native || o.tokenAccount == "" {
		return nil
	}
	missing, err := kube.Missing(ctx, c.Client, kube.MetadataOf(c.Client.Scheme()), readRight(r, o.tokenAccount)...)
	if err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(r)
	if len(missing) == 0 {
		c.tracker.readable.Delete(key)
		return nil
	}
	if written, _ := c.tracker.readable.Load(key); written == r.UID {
		return nil
	}
	if err := kube.Ensure(ctx, c.Client, missing...); err != nil {
		return err
	}
	c.tracker.readable.Store(key, r.UID)
	return nil
}

// legacyAnswer returns the answer that upstream agents poll for: the right to read a Secret, and
// the Secret.
func (c *Controller) legacyAnswer(r *fleet.ClusterRegistration, tokenAccount string, answer credential.Answer) []client.Object {
	secret := naming.CredentialSecret(r.Spec.ClientID, r.Spec.ClientRandom)
	meta := metav1.ObjectMeta{
		Name: secret, Namespace: naming.RegistrationNamespace(c.SystemNamespace),
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

// withdrawAnswer deletes the objects that only handed over the credential: the answer, then the
// right to read it.
func (c *Controller) withdrawAnswer(ctx context.Context, r *fleet.ClusterRegistration) error {
	if len(r.Status.Answer) > 0 {
		after := r.DeepCopy()
		after.Status.Answer = nil
		if err := kube.PatchStatus(ctx, c.Client, r, after); err != nil {
			return client.IgnoreNotFound(err)
		}
		c.expected.Expect(client.ObjectKeyFromObject(after), after)
	}
	if len(r.Spec.AnswerKey) == 0 {
		return c.deleteAnswer(ctx, client.ObjectKeyFromObject(r), c.legacyAnswer(r, "", credential.Answer{})...)
	}
	return c.deleteAnswer(ctx, client.ObjectKeyFromObject(r), readRight(r, "")...)
}

// deleteAnswer deletes the given objects if they are the answer to a request, or the right to read
// it. The cache holds them all.
func (c *Controller) deleteAnswer(ctx context.Context, request types.NamespacedName, objects ...client.Object) error {
	for _, object := range objects {
		have := kube.MetadataOf(c.Client.Scheme())(object)
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), have)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading %s: %w", kube.Describe(c.Client.Scheme(), object), err)
		}
		if err != nil || !answers(have, request) {
			continue
		}
		object.SetUID(have.GetUID())
		if err := kube.DeleteByUID(ctx, c.Client, object); err != nil {
			return err
		}
	}
	return nil
}

// answers reports whether an object with the name of an answer is the answer to the request, and no
// foreign object.
func answers(o client.Object, request types.NamespacedName) bool {
	if said, ok := o.GetAnnotations()[annotationRequest]; ok {
		return said == request.String()
	}
	owner := kube.ControllerOf(o, fleet.GroupVersion.WithKind("ClusterRegistration").GroupKind())
	return owner != nil && owner.Name == request.Name && o.GetNamespace() == request.Namespace
}

// deleteOrphans deletes the answer to a request that is gone, and the right to read it. A hub that
// died during the writes may have left only some of the objects.
func (c *Controller) deleteOrphans(ctx context.Context, request types.NamespacedName) error {
	orphans, err := c.answersTo(ctx, request)
	if err != nil || len(orphans) == 0 {
		return err
	}
	var r fleet.ClusterRegistration
	if err := c.Live.Get(ctx, request, &r); !apierrors.IsNotFound(err) || kube.NotServed(err) {
		return err // the cache lags behind, or the API server does not serve the kind, which proves nothing about the request
	}
	for i := range orphans {
		if err := kube.DeleteByUID(ctx, c.Client, &orphans[i]); err != nil {
			return err
		}
	}
	return nil
}

// answersTo lists the existing objects of a legacy answer to a request.
func (c *Controller) answersTo(ctx context.Context, request types.NamespacedName) (all []metav1.PartialObjectMetadata, err error) {
	namespace := client.InNamespace(naming.RegistrationNamespace(c.SystemNamespace))
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
			all = append(all, object)
		}
	}
	return all, nil
}

// requestOf indexes the objects of answers by their request.
func requestOf(o client.Object) []string {
	if request := o.GetAnnotations()[annotationRequest]; request != "" {
		return []string{request}
	}
	return nil
}
