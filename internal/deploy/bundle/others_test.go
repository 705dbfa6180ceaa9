package bundle

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

// injected has the form of a certificate that an injector writes.
var injected = base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\nMTIz\n-----END CERTIFICATE-----\n"))

// patchAs changes an object as another program.
func (r *rig) patchAs(manager string, o client.Object, patch string) {
	r.t.Helper()
	r.check(r.kube.Patch(r.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(manager)))
}

func secretOf(texts string) fleet.BundleResource {
	return file("secret.yaml", "{apiVersion: v1, kind: Secret, metadata: {name: creds}, stringData: {"+texts+"}}")
}

func TestAKeyThatLeavesStringDataLeavesTheSecret(t *testing.T) {
	r := newRig(t)
	r.start()
	deploy := func(texts string) {
		r.placeWith("web", func(spec *fleet.BundleDeploymentSpec) { spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true} },
			fleet.BundleDeploymentOptions{}, secretOf(texts))
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.target, Name: "creds"}}
	deploy("keep: one, old: revoked")
	r.until("web", fleet.StateReady)
	r.check(r.kube.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
	untilKeys := func(want string) {
		t.Helper()
		r.eventually("the Secret has "+want, func() error {
			err := r.kube.Get(t.Context(), client.ObjectKeyFromObject(secret), secret)
			if got := fmt.Sprintf("%q", secret.Data); err == nil && got != want {
				err = fmt.Errorf("it has %s", got)
			}
			return err
		})
	}
	r.patchAs("kubectl-patch", secret, `{"stringData":{"keep":"by hand"}}`)
	untilKeys(`map["keep":"one" "old":"revoked"]`)
	deploy("keep: one")
	untilKeys(`map["keep":"one"]`)
}

func TestAKeyThatAnEarlierVersionAppliedAsStringDataLeavesTheSecret(t *testing.T) {
	r := newRig(t)
	cluster, err := dynamic.NewForConfig(r.cluster.Config)
	r.check(err)
	objects := cluster.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(r.target)
	_, err = objects.Patch(t.Context(), "old", types.ApplyPatchType,
		[]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"old"},"stringData":{"keep":"one","old":"revoked"}}`),
		metav1.PatchOptions{FieldManager: release.FieldManager})
	r.check(err)
	found, err := objects.Get(t.Context(), "old", metav1.GetOptions{})
	r.check(err)
	patch, err := applied.TextsPatch(found, release.FieldManager)
	r.check(err)
	_, err = objects.Patch(t.Context(), "old", types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: release.FieldManager})
	r.check(err)
	after, err := objects.Patch(t.Context(), "old", types.ApplyPatchType,
		[]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"old"},"data":{"keep":"b25l"}}`),
		metav1.PatchOptions{FieldManager: release.FieldManager})
	r.check(err)
	if got := fmt.Sprint(after.Object["data"]); got != "map[keep:b25l]" {
		t.Errorf("the Secret has %s", got)
	}
}

func TestAMistakeOfTheAuthorIsRefusedByName(t *testing.T) {
	r := newRig(t)
	r.start()
	r.place("numbers", fleet.BundleDeploymentOptions{}, configMap("beside", "one"),
		file("cm.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: numbers, labels: {app: web, version: 1}}}"))
	r.until("numbers", fleet.StateErrApplied, "ConfigMap numbers in cm.yaml: metadata.labels.version is a number",
		"put the value in quotes")
	if _, err := r.data("beside"); err == nil {
		t.Error("another object of the Bundle was applied")
	}
	r.place("numbers", fleet.BundleDeploymentOptions{}, file("Chart.yaml", "{apiVersion: v2, name: numbers, version: 0.1.0}"),
		file("templates/cm.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: numbers, annotations: {live: true}}}"))
	r.until("numbers", fleet.StateErrApplied, "ConfigMap numbers in cm.yaml: metadata.annotations.live is a boolean")
	r.place("numbers", fleet.BundleDeploymentOptions{}, file("pod.yaml", "{apiVersion: v1, kind: Pod, metadata: {name: twice}, spec: "+
		"{containers: [{name: c, image: i, env: [{name: MODE, value: a}, {name: MODE, value: b}]}]}}"))
	r.until("numbers", fleet.StateErrApplied, "Pod twice in pod.yaml: spec.containers[0].env[0] and [1] have the same name")
}

