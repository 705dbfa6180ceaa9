// Package local makes the hub a member of its own fleet: the Cluster `local`, and the kubeconfig with which the importer installs
// its agent, as on any other cluster.
//
// It writes the Namespace of the setting bootstrap.namespace, once, the Secret `local-cluster`, the ClusterGroup `default` once, and
// of the Cluster the fields that settings have. Its invariant: the credential for the import lives an hour and is renewed only
// while there is something to import.
package local

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
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hub/config"
	"github.com/muster-fleet/muster/internal/kube"
)

// Deps is what the controller needs.
type Deps struct {
	Client client.Client
	// Live reads what is not cached.
	Live     client.Reader
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	Config   *config.Controller
	// Hub is how the hub reaches its own cluster.
	Hub *rest.Config
	// SystemNamespace is the hub's.
	SystemNamespace string
}

// Controller keeps the local cluster.
type Controller struct{ Deps }

// New returns a controller.
func New(deps Deps) *Controller { return &Controller{deps} }

// Register adds the controller to the manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("local").
		Watches(&fleet.Cluster{}, handler.EnqueueRequestsFromMapFunc(c.ifLocal)).
		WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			queue.Add(theOne) // there may be nothing yet that could wake it
			return nil
		})).
		WatchesRawSource(source.Channel(c.Config.Subscribe(), handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
			return []reconcile.Request{theOne}
		}))).
		Complete(c)
}

// theOne is all that there is to reconcile; where it is, the settings say.
var theOne = reconcile.Request{NamespacedName: types.NamespacedName{Name: ClusterName}}

func (c *Controller) ifLocal(_ context.Context, o client.Object) []reconcile.Request {
	if o.GetName() == ClusterName && o.GetNamespace() == c.Config.Current().Bootstrap.Namespace {
		return []reconcile.Request{theOne}
	}
	return nil
}

// Reconcile brings the local cluster in line with the settings.
func (c *Controller) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	seen, err := c.observe(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	decided := decide(seen, c.Clock.Now())
	if decided.records && seen.found == nil {
		return ctrl.Result{}, c.begin(ctx, seen, decided.credential)
	}
	if decided.records {
		if err := c.writeRecords(ctx, seen); err != nil {
			return ctrl.Result{}, err
		}
	}
	if decided.credential {
		err = c.writeCredential(ctx, seen)
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

// expiry returns until when the credential in the Secret is good; zero if there is none.
func (c *Controller) expiry(ctx context.Context, namespace string) (time.Time, error) {
	var secret corev1.Secret
	if err := c.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: secretName}, &secret); err != nil {
		return time.Time{}, client.IgnoreNotFound(err)
	}
	kubeconfig, err := clientcmd.Load(secret.Data["value"])
	if err != nil || kubeconfig.AuthInfos["user"] == nil {
		return time.Time{}, nil //nolint:nilerr // somebody's edit; it is made anew
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

// begin makes everything. The kubeconfig comes before the Cluster that names it, so that the importer finds it.
func (c *Controller) begin(ctx context.Context, o observed, credential bool) error {
	want := desired(nil, o.wanted)
	if err := c.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.wanted.Namespace}}); err != nil {
		return err
	}
	if credential {
		// Without its ServiceAccount there is none; the Cluster, once it is there, says so.
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

// writeCredential puts a kubeconfig for the importer where the Cluster says.
func (c *Controller) writeCredential(ctx context.Context, o observed) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.SystemNamespace, Name: accountName}}
	token, err := kube.RequestToken(ctx, c.Client.SubResource("token"), account, credentialLife)
	if apierrors.IsNotFound(err) && o.found != nil {
		c.Recorder.Eventf(o.found, nil, corev1.EventTypeWarning, "AccountMissing", "Import", "ServiceAccount %s/%s does not exist, so the hub cannot install "+
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
