package main

import (
	"context"
	"errors"
	"time"
)

// uninstalledAgents removes the agent of cluster one, which is a release, and the agent of cluster
// two, installed by the hub.
const uninstalledAgents = `
helm --kube-context one -n cattle-fleet-system uninstall --wait --timeout 60s fleet-agent
kubectl --context one delete namespace cattle-fleet-system --timeout=60s
kubectl --context two delete namespace cattle-fleet-system --timeout=60s
`

// hubUninstalledFirst restores the fleet afterwards: Clusters outlive the hub.
func hubUninstalledFirst(ctx context.Context, e *env) (string, error) {
	began := time.Now()
	if _, err := e.sh(ctx, nil, `
helm --kube-context hub -n cattle-fleet-system uninstall --wait --timeout 60s fleet`+uninstalledAgents); err != nil {
		return "", err
	}
	figure := "removed in " + seconds(began)
	if err := errors.Join(e.nothingHangs(ctx, e.hub), e.nothingHangs(ctx, e.one), e.nothingHangs(ctx, e.two)); err != nil {
		return "", err
	}
	if _, err := e.sh(ctx, e.one, restricted("cattle-fleet-system")); err != nil {
		return "", err
	}
	_, err := e.sh(ctx, nil, hubAddress+`
helm --kube-context hub -n cattle-fleet-system install --wait --set apiServerURL="$API_SERVER_URL" \
  --set apiServerCA="$API_SERVER_CA_DATA" fleet fleet/fleet

# The hub lost the key of cluster one with its namespace, so the agent needs a token for this Cluster.
one=$(kubectl --context hub -n clusters get clusters.fleet.cattle.io -o name | grep -v my-cluster | cut -d/ -f2)
kubectl --context hub apply -f - <<END
kind: ClusterRegistrationToken
apiVersion: fleet.cattle.io/v1alpha1
metadata: {name: one-again, namespace: clusters}
spec: {ttl: 1h, clusterName: $one}
END
kubectl --context hub -n clusters wait clusterregistrationtokens.fleet.cattle.io one-again --for=condition=Ready --timeout=30s
kubectl --context hub -n clusters get secret one-again -o 'jsonpath={.data.values}' | base64 --decode > values-again.yaml
helm --kube-context one -n cattle-fleet-system install --wait --values values-again.yaml \
  --set apiServerCA="$API_SERVER_CA_DATA" --set apiServerURL="$API_SERVER_URL" \
  fleet-agent fleet/fleet-agent
kubectl --context hub -n clusters patch clusters.fleet.cattle.io my-cluster --type=merge -p '{"spec":{"redeployAgentGeneration":1}}'
kubectl --context hub -n clusters wait clusters.fleet.cattle.io my-cluster --for=condition=Ready --timeout=90s`)
	if err != nil {
		return "", err
	}
	return figure + "; both back", e.expect(ctx, e.hub, "kubectl -n clusters get clusters.fleet.cattle.io -o "+
		"'jsonpath={.items[*].status.conditions[?(@.type==\"Ready\")].reason}'", "Ready Ready")
}

// agentsUninstalledFirst removes everything, in the order of the guide.
func agentsUninstalledFirst(ctx context.Context, e *env) (string, error) {
	began := time.Now()
	_, err := e.sh(ctx, nil, `
kubectl --context hub delete memberclusters --all --timeout=60s
helm --kube-context one -n default uninstall --wait --ignore-not-found member-agent`+uninstalledAgents+`
kubectl config use-context hub >/dev/null
helm -n cattle-fleet-system upgrade --wait --reuse-values --set bootstrap.enabled=false fleet fleet/fleet
kubectl delete clusters.fleet.cattle.io -A --all --timeout=90s
kubectl delete namespace clusters fleet-local --timeout=60s
helm -n cattle-fleet-system uninstall --wait --timeout 60s fleet
helm -n cattle-fleet-system uninstall --wait --timeout 60s fleet-crd
kubectl delete crd $(kubectl get crd -o name | grep -e fleet -e x-k8s.io | cut -d/ -f2) --timeout=60s
kubectl delete namespace cattle-fleet-system fleet-system --timeout=60s`)
	if err != nil {
		return "", err
	}
	return "removed in " + seconds(began), errors.Join(e.nothingHangs(ctx, e.hub), e.nothingHangs(ctx, e.one), e.nothingHangs(ctx, e.two))
}

// nothingHangs waits until no object on a cluster is in deletion.
func (e *env) nothingHangs(ctx context.Context, c *cluster) error {
	return e.gone(ctx, c,
		`kubectl get namespaces,crds,pods -A -o 'jsonpath={range .items[?(@.metadata.deletionTimestamp)]}{.kind}/{.metadata.name}{"\n"}{end}'`)
}
