// Package selfimport makes the hub a member of its own fleet. It creates the Cluster `local` and a
// kubeconfig, and the importer then installs an agent there, as on any other cluster.
//
// Selfimport creates the Namespace of the setting bootstrap.namespace and the ClusterGroup
// `default` once. It writes the Secret `local-cluster` and, in the Cluster, the fields with a
// setting. Its invariant: the credential for the import is valid for an hour, and the hub renews it
// only while an import is pending.
package selfimport

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// Deps holds the dependencies of the controller.
type Deps struct {
	controller.Deps
	// Hub is the hub's configuration for its own cluster.
	Hub *rest.Config
}

// Controller keeps the local cluster.
type Controller struct{ Deps }

// New returns the controller.
func New(deps Deps) *Controller { return &Controller{deps} }

// Register adds the controller to the manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("local").
		Watches(&fleet.Cluster{}, handler.EnqueueRequestsFromMapFunc(c.ifLocal)).
		WatchesRawSource(source.Func(func(_ context.Context, queue controller.Queue) error {
			queue.Add(request) // before the Cluster exists there is no event
			return nil
		})).
		WatchesRawSource(source.Channel(c.Config.Subscribe(),
			handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
				return []reconcile.Request{request}
			}))).
		Complete(controller.RetryConflicts(c.Recorder, c))
}

// request is the only one; the namespace of the Cluster is in the settings.
var request = reconcile.Request{NamespacedName: types.NamespacedName{Name: ClusterName}}

func (c *Controller) ifLocal(_ context.Context, o client.Object) []reconcile.Request {
	if o.GetName() == ClusterName && o.GetNamespace() == c.Config.Current().Bootstrap.Namespace {
		return []reconcile.Request{request}
	}
	return nil
}

// Reconcile brings the local cluster in line with the settings.
func (c *Controller) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	if c.Config.Current().Unknown {
		return ctrl.Result{}, nil // the settings enqueue it
	}
	o, err := c.observe(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	next := decide(o, c.Clock.Now())
	if next.records && o.found == nil {
		return ctrl.Result{}, c.createAll(ctx, o, next.credential)
	}
	if next.records {
		if err := c.writeRecords(ctx, o); err != nil {
			return ctrl.Result{}, err
		}
	}
	if next.credential {
		err = c.writeCredential(ctx, o)
	}
	return ctrl.Result{}, err
}

func (c *Controller) observe(ctx context.Context) (observed, error) {
	o := observed{wanted: c.Config.Current().Bootstrap}
	if o.wanted.Namespace == "" {
		return o, nil
	}
	var cluster fleet.Cluster
	err := c.Client.Get(ctx, types.NamespacedName{Namespace: o.wanted.Namespace, Name: ClusterName}, &cluster)
	if apierrors.IsNotFound(err) {
		return o, nil
	} else if err != nil {
		return o, fmt.Errorf("reading Cluster %s/%s: %w", o.wanted.Namespace, ClusterName, err)
	}
	o.found = &cluster
	imported := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionImported)
	if o.imported = imported != nil && imported.Status == corev1.ConditionTrue; !o.imported {
		o.expires, err = c.expiry(ctx, o.wanted.Namespace)
	}
	return o, err
}

// expiry returns the expiry of the credential in the Secret; zero if there is none.
func (c *Controller) expiry(ctx context.Context, namespace string) (time.Time, error) {
	var secret corev1.Secret
	if err := c.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: secretName}, &secret); err != nil {
		return time.Time{}, client.IgnoreNotFound(err)
	}
	kubeconfig, err := clientcmd.Load(secret.Data["value"])
	if err != nil || kubeconfig.AuthInfos["user"] == nil {
		return time.Time{}, nil //nolint:nilerr // the Secret was edited, and is written again
	}
	claims, err := credential.ReadClaims(kubeconfig.AuthInfos["user"].Token)
	if err != nil {
		return time.Time{}, nil //nolint:nilerr // likewise
	}
	return claims.Expires, nil
}

func (c *Controller) writeRecords(ctx context.Context, o observed) error {
	want := desired(o.found, o.wanted)
	if err := c.Client.Patch(ctx, want, client.MergeFrom(o.found), kube.FieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("bringing Cluster %s/%s in line with the settings: %w", want.Namespace, want.Name, err)
	}
	return nil
}

// createAll creates the objects of the local cluster. It creates the kubeconfig before the Cluster,
// because the importer must find it.
func (c *Controller) createAll(ctx context.Context, o observed, credential bool) error {
	want := desired(nil, o.wanted)
	if err := c.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.wanted.Namespace}}); err != nil {
		return err
	}
	if credential {
		// Without its ServiceAccount there is no credential; an Event on the Cluster reports this later.
		if err := c.writeCredential(ctx, o); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	for _, object := range []client.Object{want, group(o.wanted.Namespace)} {
		if err := c.create(ctx, object); err != nil {
			return err
		}
	}
	ctrl.LoggerFrom(ctx).Info("The hub is a cluster of its own fleet", "namespace", want.Namespace, "cluster", want.Name)
	return nil
}

func (c *Controller) create(ctx context.Context, object client.Object) error {
	if err := c.Client.Create(ctx, object, kube.FieldOwner); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %s: %w", kube.Describe(c.Client.Scheme(), object), err)
	}
	return nil
}

// writeCredential writes a kubeconfig for the importer to the Secret named by the Cluster.
func (c *Controller) writeCredential(ctx context.Context, o observed) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.SystemNamespace, Name: accountName}}
	token, err := kube.RequestToken(ctx, c.Client.SubResource("token"), account, credentialLife)
	if apierrors.IsNotFound(err) && o.found != nil {
		c.Recorder.Eventf(o.found, nil, corev1.EventTypeWarning, reasons.AccountMissing,
			"Import", "ServiceAccount %s/%s does not exist, so the hub cannot install "+
				"its own agent: install the chart fleet with bootstrap.enabled=true", c.SystemNamespace, accountName)
	}
	if err != nil {
		return err
	}
	secret, err := kubeconfigSecret(o.wanted.Namespace, c.Hub, token)
	if err != nil {
		return err
	}
	return kube.Ensure(ctx, c.Client, secret)
}
