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

	"github.com/muster-fleet/muster/internal/delivery/protocol"
)

// leaseDuration is the time until the Lease of a killed deployer no longer keeps others from
// deploying.
const leaseDuration = 45 * time.Second

// lease is the Lease of a deployer while it deploys. Two deployers, such as an old and a new Pod of
// the agent, therefore never run Helm at the same time. The holder may treat a pending operation as
// interrupted.
type lease struct {
	namespace, name, holder string
	duration                time.Duration
}

// window is the least time between two written renewals: 15 s of 45, because each write costs the
// disk of a small node.
func (l lease) window() time.Duration { return l.duration / 3 }

// retry is the holder's interval to check for a due renewal and to repeat a failed one; deadline
// bounds these repetitions. A holder that cannot renew gives up after window, retry and deadline,
// before the Lease ends for others.
func (l lease) retry() time.Duration    { return l.duration / 9 }
func (l lease) deadline() time.Duration { return l.duration * 4 / 9 }

// newHolder returns a unique identity.
func newHolder() string {
	host, err := os.Hostname()
	if err != nil {
		host = protocol.Program
	}
	return host + "_" + string(uuid.NewUUID())
}

// exitLost ends the process at once after it lost the Lease, because another process may be
// deploying.
func exitLost() { os.Exit(protocol.ExitLeaseLost) }

// acquire starts to take the Lease. The channel acquired is closed once this process holds it;
// release gives it back. acquire calls lost if another process may hold the Lease, and failing with
// each new reason why it cannot take the Lease.
func (l lease) acquire(
	ctx context.Context, kube kubernetes.Interface, failing func(error), lost func(),
) (acquired <-chan struct{}, release func(), err error) {
	log := logr.FromContextOrDiscard(ctx)
	holds, ended := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(logr.NewContext(context.WithoutCancel(ctx), logr.Discard()))
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &lock{failing: failing, window: l.window(), Interface: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: l.name}, Client: kube.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: l.holder},
		}},
		LeaseDuration: l.duration, RenewDeadline: l.deadline(), RetryPeriod: l.retry(), ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(holds) },
			OnStoppedLeading: func() {
				if ctx.Err() == nil {
					log.Info("Deployer lost its Lease and ends", "lease", l.String())
					lost()
				}
			},
			OnNewLeader: func(holder string) {
				if holder != "" && holder != l.holder {
					log.Info("Deployer waits for another deployer to end", "lease", l.String(), "holder", holder)
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

// lock writes renewals at least a window apart, and reports why the Lease cannot be taken; the
// elector only retries.
type lock struct {
	resourcelock.Interface
	failing func(error)
	last    string
	window  time.Duration
	// renewed is the time of this process's last write as the holder. Its clock also counts while the
	// machine is suspended.
	renewed time.Time
}

// isFresh reports whether the Lease was renewed less than a window ago.
func (l *lock) isFresh(now time.Time) bool {
	age := now.Sub(l.renewed)
	return age >= 0 && age < l.window
}

// wrote stores the time of a successful write as the holder, and clears it after any other write.
func (l *lock) wrote(record resourcelock.LeaderElectionRecord, at time.Time, err error) {
	if l.renewed = (time.Time{}); err == nil && record.HolderIdentity == l.Identity() {
		l.renewed = at
	}
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
	now := time.Now().Round(0)
	err := l.Interface.Create(ctx, record)
	l.wrote(record, now, err)
	l.report(ctx, err)
	return err
}

// Update implements resourcelock.Interface.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	now := time.Now().Round(0)
	if record.HolderIdentity == l.Identity() && l.isFresh(now) {
		return nil
	}
	err := l.Interface.Update(ctx, record)
	l.wrote(record, now, err)
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
