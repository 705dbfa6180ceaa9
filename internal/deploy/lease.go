package deploy

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/muster-fleet/muster/internal/agent/deployer"
)

// leaseDuration is how long the Lease of a deployer that was killed keeps others from deploying.
const leaseDuration = 30 * time.Second

// lease is the Lease that a deployer holds while it deploys, so that two of them, such as those of an old and a new Pod of the agent, never run Helm
// at the same time. The holder may take a pending operation for one that was cut off.
type lease struct {
	namespace, name, holder string
	duration                time.Duration
}

// newHolder is a unique identity.
func newHolder() string {
	host, err := os.Hostname()
	if err != nil {
		host = deployer.Program
	}
	return host + "_" + string(uuid.NewUUID())
}

// acquire starts to take the Lease. The channel acquired is closed when this process holds it; release gives it back. A process that loses the Lease
// exits at once, because another one may be deploying. Each new reason for which the Lease cannot be taken is passed to failing.
func (l lease) acquire(ctx context.Context, kube kubernetes.Interface, failing func(error)) (acquired <-chan struct{}, release func(), err error) {
	log := logr.FromContextOrDiscard(ctx)
	holds, ended := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(logr.NewContext(context.WithoutCancel(ctx), logr.Discard()))
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &lock{failing: failing, Interface: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: l.name}, Client: kube.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: l.holder},
		}},
		LeaseDuration: l.duration, RenewDeadline: l.duration * 2 / 3, RetryPeriod: l.duration / 6, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(holds) },
			OnStoppedLeading: func() {
				if ctx.Err() == nil {
					log.Info("deployer ends, because it lost its Lease", "lease", l.String())
					os.Exit(deployer.ExitLeaseLost)
				}
			},
			OnNewLeader: func(holder string) {
				if holder != "" && holder != l.holder {
					log.Info("deployer waits for another one to end", "lease", l.String(), "holder", holder)
				}
			},
		},
	})
	if err != nil {
		cancel()
		return nil, nil, fmt.Errorf("preparing Lease %s: %w", l, err)
	}
	go func() {
		defer close(ended)
		elector.Run(ctx)
	}()
	return holds, func() { cancel(); <-ended }, nil
}

func (l lease) String() string { return l.namespace + "/" + l.name }

// lock reports why the Lease cannot be taken; the elector only tries again.
type lock struct {
	resourcelock.Interface
	failing func(error)
	last    string
}

// Get implements resourcelock.Interface.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if !apierrors.IsNotFound(err) {
		l.report(ctx, err)
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Create(ctx, record)
	l.report(ctx, err)
	return err
}

// Update implements resourcelock.Interface.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Update(ctx, record)
	l.report(ctx, err)
	return err
}

func (l *lock) report(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil, apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
	case err == nil:
		l.last = ""
	case err.Error() != l.last:
		l.last = err.Error()
		l.failing(fmt.Errorf("taking Lease %s: %w", l.Describe(), err))
	}
}
