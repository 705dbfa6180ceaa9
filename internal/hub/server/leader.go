package server

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/muster-fleet/muster/internal/naming"
)

// Election says how soon a replica takes the place of a leader that is gone. The times are those of client-go's package leaderelection.
type Election struct {
	// LeaseDuration is for how long nobody else leads after the leader has renewed its Lease.
	LeaseDuration time.Duration
	// RenewDeadline is for how long a leader tries to renew its Lease before it ends, so that no other leads beside it.
	RenewDeadline time.Duration
	// RetryPeriod is how often the leader renews its Lease, and the others look at it.
	RetryPeriod time.Duration
}

// validate says what of an election could leave two leaders, or none.
func (e Election) validate() error {
	jittered := time.Duration(leaderelection.JitterFactor * float64(e.RetryPeriod))
	switch {
	case e.LeaseDuration < time.Second:
		return fmt.Errorf("--leader-elect-lease-duration %s (leaderElection.leaseDuration of the chart) has to be a second at least", e.LeaseDuration)
	case e.LeaseDuration <= e.RenewDeadline:
		return fmt.Errorf("--leader-elect-lease-duration %s (leaderElection.leaseDuration of the chart) has to be longer than --leader-elect-renew-deadline %s", e.LeaseDuration, e.RenewDeadline)
	case e.RetryPeriod > checkTimeout/2:
		return fmt.Errorf("--leader-elect-retry-period %s (leaderElection.retryPeriod of the chart) may be %s at most", e.RetryPeriod, checkTimeout/2)
	case e.RetryPeriod <= 0 || e.RenewDeadline <= jittered:
		return fmt.Errorf("--leader-elect-renew-deadline %s (leaderElection.renewDeadline of the chart) has to be longer than %s, 1.2 times --leader-elect-retry-period, which is more than 0", e.RenewDeadline, jittered)
	}
	return nil
}

// holder is under which name a Pod leads; empty outside of one. A container that is started again in its Pod bears the name of the one before
// it, and goes on at once as the leader that it was. That is safe because the kubelet starts it only after all processes of the one before have
// ended, and no other Pod ever has this UID, also if it has the name.
func holder(podName, podUID string) string {
	if podName == "" || podUID == "" {
		return ""
	}
	return podName + "_" + podUID
}

// lock is the Lease for a holder, each call for which gets half of the time within which a leader has to renew it.
func lock(config *rest.Config, namespace, holder string, renewDeadline time.Duration) (resourcelock.Interface, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election") // else everything that the hub asks, and each watch, would end after that time
	config.Timeout = renewDeadline / 2
	leases, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the election of a leader: %w", err)
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: naming.HubLease},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: holder},
	}, nil
}
