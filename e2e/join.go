package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// waitBudget bounds `helm install --wait` of an agent with the image present.
const waitBudget = 10 * time.Second

// hubAddress sets the variables of the guides: the URL and the CA of the hub, from its kubeconfig.
const hubAddress = `
API_SERVER_URL=$(kubectl --context hub config view --minify --raw -o 'jsonpath={.clusters[0].cluster.server}')
API_SERVER_CA_DATA=$(kubectl --context hub config view --minify --raw -o 'jsonpath={.clusters[0].cluster.certificate-authority-data}')
`

// restricted creates a namespace with Pod Security restricted. A Pod there gets a token only on
// request.
func restricted(namespace string) string {
	return strings.ReplaceAll(`kubectl create namespace NAMESPACE
kubectl label namespace NAMESPACE pod-security.kubernetes.io/enforce=restricted
until kubectl -n NAMESPACE get serviceaccount default >/dev/null 2>&1; do sleep 0.1; done
kubectl -n NAMESPACE patch serviceaccount default -p '{"automountServiceAccountToken":false}'
`, "NAMESPACE", namespace)
}

func clustersComeUp(ctx context.Context, e *env) (string, error) {
	type answer struct {
		said string
		err  error
	}
	answers := make(chan answer)
	for _, c := range e.clusters {
		go func() {
			began := time.Now()
			err := e.start(ctx, c)
			answers <- answer{c.name + " " + seconds(began), err}
		}()
	}
	var figures []string
	var problems []error
	for range e.clusters {
		a := <-answers
		figures, problems = append(figures, a.said), append(problems, a.err)
	}
	return strings.Join(figures, ", "), errors.Join(problems...)
}

func hubInstalls(ctx context.Context, e *env) (string, error) {
	for _, c := range e.clusters {
		if _, err := e.sh(ctx, c, restricted("cattle-fleet-system")+restricted("fleet-system")); err != nil {
			return "", err
		}
	}
	if _, err := e.sh(ctx, e.hub, `helm -n cattle-fleet-system install --create-namespace --wait fleet-crd fleet/fleet-crd`); err != nil {
		return "", err
	}
	began := time.Now()
	_, err := e.sh(ctx, e.hub, hubAddress+`
helm -n cattle-fleet-system install --wait --set apiServerURL="$API_SERVER_URL" --set apiServerCA="$API_SERVER_CA_DATA" fleet fleet/fleet`)
	return "`--wait` " + seconds(began), err
}

func tokenBecomesValues(ctx context.Context, e *env) (string, error) {
	_, err := e.sh(ctx, e.hub, `
kubectl create namespace clusters
kubectl apply -f - <<END
kind: ClusterRegistrationToken
apiVersion: "fleet.cattle.io/v1alpha1"
metadata:
  name: new-token
  namespace: clusters
spec:
  ttl: 240h
END
while ! kubectl --namespace=clusters get secret new-token; do sleep 1; done
kubectl --namespace clusters get secret new-token -o 'jsonpath={.data.values}' | base64 --decode > values.yaml`)
	if err != nil {
		return "", err
	}
	values, err := os.ReadFile(filepath.Join(e.work, "values.yaml"))
	if err == nil && !strings.Contains(string(values), "token:") {
		err = errors.New("values.yaml holds no token")
	}
	return "", err
}

// limited is the setting of agents here: they must get by with 64 MiB.
const limited = "--set fleetAgent.resources.limits.memory=64Mi"

func newClusterRegisters(ctx context.Context, e *env) (string, error) {
	return timedInstall(ctx, e, e.one, hubAddress+`
CLUSTER_LABELS="--set-string labels.example=true --set-string labels.env=dev"
export KUBECONFIG=$PWD/clusters/one/kubeconfig
helm -n cattle-fleet-system install --create-namespace --wait \
$CLUSTER_LABELS \
--values values.yaml \
--set apiServerCA="$API_SERVER_CA_DATA" \
--set apiServerURL="$API_SERVER_URL" `+limited+` \
fleet-agent fleet/fleet-agent`)
}

