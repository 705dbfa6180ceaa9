package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

const protected = "muster/protected"

// mark sets or removes the mark of an object, as an annotation or a label.
func mark(by client.Client, o client.Object, field, value string) error {
	patch := `{"metadata":{"` + field + `":{"` + protected + `":` + value + `}}}`
	return by.Patch(context.Background(), o.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(patch)))
}

// TestWhatIsProtectedIsNotDeleted marks an object of each kind, and lets an administrator and a
// tenant try to delete it.
func TestWhatIsProtectedIsNotDeleted(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	meta := metav1.ObjectMeta{Namespace: f.workspace, Name: "kept"}
	global := metav1.ObjectMeta{Name: "kept-" + f.workspace}
	everything := []string{"get", "create", "update", "patch", "delete", "deletecollection"}
	tenant, _ := f.userWith(f.workspace, "tenant", rbacv1.PolicyRule{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusters", "clusterregistrationtokens"}, Verbs: everything,
	})
	config := rest.CopyConfig(f.cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + naming.SystemNamespace + ":fleet-controller", Groups: []string{"system:masters"},
	}
	hub, err := client.New(config, client.Options{Scheme: f.Scheme()})
	f.check(err)
	identity := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: f.workspace, Name: "tenant"}
	for _, o := range []client.Object{
		&fleet.Cluster{ObjectMeta: meta},
		&fleet.ClusterRegistrationToken{ObjectMeta: meta},
		&clusterv1beta1.MemberCluster{ObjectMeta: global, Spec: clusterv1beta1.MemberClusterSpec{Identity: identity}},
		&corev1.Namespace{ObjectMeta: global},
	} {
		gvk, err := f.GroupVersionKindFor(o)
		f.check(err)
		f.check(f.Create(ctx, o))
		for _, field := range []string{"annotations", "labels"} {
			f.check(mark(f, o, field, `"true"`))
			err := f.Delete(ctx, o)
			verb := map[string]string{"annotations": "annotate ", "labels": "label "}[field]
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), verb) ||
				!strings.Contains(err.Error(), o.GetName()+" muster/protected-") {
				t.Errorf("deleting a protected %s: %v", gvk.Kind, err)
			}
			_, isToken := o.(*fleet.ClusterRegistrationToken)
			if err := hub.Delete(ctx, o.DeepCopyObject().(client.Object), client.DryRunAll); apierrors.IsForbidden(err) == isToken {
				t.Errorf("the hub deletes a protected %s: %v", gvk.Kind, err) // only tokens expire
			}
			if o.GetNamespace() != "" {
				if err := mark(tenant, o, field, "null"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "verb protect on") {
					t.Errorf("a tenant takes the mark off a %s: %v", gvk.Kind, err)
				}
				if err := mark(tenant, o, field, `"false"`); !apierrors.IsForbidden(err) {
					t.Errorf("a tenant changes the mark of a %s: %v", gvk.Kind, err)
				}
				err := tenant.DeleteAllOf(ctx, o.DeepCopyObject().(client.Object), client.InNamespace(f.workspace),
					client.MatchingFields{"metadata.name": o.GetName()})
				if !apierrors.IsForbidden(err) {
					t.Errorf("a tenant deletes all of kind %s: %v", gvk.Kind, err)
				}
			}
			f.check(mark(f, o, field, "null"))
		}
		f.check(f.Delete(ctx, o))
	}

	workspace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "doomed-" + f.workspace}}
	f.check(f.Create(ctx, workspace))
	inside := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: workspace.Name, Name: "inside", Annotations: map[string]string{protected: "true"},
	}}
	f.check(f.Create(ctx, inside))
	f.eventually("a workspace with a member is not deleted by accident", func() error {
		err := f.Delete(ctx, workspace.DeepCopy(), client.DryRunAll)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), workspace.Name+" muster/delete-with-members=true") {
			return fmt.Errorf("deleting it: %v", err)
		}
		return nil
	})
	f.patch(workspace, `{"metadata":{"annotations":{"muster/delete-with-members":"true"}}}`)
	f.check(f.Delete(ctx, workspace))
	f.eventually("the namespace names the protected member", func() error {
		if err := f.Get(ctx, client.ObjectKeyFromObject(workspace), workspace); err != nil {
			return err
		}
		for _, c := range workspace.Status.Conditions {
			if c.Type == corev1.NamespaceDeletionContentFailure && strings.Contains(c.Message, "inside is protected") {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", workspace.Status.Conditions)
	})
	f.check(mark(f, inside, "annotations", "null"))
	f.eventually("the namespace is gone", func() error { return gone(f.Get(ctx, client.ObjectKeyFromObject(workspace), workspace)) })

	made := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: f.workspace, Name: "mine", Annotations: map[string]string{protected: "true"},
	}}
	if err := tenant.Create(ctx, made); !apierrors.IsForbidden(err) {
		t.Errorf("a tenant creates a protected Cluster, which no administrator has asked for: %v", err)
	}
}
