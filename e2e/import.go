package main

import (
	"context"
	"path/filepath"
	"time"
)

// importing creates the Cluster my-cluster with a kubeconfig. Its images come from a registry.
func importing(registry string) string {
	return `
kubectl -n clusters create secret generic my-cluster-kubeconfig --from-file=value=clusters/two/kubeconfig
kubectl apply -f - <<END
kind: Cluster
apiVersion: "fleet.cattle.io/v1alpha1"
metadata:
  name: my-cluster
  namespace: clusters
  labels:
    demo: "true"
    env: dev
spec:
  kubeConfigSecret: my-cluster-kubeconfig
  privateRepoURL: "` + registry + `"
END
`
}

// whyNotReady prints the condition Ready of my-cluster.
const whyNotReady = `kubectl -n clusters get clusters.fleet.cattle.io my-cluster -o ` +
	`'jsonpath={.status.conditions[?(@.type=="Ready")].reason}: {.status.conditions[?(@.type=="Ready")].message}'`

// brokenImport corrects the Cluster as its conditions instruct, until its agent joins.
func brokenImport(ctx context.Context, e *env) (string, error) {
	began := time.Now()
	if _, err := e.sh(ctx, e.hub, importing("missing.example.com")); err != nil {
		return "", err
	}
	if err := e.expect(ctx, e.hub, whyNotReady, "AgentImageNotPulled", "missing.example.com/muster-agent:"+e.tag); err != nil {
		return "", err
	}
	figure := "missing image named after " + seconds(began)
	again := func(registry string) error {
		began = time.Now()
		_, err := e.sh(ctx, e.hub,
			`kubectl -n clusters patch clusters.fleet.cattle.io my-cluster --type=merge -p '{"spec":{"privateRepoURL":"`+registry+`"}}'`)
		return err
	}
	if err := again(foreignRegistry); err != nil {
		return "", err
	}
	if err := e.expect(ctx, e.hub, whyNotReady, "AgentWrongArchitecture", foreignRegistry+"/muster-agent:"+e.tag); err != nil {
		return "", err
	}
	figure += ", wrong architecture after " + seconds(began)
	if err := again(""); err != nil {
		return "", err
	}
	if err := e.expect(ctx, e.hub, whyNotReady, "Ready:"); err != nil {
		return "", err
	}
	figure += ", ready " + seconds(began) + " after it was corrected"
	_, err := e.sh(ctx, nil, `kubectl --context hub -n clusters delete clusters.fleet.cattle.io my-cluster --timeout=60s
kubectl --context hub -n clusters delete secret my-cluster-kubeconfig
kubectl --context two delete namespace cattle-fleet-system --timeout=60s`)
	if err != nil {
		return "", err
	}
	_, err = e.sh(ctx, e.two, restricted("cattle-fleet-system"))
	return figure, err
}

func clusterIsImported(ctx context.Context, e *env) (string, error) {
	began := time.Now()
	_, err := e.sh(ctx, e.hub,
		importing("")+"kubectl -n clusters wait clusters.fleet.cattle.io my-cluster --for=condition=Ready --timeout=60s")
	figure := "ready after " + seconds(began)
	if err != nil {
		return "", err
	}
	return figure, e.expect(ctx, e.hub, "kubectl -n clusters get clusters.fleet.cattle.io my-cluster", "1/1", "two-node-0")
}

// foreignRegistry is the registry with an agent's image for another processor.
const foreignRegistry = "foreign.example.com"

func (e *env) foreignImage() string { return filepath.Join(e.work, "foreign-agent.tar") }
