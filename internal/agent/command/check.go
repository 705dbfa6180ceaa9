package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/kubeclient"
)

const (
	// portProbes is the name of the agent's port for its status.
	portProbes = "probes"
	// checkTimeout bounds a check and each of its requests.
	checkTimeout = 20 * time.Second
	// maxStatus bounds the bytes read of an answer.
	maxStatus = 4 << 10
)

// newCheck returns the command muster-agent check.
func newCheck() *cobra.Command {
	var kubeconfig, namespace, selector string
	command := &cobra.Command{
		Use:   "check",
		Short: "Check whether the agents of a namespace have joined",
		Long: `check requests the state of each agent in a namespace, by the address of its Pod, and prints the
answers. It fails unless there is an agent and all have joined. It is what helm test runs for the
charts fleet-agent and member-agent, and needs the right to list Pods in the namespace.`,
		Example: `  # In a Pod of the namespace.
  muster-agent check --selector app=fleet-agent`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if namespace == "" {
				return errNamespace
			}
			ctx, cancel := context.WithTimeout(command.Context(), checkTimeout)
			defer cancel()
			config, err := kubeclient.Config(kubeconfig)
			if err != nil {
				return err
			}
			connection, err := kubeclient.Connect(config)
			if err != nil {
				return err
			}
			pods, err := kubeclient.Of[corev1.Pod, corev1.PodList](connection, corev1.SchemeGroupVersion.WithResource("pods"), namespace)
			if err != nil {
				return err
			}
			found, err := pods.List(ctx, metav1.ListOptions{LabelSelector: selector})
			if err != nil {
				return fmt.Errorf("listing the Pods %s in namespace %s: %w", selector, namespace, err)
			}
			return inquire(ctx, found.Items, namespace, command.OutOrStdout())
		},
	}
	set := command.Flags()
	set.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the cluster (default: env KUBECONFIG, else the Pod's service account)")
	set.StringVar(&namespace, "namespace", os.Getenv("NAMESPACE"), "namespace with the agents (default: env NAMESPACE)")
	set.StringVar(&selector, "selector", "app=fleet-agent", "label selector of the agents' Pods")
	return command
}

// inquire requests the status of the agents in the Pods and prints it.
func inquire(ctx context.Context, pods []corev1.Pod, namespace string, out io.Writer) error {
	var problems []error
	queried := 0
	for i := range pods {
		pod := &pods[i]
		if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
			continue // A predecessor.
		}
		queried++
		said, err := statusOf(ctx, pod)
		if err != nil {
			problems = append(problems, fmt.Errorf("pod %s/%s: %w", namespace, pod.Name, err))
			continue
		}
		fmt.Fprintf(out, "%s: %s\n", pod.Name, said)
	}
	if queried == 0 {
		problems = append(problems,
			fmt.Errorf("no agent runs in namespace %s: kubectl -n %s get deployments,replicasets,events shows why", namespace, namespace))
	}
	return errors.Join(problems...)
}

// statusOf requests the status of an agent. An agent before its join is an error.
func statusOf(ctx context.Context, pod *corev1.Pod) (string, error) {
	port := int32(0)
	for _, container := range pod.Spec.Containers {
		for _, p := range container.Ports {
			if p.Name == portProbes {
				port = p.ContainerPort
			}
		}
	}
	switch {
	case port == 0:
		return "", fmt.Errorf("it has no port %s, so it is no agent", portProbes)
	case pod.Status.PodIP == "":
		return "", fmt.Errorf("it has not started; for the cause: kubectl -n %s describe pod %s", pod.Namespace, pod.Name)
	}
	address := "http://" + net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port))) + "/readyz"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", err
	}
	// A proxy is only for the hub.
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := direct.Do(request)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxStatus))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return "", err
	}
	said := strings.TrimSpace(string(body))
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("it has not joined: %s", said)
	}
	return said, nil
}
