package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// tokenReady prints the condition Ready of a token.
	tokenReady = `kubectl -n clusters get clusterregistrationtokens.fleet.cattle.io NAME -o \
'jsonpath={range .status.conditions[?(@.type=="Ready")]}{.reason}: {.message}{end}'`
	// dependent prints the objects that the hub derives from its settings. These are the values of
	// tokens, the Bundles of agents, the inventory, and the hub's address for members.
	dependent = `kubectl -n clusters get secret new-token -o 'jsonpath={.metadata.uid} {.data.values}' | sha256sum
kubectl get bundles.fleet.cattle.io -A -o 'jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.metadata.generation}{"\n"}{end}'
kubectl -n fleet-inventory get clusterprofiles -o 'jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}{"\n"}{end}'
kubectl get internalmemberclusters -A -o 'jsonpath={range .items[*]}{.metadata.name} {.spec.hub}{"\n"}{end}'`
	// agents prints the Deployments of the agents on a member, with the numbers of their changes.
	agents = `kubectl get deployments -n cattle-fleet-system fleet-agent --ignore-not-found --no-headers -o ` +
		columns + `,CHANGED:.metadata.generation
kubectl get deployments -n fleet-system --no-headers -o ` + columns + `,CHANGED:.metadata.generation`
)

// settingsDeleted deletes the hub's ConfigMap, restarts the hub meanwhile, and restores the
// ConfigMap.
func settingsDeleted(ctx context.Context, e *env) (string, error) {
	if err := e.allReady(ctx); err != nil {
		return "", err
	}
	before, err := e.ofSettings(ctx)
	if err != nil {
		return "", err
	}
	if _, err := e.sh(ctx, e.hub, "kubectl -n cattle-fleet-system delete configmap fleet-controller"); err != nil {
		return "", err
	}
	began := time.Now()
	const missing = "kubectl -n cattle-fleet-system get events --field-selector reason=ConfigMissing -o 'jsonpath={.items[*].message}'"
	err = e.expect(ctx, e.hub, missing,
		"the previous settings stay in force", "restore it with helm upgrade")
	figure := "an event after " + seconds(began)
	if err := errors.Join(err, e.fleetIsWell(ctx), e.stay(ctx, before)); err != nil {
		return "", fmt.Errorf("without settings: %w", err)
	}
	if err := e.newToken(ctx, "without-settings", "SettingsMissing"); err != nil {
		return "", err
	}
	if _, err := hubPodDeleted(ctx, e); err != nil {
		return "", fmt.Errorf("a hub that starts without settings: %w", err)
	}
	err = e.newToken(ctx, "started-without", "SettingsMissing")
	if err == nil {
		_, err = e.sh(ctx, e.hub, "! kubectl -n clusters get secret without-settings started-without 2>/dev/null")
	}
	if err := errors.Join(err, e.stay(ctx, before)); err != nil {
		return "", fmt.Errorf("a hub that has started without settings: %w", err)
	}
	began = time.Now()
	if _, err := e.sh(ctx, e.hub, "helm -n cattle-fleet-system upgrade --wait --reuse-values fleet fleet/fleet"); err != nil {
		return "", err
	}
	for _, name := range []string{"without-settings", "started-without"} {
		if err := e.expect(ctx, e.hub, strings.ReplaceAll(tokenReady, "NAME", name), "Ready:"); err != nil {
			return "", err
		}
		values := "kubectl -n clusters get secret " + name + " -o 'jsonpath={.data.values}' | base64 --decode"
		if err := e.expect(ctx, e.hub, values, "apiServerURL: https://"); err != nil {
			return "", err
		}
	}
	figure += ", healed after " + seconds(began)
	_, err = e.sh(ctx, e.hub, `kubectl -n clusters delete clusterregistrationtokens.fleet.cattle.io --timeout=60s \
  without-settings started-without`)
	return figure, errors.Join(err, e.oneReplica(ctx), e.fleetIsWell(ctx), e.stay(ctx, before))
}

// newToken creates a token and waits until its condition Ready has a reason.
func (e *env) newToken(ctx context.Context, name, reason string) error {
	if _, err := e.sh(ctx, e.hub, `kubectl apply -f - <<END
kind: ClusterRegistrationToken
apiVersion: fleet.cattle.io/v1alpha1
metadata: {name: `+name+`, namespace: clusters}
spec: {ttl: 1h}
END`); err != nil {
		return err
	}
	return e.expect(ctx, e.hub, strings.ReplaceAll(tokenReady, "NAME", name), reason)
}

// ofSettings returns the state derived from the hub's settings, on the hub and on the members.
func (e *env) ofSettings(ctx context.Context) (string, error) {
	said, err := e.sh(ctx, e.hub, dependent)
	for _, c := range e.clusters {
		pods, failed := e.sh(ctx, c, agents)
		said, err = said+"\n"+c.name+":\n"+pods, errors.Join(err, failed)
	}
	return said, err
}

// stay returns an error unless the state derived from the settings is unchanged.
func (e *env) stay(ctx context.Context, before string) error {
	now, err := e.ofSettings(ctx)
	if err == nil && now != before {
		err = fmt.Errorf("there was\n%s\nand is\n%s", before, now)
	}
	return err
}
