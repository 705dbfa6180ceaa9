package bundle

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// TestTheAutoscalerAndTheAggregationOfKubernetesKeepWhatTheyOwn runs the real controllers. The
// autoscaler raises the replicas to its least number, which needs no metrics.
func TestTheAutoscalerAndTheAggregationOfKubernetesKeepWhatTheyOwn(t *testing.T) {
	r := newRig(t)
	r.start()
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: r.target, Name: "web"}}
	aggregated := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "aggregated-" + r.target}}
	part := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "part-" + r.target, Labels: map[string]string{"part-of": r.target}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
	}
	r.create(part)
	t.Cleanup(func() { r.check(r.kube.Delete(context.Background(), part)) })
	deploy := func(label string) {
		r.placeWith("web", func(spec *fleet.BundleDeploymentSpec) { spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true} },
			fleet.BundleDeploymentOptions{}, configMap("seen", label),
			file("web.yaml", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {v: "+label+"}}, spec: {replicas: 1, "+
				"selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}}}"),
			file("hpa.yaml", "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {minReplicas: 3, "+
				"maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}"),
			file("role.yaml", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "+aggregated.Name+
				", labels: {v: "+label+"}}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {part-of: "+r.target+"}}]}, rules: []}"))
		r.untilData("seen", label)
	}
	kept := func(label string, replicas int32, rules int) {
		t.Helper()
		r.eventually(fmt.Sprintf("revision %s with %d replicas and %d rules", label, replicas, rules), func() error {
			if err := r.kube.Get(t.Context(), client.ObjectKeyFromObject(web), web); err != nil {
				return err
			}
			if err := r.kube.Get(t.Context(), client.ObjectKeyFromObject(aggregated), aggregated); err != nil {
				return err
			}
			if *web.Spec.Replicas != replicas || web.Labels["v"] != label || len(aggregated.Rules) != rules || aggregated.Labels["v"] != label {
				return fmt.Errorf("it has %d replicas, %+v, %v, %v", *web.Spec.Replicas, aggregated.Rules, web.Labels, aggregated.Labels)
			}
			if modified := r.get("web").Status.ModifiedStatus; len(modified) > 0 {
				return fmt.Errorf("modified are %+v", modified)
			}
			return nil
		})
	}
	deploy("a")
	kept("a", 3, 1)
	generation := web.Generation
	r.edit("seen", `{"data":{"key":"by hand"}}`)
	r.untilData("seen", "a") // a correction is over
	r.check(r.kube.Get(t.Context(), client.ObjectKeyFromObject(web), web))
	if web.Generation != generation {
		t.Errorf("the Deployment has changed from generation %d to %d", generation, web.Generation)
	}
	deploy("b")
	kept("b", 3, 1)
	part.Rules = append(part.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get"}})
	r.check(r.kube.Update(t.Context(), part))
	kept("b", 3, 2)
}
