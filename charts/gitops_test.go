package charts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestTheWebhookOfRepositoriesIsOffByDefault(t *testing.T) {
	for values, on := range map[string]bool{"": false, "gitops: {webhook: {enabled: true}}": true} {
		out := hub(values).mustRender(t)
		if slices.Contains(out.names(), "Service cattle-fleet-system/gitjob") != on {
			t.Errorf("%q: %v", values, out.names())
		}
		role := fmt.Sprint(out.object(t, "Role", "fleet-gitops").Object["rules"])
		args, _, _ := unstructured.NestedStringSlice(out.container(t, "fleet-gitops"), "args")
		if strings.Contains(role, "gitjob-webhook") != on || slices.Contains(args, "--webhook-bind-address=:8082") != on ||
			slices.Contains(args, "--allow-loopback") {
			t.Errorf("%q: %s %v", values, role, args)
		}
		if !on {
			continue
		}
		service := fmt.Sprint(out.object(t, "Service", "gitjob").Object["spec"])
		if !strings.Contains(service, "port:80") || !strings.Contains(service, "app:fleet-gitops") {
			t.Errorf("the Service is %s", service)
		}
	}
}