func predefinedClusterRegisters(ctx context.Context, e *env) (string, error) {
	if _, err := e.sh(ctx, e.hub, `kubectl apply -f - <<END
kind: Cluster
apiVersion: fleet.cattle.io/v1alpha1
metadata:
  name: my-cluster
  namespace: clusters
spec:
  clientID: "really-random"
END`); err != nil {
		return "", err
	}
	return timedInstall(ctx, e, e.two, `
CLUSTER_CLIENT_ID="really-random"
export KUBECONFIG=$PWD/clusters/two/kubeconfig
helm -n cattle-fleet-system install --create-namespace --wait \
--set clientID="$CLUSTER_CLIENT_ID" \
--values values.yaml `+limited+` \
fleet-agent fleet/fleet-agent`)
}

// timedInstall installs an agent. Helm must keep to its budget, and must return only after the
// agent has joined.
func timedInstall(ctx context.Context, e *env, c *cluster, script string) (string, error) {
	began := time.Now()
	if _, err := e.sh(ctx, nil, script); err != nil {
		return "", err
	}
	figure := "`--wait` " + seconds(began)
	if time.Since(began) > waitBudget {
		return "", fmt.Errorf("%s, more than %s", figure, waitBudget)
	}
	said, err := e.sh(ctx, c,
		"kubectl -n cattle-fleet-system logs -l app=fleet-agent\nkubectl -n cattle-fleet-system get pods -l app=fleet-agent")
	if err == nil && !strings.Contains(said, "1/1") {
		err = fmt.Errorf("helm returned, and the agent is not ready:\n%s", said)
	}
	return figure, err
}

func clustersAreShown(ctx context.Context, e *env) (string, error) {
	if err := e.expect(ctx, e.hub, "kubectl -n clusters get clusters.fleet.cattle.io",
		"NODES-READY", "LAST-SEEN", "my-cluster", "one-node-0", "two-node-0"); err != nil {
		return "", err
	}
	if err := e.expect(ctx, e.hub, "kubectl -n clusters get clusters.fleet.cattle.io -o 'jsonpath={.items[*].status.display.readyNodes}'",
		"1/1 1/1"); err != nil {
		return "", err
	}
	return "", e.expect(ctx, e.hub, "kubectl -n clusters get clusters.fleet.cattle.io -l example=true,env=dev", "one-node-0")
}

func memberClusterJoins(ctx context.Context, e *env) (string, error) {
	began := time.Now()
	_, err := e.sh(ctx, nil, hubAddress+`
export HUB_CLUSTER_CONTEXT=hub
export HUB_CLUSTER_ADDRESS=$API_SERVER_URL
export MEMBER_CLUSTER=member-1
export MEMBER_CLUSTER_CONTEXT=one
export MEMBER_AGENT_VALUES=$PWD/member-values.yaml
echo "resources: {limits: {memory: 64Mi}}" > $MEMBER_AGENT_VALUES
./fleet/hack/membership/join.sh`)
	if err != nil {
		return "", err
	}
	return "join.sh " + seconds(began), e.expect(ctx, e.one,
		"kubectl -n fleet-system get deployment member-agent -o 'jsonpath={..limits.memory}'", "64Mi")
}

// agentsKeepTheirPods waits until each agent has the release of the hub, and expects the same
// Pods as before.
func agentsKeepTheirPods(ctx context.Context, e *env) (string, error) {
	if _, err := e.sh(ctx, e.hub, `
for members in "clusters.fleet.cattle.io -n clusters" "clusters.fleet.cattle.io -n fleet-local" memberclusters; do
  kubectl wait --all --for=condition=AgentUpToDate --timeout=120s $members
done`); err != nil {
		return "", err
	}
	for _, c := range e.clusters {
		revisions, err := e.sh(ctx, c, `kubectl get deployments -A -l app.kubernetes.io/component=agent \
-o 'jsonpath={range .items[*]}{.metadata.name} {.metadata.annotations.deployment\.kubernetes\.io/revision}{"\n"}{end}'`)
		if err != nil {
			return "", err
		}
		for line := range strings.Lines(revisions) {
			if !strings.HasSuffix(strings.TrimSpace(line), " 1") {
				return "", fmt.Errorf("on cluster %s an agent was restarted; its Deployment and revision: %s", c.name, line)
			}
		}
		if !strings.Contains(revisions, "agent 1") {
			return "", fmt.Errorf("cluster %s has no agent:\n%s", c.name, revisions)
		}
	}
	return "", nil
}

