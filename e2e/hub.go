package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// leader returns the leading replica of the hub: the pod's name, and a part that changes with each
// start of the program.
func (e *env) leader(ctx context.Context) (string, error) {
	return e.sh(ctx, e.hub, "kubectl -n cattle-fleet-system get lease muster-hub -o 'jsonpath={.spec.holderIdentity}'")
}

// anotherLeads waits until another replica leads.
func (e *env) anotherLeads(ctx context.Context, than string) error {
	return eventually(ctx, "another hub leads", func() error {
		now, err := e.leader(ctx)
		if err == nil && (now == "" || now == than) {
			err = fmt.Errorf("the leader is %q", now)
		}
		return err
	})
}

// leadsSince waits until a hub has renewed the Lease since a time, under any name.
func (e *env) leadsSince(ctx context.Context, since time.Time) error {
	return eventually(ctx, "a hub leads", func() error {
		said, err := e.sh(ctx, e.hub, "kubectl -n cattle-fleet-system get lease muster-hub -o 'jsonpath={.spec.renewTime}'")
		if err != nil {
			return err
		}
		renewed, err := time.Parse(time.RFC3339, said)
		if err == nil && !renewed.After(since) {
			err = fmt.Errorf("the last one led at %s", said)
		}
		return err
	})
}

// hubContainerKilled: a container restarted in its Pod remains the leader.
func hubContainerKilled(ctx context.Context, e *env) (string, error) {
	began := time.Now()
	figure, err := e.killContainer(ctx, e.hub, hubPod, "fleet-controller", "muster-hub")
	if err != nil {
		return "", err
	}
	if err := e.leadsSince(ctx, began); err != nil {
		return "", err
	}
	return figure + ", leads after " + seconds(began), e.fleetIsWell(ctx)
}

func hubPodDeleted(ctx context.Context, e *env) (string, error) {
	leader, err := e.leader(ctx)
	if err != nil {
		return "", err
	}
	began := time.Now()
	if _, err := e.sh(ctx, e.hub, `kubectl -n cattle-fleet-system delete pod -l app=fleet-controller
kubectl -n cattle-fleet-system rollout status deployment/fleet-controller --timeout=60s`); err != nil {
		return "", err
	}
	figure := "new pod ready after " + seconds(began)
	if err := e.anotherLeads(ctx, leader); err != nil {
		return "", err
	}
	return figure + ", leads after " + seconds(began), e.fleetIsWell(ctx)
}

func leaderDeleted(ctx context.Context, e *env) (string, error) {
	if err := e.twoReplicas(ctx); err != nil {
		return "", err
	}
	leader, err := e.leader(ctx)
	if err != nil {
		return "", err
	}
	pod, _, _ := strings.Cut(leader, "_")
	began := time.Now()
	if _, err := e.sh(ctx, e.hub, "kubectl -n cattle-fleet-system delete pod --wait=false "+pod); err != nil {
		return "", err
	}
	if err := e.anotherLeads(ctx, leader); err != nil {
		return "", err
	}
	return "another leads after " + seconds(began), errors.Join(e.oneReplica(ctx), e.fleetIsWell(ctx))
}

func drainLeavesOneHub(ctx context.Context, e *env) (string, error) {
	if err := e.twoReplicas(ctx); err != nil {
		return "", err
	}
	// There is no other node, so the second replica never becomes ready.
	_, err := e.sh(ctx, e.hub, "kubectl drain hub-node-0 --ignore-daemonsets --delete-emptydir-data --timeout=10s")
	if err == nil || !strings.Contains(err.Error(), "disruption budget") {
		return "", fmt.Errorf("the drain was not held up: %w", err)
	}
	_, err = e.sh(ctx, e.hub, `
test "$(kubectl -n cattle-fleet-system get deployment fleet-controller -o 'jsonpath={.status.readyReplicas}')" = 1
kubectl uncordon hub-node-0
kubectl -n cattle-fleet-system rollout status deployment/fleet-controller --timeout=60s`)
	return "", errors.Join(err, e.oneReplica(ctx), e.fleetIsWell(ctx))
}

func (e *env) twoReplicas(ctx context.Context) error {
	_, err := e.sh(ctx, e.hub, "helm -n cattle-fleet-system upgrade --wait --set controller.replicas=2 --reuse-values fleet fleet/fleet")
	return err
}

// oneReplica rolls back to the first installation.
func (e *env) oneReplica(ctx context.Context) error {
	_, err := e.sh(ctx, e.hub, "helm -n cattle-fleet-system rollback --wait fleet 1")
	return err
}
