package work

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

func (r *rig) patchAs(manager string, o client.Object, patch string) {
	r.t.Helper()
	r.check(r.Patch(r.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(manager)))
}

func TestAKeyThatLeavesStringDataLeavesTheSecret(t *testing.T) {
	r := newRig(t)
	text := func(texts string) string {
		return "{apiVersion: v1, kind: Secret, metadata: {name: creds, namespace: fleet-member-NAME}, stringData: {" + texts + "}}"
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "creds"}}
	is := func(want string) {
		t.Helper()
		r.eventually("the Secret has "+want, func() error {
			err := r.Get(t.Context(), client.ObjectKeyFromObject(secret), secret)
			if got := fmt.Sprintf("%q", secret.Data); err == nil && got != want {
				err = fmt.Errorf("it has %s", got)
			}
			return err
		})
	}
	// As an earlier version applied it.
	r.check(r.Patch(t.Context(), r.object(text("old: revoked, keep: one")), client.Apply, //nolint:staticcheck // unstructured
		client.FieldOwner(fieldOwner)))
	work := r.place("a", nil, text("old: revoked, keep: one"))
	r.applied(work)
	r.patchAs("kubectl-patch", secret, `{"stringData":{"keep":"by hand"}}`)
	is(`map["keep":"one" "old":"revoked"]`)
	r.applied(r.place("a", nil, text("keep: one")))
	is(`map["keep":"one"]`)
}

func TestAMistakeOfTheAuthorIsRefusedByName(t *testing.T) {
	r := newRig(t)
	twice := "{apiVersion: v1, kind: Pod, metadata: {name: twice, namespace: fleet-member-NAME}, spec: {containers: [{name: c, image: i, " +
		"env: [{name: MODE, value: a}, {name: MODE, value: b}]}]}}"
	numbers := "{apiVersion: v1, kind: ConfigMap, metadata: {name: numbers, namespace: fleet-member-NAME, labels: {app: web, version: 1}}}"
	onServer := func(spec *placement.WorkSpec) {
		spec.ApplyStrategy = &placement.ApplyStrategy{Type: placement.ApplyServerSide}
	}
	work := r.place("a", onServer, numbers, twice)
	if got := r.untilOf(work, 0, placement.ConditionApplied, reasons.InvalidManifest); !strings.Contains(got.Message,
		"metadata.labels.version is a number, and Kubernetes takes only a text: put the value in quotes") {
		t.Errorf("the message is %s", got.Message)
	}
	if got := r.untilOf(work, 1, placement.ConditionApplied, reasons.InvalidManifest); !strings.Contains(got.Message,
		"spec.containers[0].env[0] and [1] have the same name") {
		t.Errorf("the message is %s", got.Message)
	}
	r.applied(r.place("b", nil, twice))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "twice"}}
	r.refresh(pod)
	if env := pod.Spec.Containers[0].Env; len(env) != 1 || env[0].Value != "b" {
		t.Errorf("the Pod has %+v", env)
	}
}

func TestWhatOthersOwnIsLeftToThem(t *testing.T) {
	r := newRig(t)
	deployment := func(label string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: fleet-member-NAME}, spec: {replicas: 1, " +
			"selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web, v: " + label +
			"}}, spec: {containers: [{name: c, image: i}]}}}}"
	}
	const scaler = "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: fleet-member-NAME}, " +
		"spec: {minReplicas: 1, maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}"
	const role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: agg-NAME}, aggregationRule: " +
		"{clusterRoleSelectors: [{matchLabels: {a: b}}]}, rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]}"
	r.applied(r.place("a", nil, deployment("a"), scaler, role))
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "web"}}
	aggregated := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "agg-" + r.name}}
	r.patchAs("clusterrole-aggregation-controller", aggregated, `{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`)
	is := func(want int32, label string) {
		t.Helper()
		r.eventually(fmt.Sprintf("the Deployment has %d replicas", want), func() error {
			err := r.Get(t.Context(), client.ObjectKeyFromObject(web), web)
			if err == nil && (*web.Spec.Replicas != want || web.Spec.Template.Labels["v"] != label) {
				err = fmt.Errorf("it has %d, %v", *web.Spec.Replicas, web.Spec.Template.Labels)
			}
			return err
		})
	}
	for i := range 8 { // more than an object is set back without a delay
		r.patchAs("hpa", web, fmt.Sprintf(`{"spec":{"replicas":%d}}`, 2+i%4))
	}
	r.applied(r.place("a", nil, deployment("b"), scaler, role))
	is(5, "b")
	r.patchAs("kubectl-scale", web, `{"spec":{"replicas":7}}`)
	is(1, "b")
	r.patchAs("hpa", web, `{"spec":{"replicas":4}}`)
	r.applied(r.place("a", nil, deployment("c"), scaler, role))
	is(4, "c")
	r.applied(r.place("a", nil, deployment("c"), role))
	is(1, "c") // the autoscaler left the Work
	r.refresh(aggregated)
	if len(aggregated.Rules) != 1 || aggregated.Rules[0].Resources[0] != "pods" {
		t.Errorf("the role has %+v", aggregated.Rules)
	}
}
