package hub

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const (
	// leaseName is the Lease of the leading hub, in its namespace.
	leaseName = "muster-hub"
	// leaseTimeout bounds each call for the Lease: half of the ten seconds within which a leader has to renew it.
	leaseTimeout = 5 * time.Second
)

// holder is under which name a Pod leads; empty outside of one. A container that is started again in its Pod bears the name of the one before
// it, and goes on at once as the leader that it was. That is safe because the kubelet starts it only after all processes of the one before have
// ended, and no other Pod ever has this UID, also if it has the name.
func holder(podName, podUID string) string {
	if podName == "" || podUID == "" {
		return ""
	}
	return podName + "_" + podUID
}

// lock is the Lease for a holder.
func lock(config *rest.Config, namespace, holder string) (resourcelock.Interface, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election") // else everything that the hub asks, and each watch, would end after leaseTimeout
	config.Timeout = leaseTimeout
	leases, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the election of a leader: %w", err)
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: leaseName},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: holder},
	}, nil
}
