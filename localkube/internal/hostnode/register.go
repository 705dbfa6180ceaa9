package hostnode

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
)

const (
	maxPods        = 110
	leaseSeconds   = 40
	leaseInterval  = 10 * time.Second
	statusInterval = 5 * time.Minute
	// fallbackMemory is reported if the machine does not report its own.
	fallbackMemory = 8 << 30
)

// register creates the Node or takes over the Node of an earlier run.
func (n *Node) register(ctx context.Context, kubeletPort int) error {
	nodes := n.client.CoreV1().Nodes()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.config.Name, Labels: map[string]string{
		corev1.LabelHostname:           n.config.Name,
		corev1.LabelOSStable:           runtime.GOOS,
		corev1.LabelArchStable:         runtime.GOARCH,
		corev1.LabelInstanceTypeStable: "localkube",
	}}}
	if _, err := nodes.Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating node %s: %w", n.config.Name, err)
	}
	if err := n.writeLease(ctx); err != nil {
		return err
	}
	if err := n.writeStatus(ctx, kubeletPort); err != nil {
		return err
	}
	return n.removeNotReadyTaint(ctx)
}

// removeNotReadyTaint removes the taint of every new node at once, before the node controller would
// do so.
func (n *Node) removeNotReadyTaint(ctx context.Context) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := n.client.CoreV1().Nodes().Get(ctx, n.config.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		kept := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(taint corev1.Taint) bool {
			return taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable
		})
		if len(kept) == len(node.Spec.Taints) {
			return nil
		}
		node.Spec.Taints = kept
		_, err = n.client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("making node %s schedulable: %w", n.config.Name, err)
	}
	return nil
}

func (n *Node) renewLease(ctx context.Context) {
	for pause(ctx, leaseInterval) {
		if err := n.writeLease(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Renewing the lease; trying again")
		}
	}
}

func (n *Node) renewStatus(ctx context.Context, kubeletPort int) {
	for pause(ctx, statusInterval) {
		if err := n.writeStatus(ctx, kubeletPort); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Reporting the node status; trying again")
		}
	}
}

func (n *Node) writeLease(ctx context.Context) error {
	leases := n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now, seconds := metav1.NowMicro(), int32(leaseSeconds)
	spec := coordinationv1.LeaseSpec{HolderIdentity: &n.config.Name, LeaseDurationSeconds: &seconds, RenewTime: &now}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		lease, err := leases.Get(ctx, n.config.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n.config.Name}, Spec: spec}
			_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
			return err
		}
		if err != nil {
			return err
		}
		lease.Spec = spec
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("renewing the lease of node %s: %w", n.config.Name, err)
	}
	return nil
}

func (n *Node) writeStatus(ctx context.Context, kubeletPort int) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := n.client.CoreV1().Nodes().Get(ctx, n.config.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		node.Status = nodeStatus(node.Status, n.config, kubeletPort, metav1.Now())
		_, err = n.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("reporting the status of node %s: %w", n.config.Name, err)
	}
	return nil
}

func nodeStatus(old corev1.NodeStatus, config Config, kubeletPort int, now metav1.Time) corev1.NodeStatus {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(machineMemory(), resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(maxPods, resource.DecimalSI),
	}
	status := corev1.NodeStatus{
		Capacity:    capacity,
		Allocatable: capacity,
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: loopback},
			{Type: corev1.NodeHostName, Address: config.Name},
		},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(kubeletPort)}},
		NodeInfo: corev1.NodeSystemInfo{
			KubeletVersion:          config.Version,
			ContainerRuntimeVersion: "localkube://" + strings.TrimPrefix(config.Version, "v"),
			OperatingSystem:         runtime.GOOS,
			Architecture:            runtime.GOARCH,
			OSImage:                 "host processes",
			KernelVersion:           kernelVersion(),
		},
	}
	for _, wanted := range []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "NotMeasured", Message: "localkube does not measure memory"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "NotMeasured", Message: "localkube does not measure the disk"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "NotMeasured", Message: "localkube does not count processes"},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "HostNodeReady", Message: "containers run as host processes"},
	} {
		wanted.LastHeartbeatTime, wanted.LastTransitionTime = now, now
		for _, condition := range old.Conditions {
			if condition.Type == wanted.Type && condition.Status == wanted.Status {
				wanted.LastTransitionTime = condition.LastTransitionTime
			}
		}
		status.Conditions = append(status.Conditions, wanted)
	}
	return status
}

func machineMemory() int64 {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return fallbackMemory
	}
	var kib int64
	if _, err := fmt.Sscanf(string(data), "MemTotal: %d kB", &kib); err != nil {
		return fallbackMemory
	}
	return kib << 10
}

func kernelVersion() string {
	data, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(data))
}
