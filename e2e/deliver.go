package main

import (
	"context"
	"time"
)

// bundle returns a Bundle with a Deployment. Its container does nothing, with an image on every
// node of localkube.
func bundle(image string) string {
	return `kubectl apply -f - <<END
kind: Bundle
apiVersion: fleet.cattle.io/v1alpha1
metadata:
  name: web
  namespace: clusters
spec:
  defaultNamespace: web
  resources:
  - name: web.yaml
    content: |
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: web}
      spec:
        selector: {matchLabels: {app: web}}
        progressDeadlineSeconds: 10
        template:
          metadata: {labels: {app: web}}
          spec: {terminationGracePeriodSeconds: 1, containers: [{name: web, image: "` + image + `"}]}
  targets:
  - clusterSelector: {matchLabels: {env: dev}}
END
`
}

const working, broken = "docker.io/localkube/pause:1", "docker.io/localkube/never-built:1"

func bundleIsDelivered(ctx context.Context, e *env) (string, error) {
	began := time.Now()
	if _, err := e.sh(ctx, e.hub,
		bundle(working)+"kubectl -n clusters wait bundles.fleet.cattle.io web --for=condition=Ready --timeout=90s"); err != nil {
		return "", err
	}
	figure := "ready after " + seconds(began)
	if err := e.expect(ctx, e.one, "kubectl -n web get deployment web", "1/1"); err != nil {
		return "", err
	}
	return figure, e.expect(ctx, e.hub, "kubectl -n clusters get clusters.fleet.cattle.io -l env=dev", "1/1")
}

func unreadyBundleIsReported(ctx context.Context, e *env) (string, error) {
	if _, err := e.sh(ctx, e.hub, bundle(broken)); err != nil {
		return "", err
	}
	began := time.Now()
	if err := e.expect(ctx, e.hub, "kubectl -n clusters get bundles.fleet.cattle.io web", "NotReady", "web"); err != nil {
		return "", err
	}
	figure := "reported after " + seconds(began)
	_, err := e.sh(ctx, e.hub, bundle(working)+"kubectl -n clusters wait bundles.fleet.cattle.io web --for=condition=Ready --timeout=90s")
	return figure, err
}

func bundleIsDeleted(ctx context.Context, e *env) (string, error) {
	if _, err := e.sh(ctx, e.hub, "kubectl -n clusters delete bundles.fleet.cattle.io web --timeout=60s"); err != nil {
		return "", err
	}
	return "", e.gone(ctx, e.one, "kubectl -n web get deployments,pods -o name")
}

// placed creates a namespace with a Deployment, and its placement on the MemberCluster.
func placed(image string) string {
	return `
kubectl create namespace shop --dry-run=client -o yaml | kubectl apply -f -
kubectl apply -f - <<END
apiVersion: apps/v1
kind: Deployment
metadata: {name: till, namespace: shop}
spec:
  selector: {matchLabels: {app: till}}
  replicas: 1
  progressDeadlineSeconds: 5
  template:
    metadata: {labels: {app: till}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: till, image: "` + image + `"}]}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata:
  name: shop
spec:
  resourceSelectors:
    - {group: "", version: v1, kind: Namespace, name: shop}
  policy:
    placementType: PickFixed
    clusterNames: [member-1]
END
`
}

// available prints the conditions of the placement.
const available = `kubectl get crp shop -o 'jsonpath={range .status.conditions[*]}{.type}={.status} {end}{range ` +
	`.status.placementStatuses[*]}{.failedPlacements}{end}'`

func placementIsApplied(ctx context.Context, e *env) (string, error) {
	began := time.Now()
	if _, err := e.sh(ctx, e.hub, placed(working)); err != nil {
		return "", err
	}
	if err := e.expect(ctx, e.hub, available, "ClusterResourcePlacementAvailable=True"); err != nil {
		return "", err
	}
	return "available after " + seconds(began), e.expect(ctx, e.one, "kubectl -n shop get deployment till", "1/1")
}

// brokenPlacementIsReported deletes the placement again, so that the member can leave at once.
func brokenPlacementIsReported(ctx context.Context, e *env) (string, error) {
	began := time.Now()
	if _, err := e.sh(ctx, e.hub, placed(broken)); err != nil {
		return "", err
	}
	if err := e.expect(ctx, e.hub, available, "ClusterResourcePlacementAvailable=False", "till"); err != nil {
		return "", err
	}
	figure := "reported after " + seconds(began)
	if _, err := e.sh(ctx, e.hub, "kubectl delete crp shop --timeout=60s && kubectl delete namespace shop"); err != nil {
		return "", err
	}
	return figure, e.gone(ctx, e.one, "kubectl get namespace shop -o name --ignore-not-found")
}
