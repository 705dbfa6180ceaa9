package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

const (
	// pace is the interval of an intruder's attempts.
	pace = 50 * time.Millisecond
	// later is the Bundle delivered after the revocation.
	later = "delivered-later"
	// besides, neighbour and wellSince print the other Cluster of the workspace: its UID and
	// namespace, and its Ready condition with its time.
	besides   = `kubectl -n clusters get clusters.fleet.cattle.io -l example=true -o `
	neighbour = besides + `'jsonpath={.items[*].metadata.uid} {.items[*].status.namespace}'`
	wellSince = neighbour + "\n" + besides +
		`'jsonpath={range .items[*].status.conditions[?(@.type=="Ready")]}{.status} {.lastTransitionTime}{end}'`
)

// revokedFightingBack revokes my-cluster while an intruder with its agent's secrets tries to stay.
func revokedFightingBack(ctx context.Context, e *env) (string, error) {
	if err := e.allReady(ctx); err != nil {
		return "", err
	}
	thief, err := e.steal(ctx)
	if err != nil {
		return "", err
	}
	if err := thief.can(ctx); err != nil {
		return "", err
	}
	if err := thief.watch(ctx); err != nil {
		return "", err
	}
	beside, err := e.sh(ctx, e.hub, neighbour)
	if err != nil {
		return "", err
	}
	well, err := e.sh(ctx, e.hub, wellSince)
	if err != nil {
		return "", err
	}
	fighting, stop := context.WithCancel(ctx)
	defer stop()
	var attempts int
	var fight sync.WaitGroup
	fight.Go(func() { attempts = thief.fight(fighting) })
	began := time.Now()
	_, err = e.sh(ctx, e.hub, "kubectl -n clusters annotate cluster.fleet.cattle.io my-cluster muster/revoked=true")
	if err == nil {
		err = e.expect(ctx, e.hub, whyNotReady, "Revoked:")
	}
	figure := "revoked after " + seconds(began)
	if err == nil {
		err = errors.Join(thief.isOut(ctx), e.isStill(ctx, e.hub, wellSince, well))
	}
	if err == nil {
		err = e.deliverLater(ctx)
	}
	stop()
	fight.Wait()
	if err := errors.Join(err, thief.isOut(ctx), thief.sees(later), e.isStill(ctx, e.hub, neighbour, beside)); err != nil {
		return "", err
	}
	others := *e
	others.members = []string{"my-cluster Revoked", "cluster-", "member-1 True"}
	if err := others.fleetIsWell(ctx); err != nil {
		return "", err
	}
	figure += fmt.Sprintf(", %d rounds of attempts, %d requests", attempts, len(thief.asked))
	return figure, errors.Join(e.letInAgain(ctx, thief), e.isStill(ctx, e.hub, neighbour, beside))
}

// allReady waits until all Clusters have all their deliveries, including the Bundles of their
// agents.
func (e *env) allReady(ctx context.Context) error {
	_, err := e.sh(ctx, e.hub, `kubectl wait clusters.fleet.cattle.io -A --all --for=condition=Ready --timeout=60s
kubectl wait bundles.fleet.cattle.io -A --all --for=condition=Ready --timeout=60s`)
	return err
}

// can returns an error unless the stolen credential works. Otherwise the refusals would prove
// nothing.
func (i *intruder) can(ctx context.Context) error {
	for name, try := range i.tries(i.own) {
		if err := try(ctx); err != nil && name != "renews its credential" { // no member may do so
			return fmt.Errorf("before the revocation the member's own credential is refused when it %s: %w", name, err)
		}
	}
	return nil
}

// fight tries everything in a loop until the context ends, and returns the number of rounds.
func (i *intruder) fight(ctx context.Context) (rounds int) {
	tries := i.tries(i.own)
	for tick := time.NewTicker(pace); ; rounds++ {
		for _, try := range tries {
			_ = try(ctx) // success before the end of the revocation does not count
		}
		if rounds%10 == 5 { // more requests would only be superfluous
			i.ask(ctx)
		}
		select {
		case <-ctx.Done():
			tick.Stop()
			return rounds
		case <-tick.C:
		}
	}
}

