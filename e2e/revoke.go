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
	// pace is how often somebody with a member's credential tries everything.
	pace = 50 * time.Millisecond
	// later is what is delivered after the revocation.
	later = "delivered-later"
	// neighbour is the other Cluster of the workspace: which it is, and where; wellSince is
	// since when it is ready.
	besides   = `kubectl -n clusters get clusters.fleet.cattle.io -l example=true -o `
	neighbour = besides + `'jsonpath={.items[*].metadata.uid} {.items[*].status.namespace}'`
	wellSince = neighbour + "\n" + besides +
		`'jsonpath={range .items[*].status.conditions[?(@.type=="Ready")]}{.status} {.lastTransitionTime}{end}'`
)

// revokedFightingBack revokes my-cluster while somebody with all that its agent has tries to stay.
func revokedFightingBack(ctx context.Context, e *env) (string, error) {
	if err := e.allReady(ctx); err != nil {
		return "", err
	}
	in, err := e.steal(ctx)
	if err != nil {
		return "", err
	}
	if err := in.can(ctx); err != nil {
		return "", err
	}
	if err := in.watch(ctx); err != nil {
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
	fight.Go(func() { attempts = in.fight(fighting) })
	began := time.Now()
	_, err = e.sh(ctx, e.hub, "kubectl -n clusters annotate cluster.fleet.cattle.io my-cluster muster/revoked=true")
	if err == nil {
		err = e.expect(ctx, e.hub, whyNotReady, "Revoked:")
	}
	figure := "revoked after " + seconds(began)
	if err == nil {
		err = errors.Join(in.isOut(ctx), e.isStill(ctx, e.hub, wellSince, well))
	}
	if err == nil {
		err = e.deliverLater(ctx)
	}
	stop()
	fight.Wait()
	if err := errors.Join(err, in.isOut(ctx), in.sees(later), e.isStill(ctx, e.hub, neighbour, beside)); err != nil {
		return "", err
	}
	others := *e
	others.members = []string{"my-cluster Revoked", "cluster-", "member-1 True"}
	if err := others.fleetIsWell(ctx); err != nil {
		return "", err
	}
	figure += fmt.Sprintf(", %d rounds of attempts, %d requests", attempts, len(in.asked))
	return figure, errors.Join(e.letInAgain(ctx, in), e.isStill(ctx, e.hub, neighbour, beside))
}

// allReady waits until all Clusters have what is delivered to them, the Bundles of their agents
// too.
func (e *env) allReady(ctx context.Context) error {
	_, err := e.sh(ctx, e.hub, `kubectl wait clusters.fleet.cattle.io -A --all --for=condition=Ready --timeout=60s
kubectl wait bundles.fleet.cattle.io -A --all --for=condition=Ready --timeout=60s`)
	return err
}

// can returns an error unless the stolen credential works: else all refusals would say nothing.
func (in *intruder) can(ctx context.Context) error {
	for name, try := range in.tries(in.own) {
		if err := try(ctx); err != nil && name != "renews its credential" { // which no member may
			return fmt.Errorf("before the revocation the member's own credential is refused when it %s: %w", name, err)
		}
	}
	return nil
}

// fight tries everything in a loop until the context ends, and returns how often.
func (in *intruder) fight(ctx context.Context) (rounds int) {
	tries := in.tries(in.own)
	for tick := time.NewTicker(pace); ; rounds++ {
		for _, try := range tries {
			_ = try(ctx) // what still works before the revocation is done is of no account
		}
		if rounds%10 == 5 { // more of them would only be one too many
			in.ask(ctx)
		}
		select {
		case <-ctx.Done():
			tick.Stop()
			return rounds
		case <-tick.C:
		}
	}
}

// isOut returns an error if anything works: with the credential, and with those of requests that
// the hub may have granted a moment before the revocation; or if a request was granted since.
func (in *intruder) isOut(ctx context.Context) error {
	in.ask(ctx)
	var credentials []string
	err := eventually(ctx, "every request is denied", func() error {
		tokens, states, err := in.granted(ctx)
		credentials = tokens
		for state := range states {
			if !strings.HasPrefix(state, string(fleet.RegistrationDenied)) {
				err = errors.Join(err, fmt.Errorf("requests are %v", states))
			}
		}
		if len(in.taken) != len(in.tokens) {
			err = errors.Join(err, fmt.Errorf("requests were taken of %v only: the test proves nothing of the others", in.taken))
		}
		return err
	})
	if err != nil {
		return err
	}
	bearers := []client.Client{in.own}
	for _, token := range credentials {
		as, err := in.as(token)
		if err != nil {
			return err
		}
		bearers = append(bearers, as)
	}
	var problems []error
	for _, as := range bearers {
		tries := in.tries(as)
		for _, name := range slices.Sorted(maps.Keys(tries)) {
			problems = append(problems, refused(name, tries[name](ctx)))
		}
	}
	for _, as := range in.tokens { // nor does a token to ask with read anything
		problems = append(problems, refused("reads its report with a token to register with", in.tries(as)["reads its report"](ctx)))
	}
	return errors.Join(problems...)
}

// deliverLater delivers a Bundle to all Clusters, which the other one gets.
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

// letInAgain takes the revocation back and gives the cluster its token again. What was delivered
// meanwhile comes, and the watch of before does not show it.
func (e *env) letInAgain(ctx context.Context, in *intruder) error {
	_, err := e.sh(ctx, nil, `kubectl --context hub -n clusters annotate cluster.fleet.cattle.io my-cluster muster/revoked-
helm --kube-context two -n cattle-fleet-system upgrade --wait --timeout 90s --values values.yaml --set clientID=really-random `+limited+` \
  fleet-agent fleet/fleet-agent`)
	if err != nil {
		return err
	}
	if err := errors.Join(e.fleetIsWell(ctx), e.expect(ctx, e.two, "kubectl -n default get configmap -o name", later)); err != nil {
		return err
	}
	if err := errors.Join(in.sees(later), in.isBarred(ctx)); err != nil {
		return err
	}
	var cleaning error
	for name := range in.asked {
		request := &fleet.ClusterRegistration{}
		request.Namespace, request.Name = "clusters", name
		cleaning = errors.Join(cleaning, client.IgnoreNotFound(in.admin.Delete(ctx, request)))
	}
	_, err = e.sh(ctx, e.hub, "kubectl -n clusters delete bundles.fleet.cattle.io "+later+" --timeout=60s")
	return errors.Join(cleaning, err, e.fleetIsWell(ctx))
}

// isBarred returns an error if the credential of before the revocation works again in the namespace
// that the member has now.
func (in *intruder) isBarred(ctx context.Context) error {
	var cluster fleet.Cluster
	if err := in.admin.Get(ctx, types.NamespacedName{Namespace: "clusters", Name: "my-cluster"}, &cluster); err != nil {
		return err
	}
	if cluster.Status.Namespace == in.namespace {
		return fmt.Errorf("the member has the namespace %s again", in.namespace)
	}
	return errors.Join(
		refused("lists BundleDeployments", in.own.List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(in.namespace))),
		refused("lists BundleDeployments of now", in.own.List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(cluster.Status.Namespace))))
}
