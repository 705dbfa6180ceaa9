package registration

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/standby"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// The Role for the answers to an account is in another namespace, so the account cannot own it.
// Annotations name the account, and the hub deletes the Role after the account.
const (
	annotationReader    = "muster/reader"
	annotationReaderUID = "muster/reader-uid"
)

// objects returns the Role with these names, and its RoleBinding. Without a name the Role has no
// rule: a rule without names would be for all objects.
func (r *reader) objects(names []string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	account := client.ObjectKeyFromObject(r.account)
	key := roleOf(account, r.answersIn)
	meta := metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace, Labels: map[string]string{fleet.LabelManaged: "true"}}
	rule := rbacv1.PolicyRule{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusterregistrations"}, ResourceNames: names,
		Verbs: []string{"get", "list", "watch"},
	}
	if r.answersIn != "" {
		meta.Annotations = map[string]string{annotationReader: account.String(), annotationReaderUID: string(r.account.UID)}
		rule.APIGroups, rule.Resources, rule.Verbs = []string{""}, []string{"secrets"}, []string{"get"}
	} else {
		meta.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ServiceAccount", Name: r.account.Name, UID: r.account.UID, Controller: new(true), BlockOwnerDeletion: new(true),
		}}
	}
	role := &rbacv1.Role{ObjectMeta: *meta.DeepCopy()}
	metav1.SetMetaDataAnnotation(&role.ObjectMeta, annotationReadable, strconv.Itoa(len(names)))
	if len(names) > 0 {
		role.Rules = append(role.Rules, rule)
	}
	return role, &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: key.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
}

// owns reports whether the hub has created an object for the account of the reader.
func (r *reader) owns(o client.Object) bool {
	if r.answersIn != "" {
		return o.GetAnnotations()[annotationReaderUID] == string(r.account.UID)
	}
	return metav1.IsControlledBy(o, r.account)
}

// readerOf returns the account of a Role with readable names, and the UID if the Role is for
// answers. A tenant cannot write where the answers are.
func (c *Controller) readerOf(role client.Object) (account types.NamespacedName, answersTo types.UID, found bool) {
	annotations := role.GetAnnotations()
	if namespace, name, is := strings.Cut(annotations[annotationReader], "/"); is && role.GetNamespace() == c.answersIn() {
		return types.NamespacedName{Namespace: namespace, Name: name}, types.UID(annotations[annotationReaderUID]), true
	}
	if owner := metav1.GetControllerOf(role); owner != nil && annotations[annotationReadable] != "" {
		return types.NamespacedName{Namespace: role.GetNamespace(), Name: owner.Name}, "", true
	}
	return types.NamespacedName{}, "", false
}

// answersIn returns the namespace of the Secrets that answer agents of Rancher Fleet.
func (c *Controller) answersIn() string { return naming.RegistrationNamespace(c.SystemNamespace) }

// writeLegacyAnswer writes the right to read an answer, then the answer. The answers to an account
// share one Role. An agent before 0.16 does not name its token, and its answer has a Role of its
// own.
func (c *Controller) writeLegacyAnswer(ctx context.Context, r *fleet.ClusterRegistration, tokenAccount string,
	objects ...client.Object) error {
	if tokenAccount == "" {
		return kube.Ensure(ctx, c.Client, objects...)
	}
	reader, err := c.reader(ctx, types.NamespacedName{Namespace: r.Namespace, Name: tokenAccount}, c.answersIn())
	if err != nil {
		return err
	}
	if reader == nil { // the agent can read nothing with a deleted account
		return kube.Ensure(ctx, c.Client, objects...)
	}
	secret := naming.CredentialSecret(r.Spec.ClientID, r.Spec.ClientRandom)
	c.readers.note(client.ObjectKeyFromObject(r), readable{reader, secret})
	if err := reader.add(ctx, secret); err != nil {
		return err
	}
	return kube.Ensure(ctx, c.Client, objects[len(objects)-1])
}

// onAccountGone enqueues the Role for the answers to a deleted account.
func (c *Controller) onAccountGone(ctx context.Context, account, _ client.Object, q controller.Queue) {
	key := roleOf(client.ObjectKeyFromObject(account), c.answersIn())
	if err := c.Client.Get(ctx, key, kube.Metadata(rbacv1.SchemeGroupVersion.WithKind("Role"))); err == nil {
		q.Add(reconcile.Request{NamespacedName: key})
	}
}

// deleteAnswersRole deletes the Role for the answers to a deleted account, and its RoleBinding.
func (c *Controller) deleteAnswersRole(ctx context.Context, role *metav1.PartialObjectMetadata) error {
	c.readers.forget(client.ObjectKeyFromObject(role))
	binding := kube.Metadata(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"))
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(role), binding)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && binding.Annotations[annotationReaderUID] == role.Annotations[annotationReaderUID] {
		if err := kube.DeleteByUID(ctx, c.Client, binding); err != nil {
			return err
		}
	}
	return kube.DeleteByUID(ctx, c.Client, role)
}

// makeReadableToStandby lets the account of the standby read one request. All agents share this
// account, so it cannot list requests, and the names are random.
func (c *Controller) makeReadableToStandby(ctx context.Context, r *fleet.ClusterRegistration) error {
	role, binding := standby.Reading(r, c.SystemNamespace)
	missing, err := kube.Missing(ctx, c.Client, kube.MetadataOf(c.Client.Scheme()), role, binding)
	if err != nil {
		return err
	}
	return kube.Ensure(ctx, c.Client, missing...)
}

// tokenAccount returns the metadata of an account; nil if there is none.
func (c *Controller) tokenAccount(ctx context.Context, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	have := kube.CoreMetadata("ServiceAccount")
	err := c.Client.Get(ctx, key, have)
	if apierrors.IsNotFound(err) { // the cache may lag behind
		err = c.Live.Get(ctx, key, have)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading ServiceAccount %s: %w", key, err)
	}
	return have, nil
}
