package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// chartsAreTested runs helm test of every release and reads the output of the tests.
func chartsAreTested(ctx context.Context, e *env) (string, error) {
	began := time.Now()
	// The hub sends the agent of the MemberCluster its chart, which undoes the limit of an earlier
	// scenario.
	if _, err := e.sh(ctx, e.hub, "kubectl wait membercluster member-1 --for=condition=AgentUpToDate --timeout=90s"); err != nil {
		return "", err
	}
	if _, err := e.sh(ctx, e.one, "kubectl -n fleet-system rollout status deployment/member-agent --timeout=60s"); err != nil {
		return "", err
	}
	for _, release := range []struct {
		on                           *cluster
		namespace, name, flags, says string
	}{
		{e.hub, "cattle-fleet-system", "fleet", "--logs", " leads."},
		{e.one, "cattle-fleet-system", "fleet-agent", "--logs", "Joined: "},
		{e.two, "cattle-fleet-system", "fleet-agent", "--logs", "Joined: "},
		{e.one, "default", "member-agent", "", "Succeeded"},
	} {
		// Helm prints only logs of Pods in the namespace of the release, and the agent of a MemberCluster
		// is in another namespace.
		output, err := e.sh(ctx, release.on, "helm -n "+release.namespace+" test --timeout 60s "+release.flags+" "+release.name)
		if err != nil {
			return "", err
		}
		if !strings.Contains(output, release.says) {
			return "", fmt.Errorf("helm test of %s on %s does not say %q:\n%s", release.name, release.on.name, release.says, output)
		}
		left, err := e.sh(ctx, release.on, "kubectl get pods,serviceaccounts,roles,rolebindings -A -o name | grep -e -test || true")
		if err == nil && left != "" {
			err = fmt.Errorf("helm test leaves behind\n%s", left)
		}
		if err != nil {
			return "", err
		}
	}
	return "four tests in " + seconds(began), nil
}