// isOut returns an error if any credential works: the member's own, or one of a request granted
// just before the revocation. It also returns an error if a request was granted since.
func (i *intruder) isOut(ctx context.Context) error {
	i.ask(ctx)
	var credentials []string
	err := eventually(ctx, "every request is denied", func() error {
		tokens, states, err := i.granted(ctx)
		credentials = tokens
		for state := range states {
			if !strings.HasPrefix(state, string(fleet.RegistrationDenied)) {
				err = errors.Join(err, fmt.Errorf("requests are %v", states))
			}
		}
		if len(i.taken) != len(i.tokens) {
			err = errors.Join(err, fmt.Errorf("requests were taken of %v only: the test proves nothing of the others", i.taken))
		}
		return err
	})
	if err != nil {
		return err
	}
	bearers := []client.Client{i.own}
	for _, token := range credentials {
		as, err := i.as(token)
		if err != nil {
			return err
		}
		bearers = append(bearers, as)
	}
	var problems []error
	for _, as := range bearers {
		tries := i.tries(as)
		for _, name := range slices.Sorted(maps.Keys(tries)) {
			problems = append(problems, refused(name, tries[name](ctx)))
		}
	}
	for _, as := range i.tokens { // a token for requests cannot read anything either
		problems = append(problems, refused("reads its report with a token to register with", i.tries(as)["reads its report"](ctx)))
	}
	return errors.Join(problems...)
}

// deliverLater delivers a Bundle to all Clusters, and waits until the other Cluster has it.
func (e *env) deliverLater(ctx context.Context) error {
	_, err := e.sh(ctx, e.hub, `kubectl apply -f - <<END
kind: Bundle
apiVersion: fleet.cattle.io/v1alpha1
metadata: {name: `+later+`, namespace: clusters}
spec:
  defaultNamespace: default
  resources: [{name: cm.yaml, content: "{apiVersion: v1, kind: ConfigMap, metadata: {name: `+later+`}}"}]
  targets: [{clusterSelector: {}}]
END`)
	if err != nil {
		return err
	}
	return e.expect(ctx, e.one, "kubectl -n default get configmap -o name", later)
}

// letInAgain restores the access and gives the cluster its token again. Deliveries from the
// meantime arrive, but the old watch does not show them.
func (e *env) letInAgain(ctx context.Context, thief *intruder) error {
	_, err := e.sh(ctx, nil, `kubectl --context hub -n clusters annotate cluster.fleet.cattle.io my-cluster muster/revoked-
helm --kube-context two -n cattle-fleet-system upgrade --wait --timeout 90s --values values.yaml --set clientID=really-random `+limited+` \
  fleet-agent fleet/fleet-agent`)
	if err != nil {
		return err
	}
	if err := errors.Join(e.fleetIsWell(ctx), e.expect(ctx, e.two, "kubectl -n default get configmap -o name", later)); err != nil {
		return err
	}
	if err := errors.Join(thief.sees(later), thief.isBarred(ctx)); err != nil {
		return err
	}
	var cleaning error
	for name := range thief.asked {
		request := &fleet.ClusterRegistration{}
		request.Namespace, request.Name = "clusters", name
		cleaning = errors.Join(cleaning, client.IgnoreNotFound(thief.admin.Delete(ctx, request)))
	}
	_, err = e.sh(ctx, e.hub, "kubectl -n clusters delete bundles.fleet.cattle.io "+later+" --timeout=60s")
	return errors.Join(cleaning, err, e.fleetIsWell(ctx))
}

// isBarred returns an error if the old credential works again in the member's new namespace.
func (i *intruder) isBarred(ctx context.Context) error {
	var cluster fleet.Cluster
	if err := i.admin.Get(ctx, types.NamespacedName{Namespace: "clusters", Name: "my-cluster"}, &cluster); err != nil {
		return err
	}
	if cluster.Status.Namespace == i.namespace {
		return fmt.Errorf("the member has the namespace %s again", i.namespace)
	}
	return errors.Join(
		refused("lists BundleDeployments", i.own.List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(i.namespace))),
		refused("lists BundleDeployments of now", i.own.List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(cluster.Status.Namespace))))
}
