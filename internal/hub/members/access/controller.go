// Package access gives other tools the kubeconfigs of members: Argo CD, Flux, and readers of
// ClusterProfiles.
//
// Access owns the Secrets with the label muster/access in the namespaces of the tools. In
// status.accessProviders of the hub's ClusterProfiles it owns the entry kubeconfig-secretreader. It
// only reads the kubeconfig Secrets of users.
//
// Its invariants: a tool gets a kubeconfig only if the owner of its Secret consents and the
// settings list the workspace. It loses the kubeconfig with the consent, the setting, the member,
// and the member's access. The hub touches no Secret of another owner, keeps no kubeconfig in
// memory, and quotes none.
package access

import (
	"context"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	inventoryv1alpha1 "github.com/muster-fleet/muster/api/inventory/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/members/inventory"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// bySource finds members by their kubeconfig Secret, byMember the hub's Secrets by their member,
	// byServer cluster Secrets of Argo CD by the API server.
	bySource, byMember, byServer = "access.source", "access.member", "access.server"
	// workers is the number of concurrent reconciles.
	workers = 4
	// unwatchedRetry is the interval between checks of a namespace without a watch.
	unwatchedRetry = 30 * time.Second
)

// Deps holds the dependencies of the controller.
type Deps struct {
	controller.Deps
	// Secrets holds the metadata of all Secrets that may hold a kubeconfig.
	Secrets cache.Cache
	// Hub is the hub's configuration for its own cluster.
	Hub *rest.Config
	// Profiles reports whether the API server serves ClusterProfiles.
	Profiles bool
}

// subject is a member, and a tool with its kubeconfig.
type subject struct{ member, tool string }

// Controller reconciles membership objects. A request with a namespace names a Cluster, one without
// a MemberCluster.
type Controller struct {
	Deps
	waiting waiting
	// reported has the last problem of each member and tool.
	reported kube.Memory[subject, string]
}

// New returns the controller.
func New(deps Deps) *Controller { return &Controller{Deps: deps} }

// Register adds the controller to the manager.
func (c *Controller) Register(ctx context.Context, mgr ctrl.Manager) error {
	secret, sources := kube.CoreMetadata("Secret"), func(o client.Object) []string { return keys(sourceOf(o, c.SystemNamespace)) }
	for _, index := range []struct {
		object client.Object
		name   string
		of     client.IndexerFunc
	}{
		{&fleet.Cluster{}, bySource, sources}, {&clusterv1beta1.MemberCluster{}, bySource, sources},
		{secret, byMember, func(o client.Object) []string { return values(o.GetAnnotations()[fleet.AnnotationAccessOf]) }},
		{secret, byServer, func(o client.Object) []string { return values(o.GetAnnotations()[annotationServer]) }},
	} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, index.object, index.name, index.of); err != nil {
			return err
		}
	}
	changed := builder.WithPredicates(predicate.Or[client.Object](
		predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
	b := ctrl.NewControllerManagedBy(mgr).Named("access").
		Watches(&fleet.Cluster{}, &handler.EnqueueRequestForObject{}, changed).
		Watches(&clusterv1beta1.MemberCluster{}, &handler.EnqueueRequestForObject{}, changed).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(c.ofOwn)).
		WatchesRawSource(source.Kind(c.Secrets, secret, handler.TypedEnqueueRequestsFromMapFunc(c.ofSource))).
		WatchesRawSource(source.Channel(c.Config.Subscribe(), handler.EnqueueRequestsFromMapFunc(c.all)))
	if c.Profiles {
		b = b.Watches(&inventoryv1alpha1.ClusterProfile{}, handler.EnqueueRequestsFromMapFunc(inventory.OfProfile),
			builder.WithPredicates(providersChanged))
	}
	return b.WithOptions(controller.Workers(workers)).Complete(controller.RetryConflicts(c.Recorder, c))
}

// Reconcile gives and takes the kubeconfigs of one member.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	settings := c.Config.Current()
	if settings.Unknown {
		return ctrl.Result{}, nil // the settings enqueue it
	}
	m, err := c.observe(ctx, request.NamespacedName, settings.Access)
	if err != nil {
		return ctrl.Result{}, err
	}
	var failures []error
	var again time.Duration
	for _, tool := range tools(settings.Access) {
		wait, err := c.reconcile(ctx, m, tool, settings)
		again, failures = max(again, wait), append(failures, err)
	}
	if err := errors.Join(failures...); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// ofOwn maps a Secret of the hub to its member, and to members waiting for its API server.
func (c *Controller) ofOwn(_ context.Context, o client.Object) []reconcile.Request {
	if o.GetLabels()[fleet.LabelAccess] == "" {
		return nil
	}
	requests := c.waiting.of(o.GetAnnotations()[annotationServer])
	if namespace, name, ok := strings.Cut(o.GetAnnotations()[fleet.AnnotationAccessOf], "/"); ok {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
	}
	return requests
}

// ofSource maps a kubeconfig Secret to its members.
func (c *Controller) ofSource(ctx context.Context, secret *metav1.PartialObjectMetadata) []reconcile.Request {
	using := client.MatchingFields{bySource: client.ObjectKeyFromObject(secret).String()}
	return append(controller.All(c.Client, &fleet.ClusterList{}, using)(ctx, secret),
		controller.All(c.Client, &clusterv1beta1.MemberClusterList{}, using)(ctx, secret)...)
}

func (c *Controller) all(ctx context.Context, o client.Object) []reconcile.Request {
	return append(controller.All(c.Client, &fleet.ClusterList{})(ctx, o),
		controller.All(c.Client, &clusterv1beta1.MemberClusterList{})(ctx, o)...)
}

// values returns the value for an index; none if it is empty.
func values(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

func keys(key types.NamespacedName) []string {
	if key.Name == "" {
		return nil
	}
	return []string{key.String()}
}
