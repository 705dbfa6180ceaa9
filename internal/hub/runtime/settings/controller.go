package settings

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/naming"
)

// Controller reads the ConfigMap after each change.
type Controller struct {
	// Clock defaults to the real clock.
	Clock  clock.PassiveClock
	client client.Client
	// live reads the Secrets with tokens, because the cache has only their metadata.
	live        client.Reader
	recorder    events.EventRecorder
	namespace   string
	current     atomic.Pointer[Config]
	subscribers []chan event.GenericEvent
}

// New returns a controller for the ConfigMap in the hub's system namespace. It has default settings
// until it has read the ConfigMap.
func New(c client.Client, recorder events.EventRecorder, namespace string) *Controller {
	made, defaults := &Controller{Clock: clock.RealClock{}, client: c, live: c, recorder: recorder, namespace: namespace}, Default()
	made.current.Store(&defaults)
	return made
}

// Current returns the settings in force.
func (c *Controller) Current() Config { return *c.current.Load() }

// Subscribe returns a channel with an event after every change of the settings. Subscribe before
// the manager starts.
func (c *Controller) Subscribe() <-chan event.GenericEvent {
	subscriber := make(chan event.GenericEvent, 1)
	c.subscribers = append(c.subscribers, subscriber)
	return subscriber
}

// Register adds the controller to the manager. The manager's cache must hold only the one
// ConfigMap. The controller runs on every replica, so a new leader has the current settings.
func (c *Controller) Register(mgr ctrl.Manager) error {
	ofHub := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetNamespace() == c.namespace })
	return ctrl.NewControllerManagedBy(mgr).Named("config").For(&corev1.ConfigMap{}).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(c.onSecret), builder.WithPredicates(ofHub)).
		WithOptions(controller.Options{NeedLeaderElection: new(false)}).Complete(c)
}

// Load reads the settings at the start, before any controller runs. Invalid settings are an error,
// because there are no earlier ones to keep.
func (c *Controller) Load(ctx context.Context, reader client.Reader) error {
	c.live = reader
	configMap, err := c.read(ctx, reader)
	if err != nil {
		return err
	}
	if configMap == nil {
		settings := c.missing(ctx)
		settings.Unknown = true
		c.current.Store(settings)
		return nil
	}
	parsed, err := Parse(configMap.Data["config"])
	if err != nil {
		return fmt.Errorf("ConfigMap %s/%s is invalid, correct it with helm upgrade of the fleet chart: %w",
			c.namespace, naming.HubConfigMap, err)
	}
	if err := c.readTokens(ctx, &parsed, c.Clock.Now()); err != nil {
		return err
	}
	c.current.Store(&parsed)
	return nil
}

// onSecret enqueues the settings after a change of a Secret with a token of a standby.
func (c *Controller) onSecret(_ context.Context, o client.Object) []ctrl.Request {
	for _, t := range c.Current().Fallbacks.Tokens {
		if t.Secret == o.GetName() {
			return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(c.configMap())}}
		}
	}
	return nil
}

// Reconcile reads the ConfigMap.
func (c *Controller) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	configMap, err := c.read(ctx, c.client)
	if err != nil {
		return ctrl.Result{}, err
	}
	if configMap == nil {
		if !c.current.Load().Missing {
			c.adopt(c.missing(ctx))
		}
		return ctrl.Result{}, nil
	}
	parsed, err := Parse(configMap.Data["config"])
	if err != nil {
		c.recorder.Eventf(configMap, nil, corev1.EventTypeWarning, reasons.ConfigInvalid, "Load", "the previous settings stay in force: %v", err)
		log.FromContext(ctx).Info("The ConfigMap is invalid; the previous settings stay in force", "reason", err.Error())
		return ctrl.Result{}, nil
	}
	if err := c.readTokens(ctx, &parsed, c.Clock.Now()); err != nil {
		return ctrl.Result{}, err
	}
	if c.adopt(&parsed) {
		log.FromContext(ctx).Info("Settings changed", "apiServerURL", parsed.APIServerURL, "agentTokenLifetime", parsed.AgentTokenLifetime)
	}
	return ctrl.Result{RequeueAfter: parsed.nextRead(c.Clock.Now())}, nil
}

// adopt puts settings in force, and notifies the subscribers of a change.
func (c *Controller) adopt(settings *Config) bool {
	if before := c.current.Swap(settings); reflect.DeepEqual(*before, *settings) {
		return false
	}
	for _, subscriber := range c.subscribers {
		select {
		case subscriber <- event.GenericEvent{Object: c.configMap()}:
		default: // a change is pending already
		}
	}
	return true
}

// missing returns the settings of a hub without a ConfigMap, logs the problem and emits an Event.
// The previous settings stay in force. A hub started without a ConfigMap waits for it before any
// step that depends on the settings.
func (c *Controller) missing(ctx context.Context) *Config {
	settings := c.Current()
	settings.Missing = true
	problem := MissingProblem(c.namespace)
	log.FromContext(ctx).Info("The previous settings stay in force; a hub that has just started waits for settings", "reason", problem)
	c.recorder.Eventf(c.configMap(), nil, corev1.EventTypeWarning, reasons.ConfigMissing,
		"Load", "the previous settings stay in force; a hub that has just started has none and waits for them: %s", problem)
	return &settings
}

// MissingProblem returns the message about a missing ConfigMap.
func MissingProblem(namespace string) string {
	return fmt.Sprintf("ConfigMap %s/%s is gone, and with it the address of the hub for members: restore it with helm upgrade of the fleet "+
		"chart",
		namespace, naming.HubConfigMap)
}

func (c *Controller) configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: naming.HubConfigMap}}
}

// read returns the ConfigMap, or nil if there is none.
func (c *Controller) read(ctx context.Context, reader client.Reader) (*corev1.ConfigMap, error) {
	var configMap corev1.ConfigMap
	key := types.NamespacedName{Namespace: c.namespace, Name: naming.HubConfigMap}
	if err := reader.Get(ctx, key, &configMap); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	return &configMap, nil
}
