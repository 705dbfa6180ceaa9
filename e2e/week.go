package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/naming"
)

const (
	weekWithout = "members recover by themselves after an outage longer than their credentials live, and keep all workloads"
	// shortest is the shortest life that an API server grants a token.
	shortest = 10 * time.Minute
	// leeway is the time until an API server refuses an expired token, with a reserve.
	leeway = 80 * time.Second
	// weekTimeout bounds the scenario with an expired credential.
	weekTimeout = shortest + leeway + 6*time.Minute
	// records prints the Clusters and MemberClusters with their UIDs.
	records = `kubectl -n clusters get clusters.fleet.cattle.io --no-headers -o ` + columns + `
kubectl get memberclusters --no-headers -o ` + columns
	// running prints the deliveries on cluster one, with UIDs.
	running = `kubectl get deployments,pods -n web --no-headers -o ` + columns + `
kubectl get deployments,pods -n shop --no-headers -o ` + columns
)

// credentials are the Secrets with the credentials of the agents on cluster one.
var credentials = []string{
	"-n cattle-fleet-system get secret " + naming.AgentSecret,
	"-n fleet-system get secret " + naming.MemberAgentCredentialSecret,
}

// weekWithoutNetwork cuts the network of a Cluster and a MemberCluster, both on cluster one, until
// their credentials have expired. They live for ten minutes here instead of a week.
func weekWithoutNetwork(ctx context.Context, e *env) (string, error) {
	const ready = "kubectl -n clusters wait bundles.fleet.cattle.io web --for=condition=Ready --timeout=90s\n"
	if _, err := e.sh(ctx, e.hub, bundle(working)+ready+placed(working)); err != nil {
		return "", err
	}
	if err := e.expect(ctx, e.hub, available, "ClusterResourcePlacementAvailable=True"); err != nil {
		return "", err
	}
	const shorter = "helm -n cattle-fleet-system upgrade --wait --reuse-values fleet fleet/fleet --set agentTokenLifetime="
	if _, err := e.sh(ctx, e.hub, shorter+shortest.String()); err != nil {
		return "", err
	}
	err := eventually(ctx, "the agents use credentials that live for "+shortest.String(), func() error {
		end, err := e.lastExpiry(ctx)
		if left := time.Until(end); err == nil && left > shortest {
			err = fmt.Errorf("one lives for %s more", left)
		}
		return err
	})
	if err := errors.Join(err, e.fleetIsWell(ctx)); err != nil {
		return "", err
	}
	joined, err := e.sh(ctx, e.hub, records)
	if err != nil {
		return "", err
	}
	delivered, err := e.sh(ctx, e.one, running)
	if err != nil {
		return "", err
	}
	cut := time.Now()
	if err := e.cutUntilExpired(ctx, e.one); err != nil {
		return "", err
	}
	figure, began := "away for "+seconds(cut), time.Now()
	if err := e.expect(ctx, e.hub, states, e.members...); err != nil {
		return "", err
	}
	figure += ", back after " + seconds(began)
	same := func() error {
		return errors.Join(e.isStill(ctx, e.hub, records, joined), e.isStill(ctx, e.one, running, delivered))
	}
	if err := errors.Join(e.fleetIsWell(ctx), e.cameByKey(ctx), same()); err != nil {
		return "", err
	}
	_, err = e.sh(ctx, e.hub, "kubectl delete crp shop --timeout=60s && kubectl delete namespace shop")
	const shop = "kubectl get namespace shop -o name --ignore-not-found"
	return figure, errors.Join(err, e.gone(ctx, e.one, shop), e.oneReplica(ctx), e.fleetIsWell(ctx))
}

// lastExpiry returns the last expiry of the credentials on cluster one.
func (e *env) lastExpiry(ctx context.Context) (time.Time, error) {
	var last time.Time
	for _, secret := range credentials {
		token, err := e.sh(ctx, e.one, "kubectl "+secret+" -o 'jsonpath={.data.token}' | base64 --decode")
		if err != nil {
			return last, err
		}
		end := credential.ClaimsOf(token).Expires
		if end.IsZero() {
			return last, fmt.Errorf("kubectl %s: its token has no end", secret)
		}
		if end.After(last) {
			last = end
		}
	}
	return last, nil
}

// cutUntilExpired cuts the network of a cluster until the hub no longer accepts any of its
// credentials.
func (e *env) cutUntilExpired(ctx context.Context, c *cluster) error {
	link, err := e.link(c)
	if err != nil {
		return err
	}
	if err := setLink(link, "down"); err != nil {
		return err
	}
	select {
	case <-time.After(shortest + leeway): // earlier credentials have expired by then
		err = e.expect(ctx, e.hub, states, "AgentLost", "member-1 False")
	case <-ctx.Done():
		err = ctx.Err()
	}
	return errors.Join(err, setLink(link, "up"))
}

// cameByKey returns an error unless hub and agents report that the agents came back with their
// keys.
func (e *env) cameByKey(ctx context.Context) error {
	return errors.Join(
		e.expect(ctx, e.hub, "kubectl -n clusters get auditentries -o 'jsonpath={.items[*].spec.reason}'", "RenewalGap"),
		e.expect(ctx, e.one, "kubectl -n fleet-system logs deployment/member-agent", "Returned with the key of this cluster"))
}

// isStill returns an error unless a command prints the same as before.
func (e *env) isStill(ctx context.Context, c *cluster, script, before string) error {
	now, err := e.sh(ctx, c, script)
	if err == nil && now != before {
		err = fmt.Errorf("on %s there was\n%s\nand is\n%s", c.name, before, now)
	}
	return err
}
