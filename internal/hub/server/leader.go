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

// Election holds the times of a leader election, as in client-go's package leaderelection.
type Election struct {
	// LeaseDuration is the time after the leader's last renewal of its Lease before another replica
	// may lead.
	LeaseDuration time.Duration
	// RenewDeadline bounds a leader's attempts to renew its Lease. The leader then ends before another
	// one leads.
	RenewDeadline time.Duration
	// RetryPeriod is the interval between the leader's renewals, and between the other replicas'
	// checks of the Lease.
	RetryPeriod time.Duration
}

// validate returns an error if the times could leave two leaders, or none.
func (e Election) validate() error {
	jittered := time.Duration(leaderelection.JitterFactor * float64(e.RetryPeriod))
	switch {
	case e.LeaseDuration < time.Second:
		return fmt.Errorf("--leader-elect-lease-duration %s (leaderElection.leaseDuration of the chart) must be at least a second",
			e.LeaseDuration)
	case e.LeaseDuration <= e.RenewDeadline:
		return fmt.Errorf("--leader-elect-lease-duration %s (leaderElection.leaseDuration of the chart) must be longer than "+
			"--leader-elect-renew-deadline %s", e.LeaseDuration, e.RenewDeadline)
	case e.RetryPeriod > checkTimeout/2:
		return fmt.Errorf("--leader-elect-retry-period %s (leaderElection.retryPeriod of the chart) may be %s at most",
			e.RetryPeriod, checkTimeout/2)
	case e.RetryPeriod <= 0 || e.RenewDeadline <= jittered:
		return fmt.Errorf("--leader-elect-renew-deadline %s (leaderElection.renewDeadline of the chart) must be longer than %s, 1.2 times "+
			"--leader-elect-retry-period, which is more than 0", e.RenewDeadline, jittered)
	}
	return nil
}

// holder returns a Pod's name as a leader; empty outside of one. A restarted container has the name
// of the previous one in its Pod, and continues at once as the leader. This is safe, because the
// kubelet starts it only after the end of all processes of the previous one. No other Pod ever has
// this UID, even one of the same name.
func holder(podName, podUID string) string {
	if podName == "" || podUID == "" {
		return ""
	}
	return podName + "_" + podUID
}

// lock returns the Lease lock of a holder. Each call for it may take half of the renew deadline.
func lock(config *rest.Config, namespace, holder string, renewDeadline time.Duration) (resourcelock.Interface, error) {
	// without a copy, each request and each watch of the hub would time out
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
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
