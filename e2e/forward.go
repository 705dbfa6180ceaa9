package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// probesAreForwarded queries the state and the metrics of the hub and of agents like a user without
// access to the Pods.
func probesAreForwarded(ctx context.Context, e *env) (string, error) {
	for _, target := range []struct {
		on                          *cluster
		namespace, deployment, says string
	}{
		{e.hub, "cattle-fleet-system", "fleet-controller", "ok"},
		{e.one, "cattle-fleet-system", "fleet-agent", "Joined: "},
		{e.one, "fleet-system", "member-agent", "Joined: "},
	} {
		for _, endpoint := range []struct{ port, path, says string }{{"8081", "/readyz", target.says}, {"8080", "/metrics", "# HELP "}} {
			said, err := e.forwarded(ctx, target.on, target.namespace, target.deployment, endpoint.port, endpoint.path, "")
			if err == nil && !strings.Contains(said, endpoint.says) {
				err = fmt.Errorf("it does not say %q: %s", endpoint.says, said)
			}
			if err != nil {
				return "", fmt.Errorf("%s of %s on %s by kubectl port-forward: %w", endpoint.path, target.deployment, target.on.name, err)
			}
		}
	}
	return "", nil
}

// dashboardIsShown requests the dashboard's first page as an administrator, and as a user without
// rights. It also requests the metrics.
func dashboardIsShown(ctx context.Context, e *env) (string, error) {
	const namespace, deployment = "cattle-fleet-system", "fleet-dashboard"
	tokens, err := e.sh(ctx, e.hub, `
helm -n cattle-fleet-system upgrade --wait --set dashboard.enabled=true --reuse-values fleet fleet/fleet >&2
kubectl create namespace viewers >&2
kubectl -n viewers create serviceaccount admin >&2
kubectl create clusterrolebinding viewers-admin --clusterrole cluster-admin --serviceaccount viewers:admin >&2
echo "$(kubectl -n viewers create token admin) $(kubectl -n viewers create token default)"`)
	if err != nil {
		return "", err
	}
	admin, stranger, _ := strings.Cut(tokens, " ")
	seen, err := e.forwarded(ctx, e.hub, namespace, deployment, "8082", "/", admin)
	if err == nil && !strings.Contains(seen, "my-cluster") {
		err = fmt.Errorf("an admin does not see my-cluster: %s", seen)
	}
	unseen, refused := e.forwarded(ctx, e.hub, namespace, deployment, "8082", "/", stranger)
	if refused == nil && (strings.Contains(unseen, "my-cluster") || !strings.Contains(unseen, "No clusters to show.")) {
		refused = fmt.Errorf("a visitor without rights sees %s", unseen)
	}
	metrics, unmeasured := e.forwarded(ctx, e.hub, namespace, deployment, "8080", "/metrics", "")
	if unmeasured == nil && !strings.Contains(metrics, "muster_dashboard_page_duration_seconds") {
		unmeasured = fmt.Errorf("its metrics do not say how long pages take: %s", metrics)
	}
	_, undone := e.sh(ctx, e.hub, "kubectl delete clusterrolebinding viewers-admin && kubectl delete namespace viewers")
	return "", errors.Join(err, refused, unmeasured, undone, e.oneReplica(ctx))
}

// forwarded returns the answer of a Deployment's port through kubectl port-forward, with a token if
// one is given.
func (e *env) forwarded(ctx context.Context, c *cluster, namespace, deployment, port, path, token string) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	kubectl := e.command(ctx, c, "kubectl", "-n", namespace, "port-forward", "deploy/"+deployment, ":"+port)
	out, err := kubectl.StdoutPipe()
	if err != nil {
		return "", fmt.Errorf("reading what kubectl prints: %w", err)
	}
	var complaints strings.Builder
	kubectl.Stderr = &complaints
	if err := kubectl.Start(); err != nil {
		return "", fmt.Errorf("starting kubectl: %w", err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n') // Forwarding from 127.0.0.1:40123 -> 8081
	local, _, _ := strings.Cut(strings.TrimPrefix(line, "Forwarding from "), " ")
	said, err := get(ctx, "http://"+local+path, token)
	cancel()
	if ended := kubectl.Wait(); err != nil {
		return "", errors.Join(err, ended, errors.New(complaints.String()))
	}
	return said, nil
}

func get(ctx context.Context, url, token string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	said, err := io.ReadAll(response.Body)
	return string(said), err
}
