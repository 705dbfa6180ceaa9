package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	readyInterval = 50 * time.Millisecond
	// readyTimeout ends the wait for a part that hangs. A start takes seconds on a quiet machine, and
	// minutes beside many busy processes.
	readyTimeout = 10 * time.Minute
)

// readiness checks the progress of a cluster.
type readiness struct{ client *kubernetes.Clientset }

func newReadiness(config *rest.Config) (readiness, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return readiness{}, fmt.Errorf("making a client: %w", err)
	}
	return readiness{client: client}, nil
}

// apiServer checks that the API server answers and has created its own objects.
func (r readiness) apiServer(ctx context.Context) error {
	if err := r.client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return fmt.Errorf("asking for /readyz: %w", err)
	}
	return nil
}

// serviceAccounts checks for the default ServiceAccount, because no Pod can be created without it.
// The controller manager creates it, so it also proves that the controller manager works.
func (r readiness) serviceAccounts(ctx context.Context) error {
	_, err := r.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	return err
}

// node checks that a node is Ready and free of the taint of every new node.
func (r readiness) node(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		node, err := r.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, taint := range node.Spec.Taints {
			if taint.Key == corev1.TaintNodeNotReady {
				return errors.New("node has the not-ready taint")
			}
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return errors.New("node is not Ready")
	}
}
