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

// probesAreForwarded asks the hub and agents for their state and their metrics as one who may not reach the Pods does.
func probesAreForwarded(ctx context.Context, e *env) (string, error) {
	for _, asked := range []struct {
		on                          *cluster
		namespace, deployment, says string
	}{
		{e.hub, "cattle-fleet-system", "fleet-controller", "ok"},
		{e.one, "cattle-fleet-system", "fleet-agent", "Joined: "},
		{e.one, "fleet-system", "member-agent", "Joined: "},
	} {
		for _, endpoint := range []struct{ port, path, says string }{{"8081", "/readyz", asked.says}, {"8080", "/metrics", "# HELP "}} {
			said, err := e.forwarded(ctx, asked.on, asked.namespace, asked.deployment, endpoint.port, endpoint.path)
			if err == nil && !strings.Contains(said, endpoint.says) {
				err = fmt.Errorf("it does not say %q: %s", endpoint.says, said)
			}
			if err != nil {
				return "", fmt.Errorf("%s of %s on %s by kubectl port-forward: %w", endpoint.path, asked.deployment, asked.on.name, err)
			}
		}
	}
	return "", nil
}

// forwarded is what a port of a Deployment answers through kubectl port-forward.
func (e *env) forwarded(ctx context.Context, c *cluster, namespace, deployment, port, path string) (string, error) {
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
	said, err := get(ctx, "http://"+local+path)
	cancel()
	if ended := kubectl.Wait(); err != nil {
		return "", errors.Join(err, ended, errors.New(complaints.String()))
	}
	return said, nil
}

func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	said, err := io.ReadAll(response.Body)
	return string(said), err
}
