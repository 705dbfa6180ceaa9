// Package clusterapi registers clusters created by Cluster API. A workspace requests this by a
// label. Each kubeconfig Secret of Cluster API's convention there becomes an imported Cluster.
//
// Clusterapi creates Clusters, and copies labels and annotations of the clusters of Cluster API to
// them by a rule of the settings (follow.go, rule.go). If the settings require it, it deletes a
// Cluster before Cluster API deletes the machines (leave.go). Only the importer reads the Secret.
// Its invariant: it changes nothing else of an existing Cluster, and no label of a user. It
// remembers no deletion of a Cluster, because it would have to write to another owner's object. A
// label on the Secret keeps a cluster out.
package clusterapi

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/servedkinds"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// Keys of Cluster API's contract.
const (
	// LabelClusterName is on every object of a cluster of Cluster API.
	LabelClusterName = "cluster.x-k8s.io/cluster-name"
	// annotationPaused on a cluster pauses it, like spec.paused.
	annotationPaused = "cluster.x-k8s.io/paused"
	group            = "cluster.x-k8s.io"
	secretSuffix     = "-kubeconfig"
)

// Controller reconciles kubeconfig Secrets.
type Controller struct {
	controller.Deps
	// cache holds the metadata of Secrets with LabelClusterName, and of namespaces with the label for
	// registration.
	cache cache.Cache
	// followed are the clusters of Cluster API.
	followed followed
}

// New returns the controller.
func New(deps controller.Deps) *Controller { return &Controller{Deps: deps} }

// Register adds the controller to the manager, with a cache of its own: the manager's cache holds
// only the hub's objects.
func (c *Controller) Register(ctx context.Context, mgr ctrl.Manager) error {
	named, err := labels.NewRequirement(LabelClusterName, selection.Exists, nil)
	if err != nil {
		return err
	}
	c.cache, err = controller.NewCache(ctx, mgr, "Cluster API's kubeconfigs", map[client.Object]cache.ByObject{
		kube.CoreMetadata("Secret"):    {Label: labels.NewSelector().Add(*named)},
		kube.CoreMetadata("Namespace"): {Label: labels.SelectorFromSet(labels.Set{fleet.LabelClusterAPI: "true"})},
	})
	if err != nil {
		return err
	}
	if c.followed.cache, err = controller.NewLazyCache(mgr, "the clusters of Cluster API", nil); err != nil {
		return err
	}
	follows := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		if o != nil && o.GetObjectKind().GroupVersionKind() == servedkinds.DefinitionKind && o.GetName() != definition {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: definition}}}
	})
	if err := c.registerLeaver(mgr); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("clusterapi").
		WatchesRawSource(source.Func(c.followed.start)).
		WatchesRawSource(source.Channel(c.Config.Subscribe(), follows)).
		Watches(kube.Metadata(servedkinds.DefinitionKind), follows).
		WatchesRawSource(source.Kind(c.cache, kube.CoreMetadata("Secret"),
			&handler.TypedEnqueueRequestForObject[*metav1.PartialObjectMetadata]{})).
		WatchesRawSource(source.Kind(c.cache, kube.CoreMetadata("Namespace"), handler.TypedEnqueueRequestsFromMapFunc(c.secretsIn))).
		Complete(controller.RetryConflicts(c.Recorder, c))
}

func (c *Controller) secretsIn(ctx context.Context, namespace *metav1.PartialObjectMetadata) []reconcile.Request {
	var secrets metav1.PartialObjectMetadataList
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	return controller.All(c.cache, &secrets, client.InNamespace(namespace.Name))(ctx, namespace)
}

// Reconcile registers the cluster of a kubeconfig.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if request.Namespace == "" {
		return c.follow(ctx)
	}
	secret := kube.CoreMetadata("Secret")
	if err := c.cache.Get(ctx, request.NamespacedName, secret); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	theirs := clusterOf(secret)
	if theirs == "" || secret.DeletionTimestamp != nil {
		return ctrl.Result{}, nil // another Secret of the same cluster, such as its CA
	}
	if secret.Labels[fleet.LabelClusterAPI] == "false" {
		return ctrl.Result{}, nil
	}
	if err := c.cache.Get(ctx, types.NamespacedName{Name: secret.Namespace}, kube.CoreMetadata("Namespace")); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	name := naming.CleanCluster(theirs)
	var existing fleet.Cluster
	for _, candidate := range []string{name, theirs} { // earlier versions used the second
		err := c.Client.Get(ctx, types.NamespacedName{Namespace: secret.Namespace, Name: candidate}, &existing)
		if err == nil {
			c.explain(&existing, secret.Name)
			return ctrl.Result{}, c.carry(ctx, &existing, theirs)
		} else if !apierrors.IsNotFound(err) {
			return ctrl.Result{}, fmt.Errorf("reading Cluster %s/%s: %w", secret.Namespace, candidate, err)
		}
	}
	if waits, err := c.waits(ctx, secret, theirs); waits || err != nil {
		return ctrl.Result{}, err
	}
	made := desired(secret, theirs, name)
	if err := c.Client.Create(ctx, made, kube.FieldOwner); err != nil && !apierrors.IsAlreadyExists(err) {
		return ctrl.Result{}, fmt.Errorf("creating Cluster %s/%s: %w", secret.Namespace, name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Cluster registered from Cluster API", "cluster", name, "secret", secret.Name)
	if made.UID == "" { // another process has created it, and the cache enqueues it
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, c.carry(ctx, made, theirs)
}

// clusterOf returns the name of the cluster behind a kubeconfig Secret, or "". If the name does not
// fit into a label, the label holds another text, and the owner has the name.
func clusterOf(secret *metav1.PartialObjectMetadata) string {
	name, found := strings.CutSuffix(secret.Name, secretSuffix)
	if !found || secret.Labels[LabelClusterName] != name && ownerOf(secret, name) == nil {
		return ""
	}
	return name
}

// ownerOf returns the owner of a Secret if it is a cluster of Cluster API with this name.
func ownerOf(secret *metav1.PartialObjectMetadata, name string) *metav1.OwnerReference {
	for i, owner := range secret.OwnerReferences {
		if owner.Name == name && kube.IsOwner(owner, schema.GroupKind{Group: group, Kind: "Cluster"}) {
			return &secret.OwnerReferences[i]
		}
	}
	return nil
}

// explain emits an Event about an existing Cluster that blocks the registration.
func (c *Controller) explain(existing *fleet.Cluster, secret string) {
	if existing.Spec.KubeConfigSecret != secret {
		c.Recorder.Eventf(existing, nil, corev1.EventTypeWarning, reasons.NotFromClusterAPI, "Register",
			"Secret %s of Cluster API is for a cluster of this name, and this Cluster does not use it: set spec.kubeConfigSecret to %s, or rename "+
				"one of the two", secret, secret)
	}
}

// desired returns the Cluster, called name, for a kubeconfig. Its owner is the owning cluster of
// Cluster API, if the Secret has one.
func desired(secret *metav1.PartialObjectMetadata, theirs, name string) *fleet.Cluster {
	cluster := &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: secret.Namespace, Name: name, Labels: map[string]string{LabelClusterName: secret.Labels[LabelClusterName]},
		},
		Spec: fleet.ClusterSpec{KubeConfigSecret: secret.Name},
	}
	if owner := ownerOf(secret, theirs); owner != nil {
		cluster.OwnerReferences = []metav1.OwnerReference{{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID}}
	}
	return cluster
}