// scaled is a Deployment and its autoscaler.
func scaled(label string) []fleet.BundleResource {
	return []fleet.BundleResource{file("web.yaml", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1, "+
		"selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web, v: "+label+
		"}}, spec: {containers: [{name: c, image: i}]}}}}"),
		file("hpa.yaml", "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {minReplicas: 1, "+
			"maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}")}
}

func TestReplicasWithinTheBoundsOfAnAutoscalerAreLeftToIt(t *testing.T) {
	r := newRig(t)
	r.start()
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: r.target, Name: "web"}}
	drift := func(enabled bool) func(*fleet.BundleDeploymentSpec) {
		return func(spec *fleet.BundleDeploymentSpec) { spec.CorrectDrift = &fleet.CorrectDrift{Enabled: enabled} }
	}
	is := func(want int32, label string) {
		t.Helper()
		r.eventually(fmt.Sprintf("the Deployment has %d replicas and label %s", want, label), func() error {
			err := r.kube.Get(t.Context(), client.ObjectKeyFromObject(web), web)
			if err == nil && (*web.Spec.Replicas != want || web.Spec.Template.Labels["v"] != label) {
				err = fmt.Errorf("it has %d, %v", *web.Spec.Replicas, web.Spec.Template.Labels)
			}
			return err
		})
	}
	scale := func(to int) { r.patchAs("hpa", web, fmt.Sprintf(`{"spec":{"replicas":%d}}`, to)) }
	r.placeWith("web", drift(false), fleet.BundleDeploymentOptions{}, scaled("a")...)
	is(1, "a")
	scale(3)
	r.placeWith("web", drift(false), fleet.BundleDeploymentOptions{}, scaled("b")...)
	is(3, "b")
	scale(6)
	r.eventually("six replicas are drift", func() error {
		if got := r.get("web").Status.ModifiedStatus; len(got) != 1 || !strings.Contains(got[0].Patch, `"replicas"`) {
			return fmt.Errorf("modified are %+v", got)
		}
		return nil
	})
	scale(4)
	r.eventually("four are none", func() error {
		if got := r.get("web").Status.ModifiedStatus; len(got) != 0 {
			return fmt.Errorf("modified are %+v", got)
		}
		return nil
	})
	r.placeWith("web", drift(true), fleet.BundleDeploymentOptions{}, scaled("b")...)
	scale(0)
	is(1, "b")
	r.placeWith("web", drift(false), fleet.BundleDeploymentOptions{}, scaled("b")...)
	scale(2)
	r.placeWith("web", drift(false), fleet.BundleDeploymentOptions{}, scaled("c")[:1]...)
	is(1, "c") // the autoscaler left the Bundle
}

func TestRulesAndCertificatesAreLeftToTheirControllers(t *testing.T) {
	r := newRig(t)
	r.start()
	name := "others-" + r.target
	deploy := func(label string) {
		r.placeWith("web", func(spec *fleet.BundleDeploymentSpec) { spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true} },
			fleet.BundleDeploymentOptions{}, configMap("seen", label),
			file("role.yaml", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "+name+", labels: {v: "+label+
				"}}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}, rules: []}"),
			file("hook.yaml", "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: "+name+
				", labels: {v: "+label+"}}, webhooks: [{name: h.example.org, failurePolicy: Ignore, sideEffects: None, "+
				"admissionReviewVersions: [v1], clientConfig: {caBundle: Cg==, service: {name: h, namespace: default}}}]}"))
		r.untilData("seen", label)
		r.until("web", fleet.StateReady)
	}
	deploy("a")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	hook := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	r.patchAs("clusterrole-aggregation-controller", role, `{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`)
	r.check(r.kube.Patch(t.Context(), hook, client.RawPatch(types.JSONPatchType, []byte(
		`[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":"`+injected+`"}]`)), client.FieldOwner("ca-injector")))
	r.edit("seen", `{"data":{"key":"by hand"}}`)
	r.untilData("seen", "a") // a correction is over
	deploy("b")
	r.check(r.kube.Get(t.Context(), client.ObjectKeyFromObject(role), role))
	r.check(r.kube.Get(t.Context(), client.ObjectKeyFromObject(hook), hook))
	if len(role.Rules) != 1 || role.Labels["v"] != "b" {
		t.Errorf("the role has %+v, %v", role.Rules, role.Labels)
	}
	if got := base64.StdEncoding.EncodeToString(hook.Webhooks[0].ClientConfig.CABundle); got != injected || hook.Labels["v"] != "b" {
		t.Errorf("the webhook has %q, %v", got, hook.Labels)
	}
}
