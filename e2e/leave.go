package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// imageMissing uses a namespace and a release of its own: the chart of the MemberCluster's agent
// can be in any namespace.
func imageMissing(ctx context.Context, e *env) (string, error) {
	_, err := e.sh(ctx, e.two, restricted("missing")+hubAddressOf(e)+`
helm -n missing install --wait --timeout 15s --set config.hubURL="$API_SERVER_URL" --set config.memberClusterName=none \
  --set namespace=missing \
  --set image.tag=never-built member-agent fleet/charts/member-agent`)
	if err == nil {
		return "", errors.New("helm says that an agent without an image has joined")
	}
	err = e.expect(ctx, e.two, "kubectl -n missing get events -o 'jsonpath={.items[*].message}'", "muster-agent:never-built")
	return "", errors.Join(err, e.removeNamespace(ctx, e.two, "missing"))
}

func quotaForbids(ctx context.Context, e *env) (string, error) {
	if _, err := e.sh(ctx, e.two, restricted("full")+"kubectl -n full create quota none --hard=pods=0"); err != nil {
		return "", err
	}
	return "", e.refusedInstall(ctx, "full", "exceeded quota: none")
}

func policyRefuses(ctx context.Context, e *env) (string, error) {
	if _, err := e.sh(ctx, e.two, `kubectl create namespace refused
kubectl apply -f - <<END
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-agents}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "false", message: this cluster refuses agents}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-agents}
spec:
  policyName: no-agents
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: refused}}}
END`); err != nil {
		return "", err
	}
	// An API server takes a moment to apply a new policy.
	const denied = "this cluster refuses agents"
	if err := e.expect(ctx, e.two, "kubectl -n refused run x --image=x --dry-run=server 2>&1 || true", denied); err != nil {
		return "", err
	}
	err := e.refusedInstall(ctx, "refused", denied)
	_, removed := e.sh(ctx, e.two, "kubectl delete validatingadmissionpolicybinding,validatingadmissionpolicy no-agents")
	return "", errors.Join(err, removed)
}

// hubAddressOf returns hubAddress for a script on one cluster.
func hubAddressOf(e *env) string {
	return strings.ReplaceAll(hubAddress, "kubectl --context hub", "kubectl --kubeconfig "+e.hub.kubeconfig)
}

func (e *env) removeNamespace(ctx context.Context, c *cluster, namespace string) error {
	_, err := e.sh(ctx, c, "helm -n "+namespace+" uninstall member-agent\nkubectl delete namespace "+namespace+" --timeout=60s")
	return err
}

// memoryHeld reads the measurements of the kubelets. A container over its limit was killed and
// restarted.
func memoryHeld(ctx context.Context, e *env) (string, error) {
	var figures []string
	for _, c := range e.clusters {
		stats, err := e.sh(ctx, c, "kubectl get --raw /api/v1/nodes/"+c.name+"-node-0/proxy/stats/summary")
		if err != nil {
			return "", err
		}
		var summary struct {
			Pods []struct {
				PodRef     struct{ Name string }
				Containers []struct {
					Name   string
					Memory struct{ WorkingSetBytes int64 }
				}
			}
		}
		if err := json.Unmarshal([]byte(stats), &summary); err != nil {
			return "", fmt.Errorf("reading what kubelet measured: %w", err)
		}
		for _, pod := range summary.Pods {
			for _, container := range pod.Containers {
				figures = append(figures, fmt.Sprintf("%s on %s %d MiB", container.Name, c.name, container.Memory.WorkingSetBytes>>20))
			}
		}
		killed, err := e.sh(ctx, c, "kubectl get pods -A -o 'jsonpath={..lastState.terminated.reason}'")
		if err != nil {
			return "", err
		}
		if strings.Contains(killed, "OOMKilled") {
			return "", fmt.Errorf("on cluster %s a container went over its memory limit; now: %s", c.name, strings.Join(figures, ", "))
		}
	}
	return strings.Join(figures, ", "), nil
}

func memberClusterLeaves(ctx context.Context, e *env) (string, error) {
	if _, err := e.sh(ctx, nil, `
export HUB_CLUSTER_CONTEXT=hub
export MEMBER_CLUSTER=member-1
export MEMBER_CLUSTER_CONTEXT=one
./fleet/hack/membership/leave.sh`); err != nil {
		return "", err
	}
	if err := e.gone(ctx, e.hub, "kubectl get memberclusters,namespaces -o name | grep member-1"); err != nil {
		return "", err
	}
	return "", e.gone(ctx, e.one, "kubectl -n fleet-system get pods -o name")
}

func clusterIsDeleted(ctx context.Context, e *env) (string, error) {
	namespace, err := e.sh(ctx, e.hub, "kubectl -n clusters get clusters.fleet.cattle.io my-cluster -o 'jsonpath={.status.namespace}'")
	if err != nil || namespace == "" {
		return "", fmt.Errorf("my-cluster has no namespace: %w", err)
	}
	if err := e.forgetHub(ctx, e.two); err != nil {
		return "", err
	}
	if _, err := e.sh(ctx, e.hub, "kubectl -n clusters delete clusters.fleet.cattle.io my-cluster --timeout=60s"); err != nil {
		return "", err
	}
	return "", e.gone(ctx, e.hub, "kubectl get namespace --ignore-not-found -o name "+namespace+
		"; kubectl -n fleet-inventory get clusterprofiles -o name | grep my-cluster")
}

// gone waits until a command prints nothing.
func (e *env) gone(ctx context.Context, c *cluster, script string) error {
	return eventually(ctx, "nothing is left", func() error {
		// grep fails if it finds nothing.
		out, err := e.sh(ctx, c, "{ "+script+"; } || true")
		if err == nil && out != "" {
			err = fmt.Errorf("there is still\n%s", out)
		}
		return err
	})
}

// forgetHub removes an agent with all its data, as in the guide, and creates the namespace for the
// next agent.
func (e *env) forgetHub(ctx context.Context, c *cluster) error {
	_, err := e.sh(ctx, c, `
helm -n cattle-fleet-system uninstall --wait fleet-agent
kubectl delete namespace cattle-fleet-system --timeout=60s
`+restricted("cattle-fleet-system"))
	return err
}