func memberClusterIsShown(ctx context.Context, e *env) (string, error) {
	if err := e.expect(ctx, nil, `kubectl config use-context hub >/dev/null
kubectl get membercluster member-1`, "JOINED", "True", "NODE-COUNT", "AVAILABLE-MEMORY"); err != nil {
		return "", err
	}
	return "", e.expect(ctx, e.hub,
		`kubectl get membercluster member-1 -o 'jsonpath={.status.properties.kubernetes-fleet\.io/node-count.value} node'`, "1 node")
}

func localClusterIsThere(ctx context.Context, e *env) (string, error) {
	if err := e.expect(ctx, e.hub, "kubectl -n fleet-local get clusters.fleet.cattle.io", "local", "1/1", "hub-node-0"); err != nil {
		return "", err
	}
	warned, err := e.sh(ctx, e.hub, "kubectl -n fleet-local get events --field-selector type=Warning -o name")
	if err == nil && warned != "" {
		err = fmt.Errorf("there are warnings about it: %s", warned)
	}
	return "", err
}

func profilesAreShown(ctx context.Context, e *env) (string, error) {
	return "", e.expect(ctx, e.hub, `kubectl -n fleet-inventory get clusterprofiles -o \
'jsonpath={range .items[*]}{.status.version.kubernetes} {.status.conditions[?(@.type=="ControlPlaneHealthy")].status}{"\n"}{end}' | `+
		`sort | uniq -c`,
		"4 v1.36.3 True")
}

func agentBeforeHub(ctx context.Context, e *env) (string, error) {
	const requests = "kubectl -n clusters get clusterregistrations -o name"
	before, err := e.sh(ctx, e.hub, requests)
	if err != nil {
		return "", err
	}
	if _, err := e.sh(ctx, e.hub, `kubectl -n cattle-fleet-system scale deployment/fleet-controller --replicas=0
kubectl -n cattle-fleet-system wait --for=delete pod -l app=fleet-controller --timeout=60s`); err != nil {
		return "", err
	}
	if _, err := e.sh(ctx, e.two,
		"helm -n cattle-fleet-system install --values values.yaml "+limited+" fleet-agent fleet/fleet-agent"); err != nil {
		return "", err
	}
	err = eventually(ctx, "it has sent a registration request", func() error {
		after, err := e.sh(ctx, e.hub, requests)
		if err == nil && after == before {
			err = errors.New("there is no new request")
		}
		return err
	})
	if err != nil {
		return "", err
	}
	if err := e.expect(ctx, e.two, "kubectl -n cattle-fleet-system get pods -l app=fleet-agent", "0/1", "Running"); err != nil {
		return "", err
	}
	output, err := e.sh(ctx, e.hub, "helm -n cattle-fleet-system test fleet --logs --timeout 40s 2>&1 || true")
	if err == nil && !strings.Contains(output, "no hub leads") {
		err = fmt.Errorf("helm test finds nothing wrong where no hub runs:\n%s", output)
	}
	if err != nil {
		return "", err
	}
	began := time.Now()
	_, err = e.sh(ctx, nil, `kubectl --context hub -n cattle-fleet-system scale deployment/fleet-controller --replicas=1
kubectl --context two -n cattle-fleet-system rollout status deployment/fleet-agent --timeout=60s`)
	if err != nil {
		return "", err
	}
	figure := "joined " + seconds(began) + " after the hub was started"
	err = e.forgetHub(ctx, e.two)
	if err == nil {
		_, err = e.sh(ctx, e.hub, "kubectl -n clusters delete clusters.fleet.cattle.io --timeout=60s $(kubectl -n clusters get "+
			"clusters.fleet.cattle.io -l '!example' -o name | cut -d/ -f2)")
	}
	return figure, err
}

func privilegedPodIsRefused(ctx context.Context, e *env) (string, error) {
	out, err := e.sh(ctx, e.one, `kubectl -n cattle-fleet-system run privileged --image=muster-agent:`+e.tag+` --privileged`)
	if err == nil || !strings.Contains(err.Error(), "violates PodSecurity") {
		return "", fmt.Errorf("a privileged Pod was not refused: %s (%w)", out, err)
	}
	return "", nil
}
