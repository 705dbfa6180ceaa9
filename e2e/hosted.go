package main

import (
	"context"
	"errors"
)

// hosted are the commands of the guide for two as the member, and the hub's cluster as the host.
const hosted = hubAddress + `
helm --kube-context two -n cattle-fleet-system upgrade --install --values values.yaml --set-string labels.hosted=true \
  --set apiServerURL="$API_SERVER_URL" --set apiServerCA="$API_SERVER_CA_DATA" --set hosted.part=member \
  fleet-agent fleet/fleet-agent
` + hostedKubeconfig + `
kubectl --context hub -n agents create secret generic two --from-file=kubeconfig=agent.kubeconfig
helm --kube-context hub -n agents upgrade --install --wait ` + limited + ` \
  --set hosted.part=host --set hosted.memberKubeconfigSecret=two two fleet/fleet-agent
helm --kube-context hub -n agents test two
`

// hostedKubeconfig writes agent.kubeconfig, with a new token.
const hostedKubeconfig = `
kubectl config view --raw --minify --flatten --context two > two.kubeconfig
kubectl config --kubeconfig two.kubeconfig set-credentials agent \
  --token "$(kubectl --context two -n cattle-fleet-system create token fleet-agent --duration 1h)"
kubectl config --kubeconfig two.kubeconfig set-context --current --user agent
kubectl config --kubeconfig two.kubeconfig view --minify --raw > agent.kubeconfig
`

const hostedBundle = `kubectl apply -f - <<END
apiVersion: fleet.cattle.io/v1alpha1
kind: Bundle
metadata: {name: hosted, namespace: clusters}
spec:
  targets: [{clusterSelector: {matchLabels: {hosted: "true"}}}]
  resources:
  - name: settings.yaml
    content: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: hosted, namespace: default}
END
`

// agentIsHosted runs the agent of two on the hub's cluster, delivers, and renews the kubeconfig.
func agentIsHosted(ctx context.Context, e *env) (string, error) {
	if _, err := e.sh(ctx, e.hub, restricted("agents")); err != nil {
		return "", err
	}
	if _, err := e.sh(ctx, nil, hosted); err != nil {
		return "", err
	}
	if _, err := e.sh(ctx, e.hub, hostedBundle); err != nil {
		return "", err
	}
	err := errors.Join(
		e.expect(ctx, e.two, "kubectl -n default get configmap hosted -o name", "configmap/hosted"),
		e.gone(ctx, e.two, "kubectl -n cattle-fleet-system get pods -o name"),
	)
	if err != nil {
		return "", err
	}
	if err := e.hostedAgentFollows(ctx); err != nil {
		return "", err
	}
	// A Cluster that leaves keeps what was delivered.
	_, err = e.sh(ctx, nil, `kubectl --context hub -n clusters delete bundle hosted --timeout=60s
kubectl --context hub -n clusters delete clusters.fleet.cattle.io -l hosted=true --timeout=60s
helm --kube-context hub -n agents uninstall --wait two
kubectl --context hub delete namespace agents --timeout=60s
kubectl --context two -n default delete configmap hosted`)
	return "", errors.Join(err, e.forgetHub(ctx, e.two))
}

// hostedAgentFollows renews the kubeconfig in the Secret. The agent starts again within its
// container. A kubelet updates the file within some 90 s, and at once when the Pod changes.
func (e *env) hostedAgentFollows(ctx context.Context) error {
	if _, err := e.sh(ctx, nil, hostedKubeconfig+`
kubectl --context hub -n agents create secret generic two --from-file=kubeconfig=agent.kubeconfig --dry-run=client -o yaml |
  kubectl --context hub apply -f -
kubectl --context hub -n agents annotate pods -l app=fleet-agent renewed=true`); err != nil {
		return err
	}
	return errors.Join(
		e.expect(ctx, e.hub, "kubectl -n agents logs -l app=fleet-agent --tail=-1 | grep -c 'Agent started'", "2"),
		e.expect(ctx, e.hub, "kubectl -n agents get pods -l app=fleet-agent", "1/1", " 0 "),
	)
}
