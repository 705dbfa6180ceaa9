package work

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTheAutoscalerAndTheAggregationOfKubernetesKeepWhatTheyOwn runs the real controllers. The
// autoscaler raises the replicas to its least number, which needs no metrics.
func TestTheAutoscalerAndTheAggregationOfKubernetesKeepWhatTheyOwn(t *testing.T) {
	r := newRig(t)
	part := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "part-" + r.name, Labels: map[string]string{"part-of": r.name}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
	}
	r.check(r.Create(t.Context(), part))
	t.Cleanup(func() { r.check(r.Delete(context.Background(), part)) })
	const scaler = "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: fleet-member-NAME}, " +
		"spec: {minReplicas: 3, maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}"
	deployment := func(label string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: fleet-member-NAME, labels: {v: " + label +
			"}}, spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, " +
			"spec: {containers: [{name: c, image: i}]}}}}"
	}
	role := func(label string) string {
		return "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: aggregated-NAME, labels: {v: " + label +
			"}}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {part-of: NAME}}]}, rules: []}"
	}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "web"}}
	aggregated := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "aggregated-" + r.name}}
	kept := func(label string, replicas int32, rules int) {
		t.Helper()
		r.eventually(fmt.Sprintf("revision %s with %d replicas and %d rules", label, replicas, rules), func() error {
			r.refresh(web)
			r.refresh(aggregated)
			if *web.Spec.Replicas != replicas || web.Labels["v"] != label || len(aggregated.Rules) != rules || aggregated.Labels["v"] != label {
				return fmt.Errorf("it has %d replicas, %+v, %v, %v", *web.Spec.Replicas, aggregated.Rules, web.Labels, aggregated.Labels)
			}
			return nil
		})
	}
	r.applied(r.place("a", nil, deployment("a"), scaler, role("a")))
	kept("a", 3, 1)
	generation := web.Generation
	r.applied(r.place("a", nil, deployment("b"), scaler, role("b")))
	kept("b", 3, 1)
	if web.Generation != generation+1 { // the annotation with the hash of the manifest; never the replicas
		t.Errorf("the spec of the Deployment has changed from generation %d to %d", generation, web.Generation)
	}
	part.Rules = append(part.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get"}})
	r.check(r.Update(t.Context(), part))
	kept("b", 3, 2)
	r.applied(r.place("a", nil, deployment("c"), role("c")))
	kept("c", 1, 2) // the autoscaler left the Work
}
