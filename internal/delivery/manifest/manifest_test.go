package manifest

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestFieldsOfAServerAreLeftOut(t *testing.T) {
	exported := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: b, resourceVersion: '1', generation: 2, "+
		"creationTimestamp: null, managedFields: [{manager: c}], selfLink: /d, labels: {app: web}}, data: {e: f}}")
	Normalize(exported)
	want := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app: web}}, data: {e: f}}")
	if diff := cmp.Diff(want.Object, exported.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAMistakeIsNamedWithItsFieldAndRemedy(t *testing.T) {
	const pod = "spec: {template: {spec: {containers: [{name: c, "
	for _, c := range []struct{ name, text, want string }{
		{"nothing is wrong", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app: web, empty: }, annotations: }}", ""},
		{
			"a label is a number", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app: web, version: 1}}}",
			"metadata.labels.version is a number, and Kubernetes takes only a text: put the value in quotes",
		},
		{
			"a key has a dot", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app.kubernetes.io/version: 1.5}}}",
			`metadata.labels["app.kubernetes.io/version"] is a number, and Kubernetes takes only a text: put the value in quotes`,
		},
		{
			"an annotation is a boolean", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {live: true}}}",
			"metadata.annotations.live is a boolean, and Kubernetes takes only a text: put the value in quotes",
		},
		{
			"labels are a list", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: [a]}}",
			"metadata.labels is a list, and Kubernetes takes only a text: put the value in quotes",
		},
		{
			"a label of a template is a number", "{apiVersion: apps/v1, kind: Deployment, spec: {template: {metadata: {labels: {v: 2}}}}}",
			"spec.template.metadata.labels.v is a number, and Kubernetes takes only a text: put the value in quotes",
		},
		{"a template of a custom resource", "{apiVersion: example.com/v1, kind: A, spec: {template: {metadata: {labels: {v: 2}}}}}", ""},
		{
			"a text of a Secret is a number", "{apiVersion: v1, kind: Secret, stringData: {pin: 4711}}",
			"stringData.pin is a number, and Kubernetes takes only a text: put the value in quotes",
		},
		{
			"a value of a Secret is a number", "{apiVersion: v1, kind: Secret, data: {pin: 4711}}",
			"data.pin is a number, and Kubernetes takes only a text: put the value in quotes",
		},
		{
			"a value of a ConfigMap is a boolean", "{apiVersion: v1, kind: ConfigMap, data: {a: b, debug: yes, empty: }}",
			"data.debug is a boolean, and Kubernetes takes only a text: put the value in quotes",
		},
		{"data of a custom resource", "{apiVersion: example.com/v1, kind: ConfigMap, data: {debug: yes}}", ""},
		{
			"a variable is a number", "{apiVersion: apps/v1, kind: Deployment, " + pod + "env: [{name: A, value: a}, {name: B, value: 1}]}]}}}}",
			"spec.template.spec.containers[0].env[1].value is a number, and Kubernetes takes only a text: put the value in quotes",
		},
		{
			"an argument is a number", "{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {initContainers: " +
				"[{name: c, command: [a, b], args: [--port, 80]}]}}}}}}",
			"spec.jobTemplate.spec.template.spec.initContainers[0].args[1] is a number, and Kubernetes takes only a text: put the value in quotes",
		},
		{
			"a variable twice", "{apiVersion: apps/v1, kind: Deployment, " + pod + "env: [{name: A}, {name: B}, {name: A}]}]}}}}",
			"spec.template.spec.containers[0].env[0] and [2] have the same name, and server-side apply takes each only once: " +
				"leave one of them out",
		},
		{
			"a port twice, once by default", "{apiVersion: apps/v1, kind: Deployment, " + pod +
				"ports: [{containerPort: 80}, {containerPort: 80, protocol: TCP}]}]}}}}",
			"spec.template.spec.containers[0].ports[0] and [1] have the same containerPort and protocol, and server-side apply " +
				"takes each only once: leave one of them out",
		},
		{
			"a port over two protocols", "{apiVersion: apps/v1, kind: Deployment, " + pod +
				"ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]}]}}}}", "",
		},
		{
			"a Secret for images twice", "{apiVersion: v1, kind: ServiceAccount, imagePullSecrets: [{name: a}, {name: a}]}",
			"imagePullSecrets[0] and [1] have the same name, and server-side apply takes each only once: leave one of them out",
		},
	} {
		if got := Check(object(t, c.text)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAManifestIsWrittenInTheFormInWhichItIsApplied(t *testing.T) {
	for _, c := range []struct{ name, given, want string }{
		{
			"the texts of a Secret", "{apiVersion: v1, kind: Secret, stringData: {a: one, b: }, data: {a: b3RoZXI=, c: dHdv}}",
			"{apiVersion: v1, kind: Secret, data: {a: b25l, b: '', c: dHdv}}",
		},
		{"a Secret without texts", "{apiVersion: v1, kind: Secret, stringData: }", "{apiVersion: v1, kind: Secret}"},
		{"another Secret", "{apiVersion: example.com/v1, kind: Secret, stringData: {a: b}}", ""},
		{
			"labels without a value", "{apiVersion: v1, kind: ConfigMap, metadata: {labels: {a: , b: c}}}",
			"{apiVersion: v1, kind: ConfigMap, metadata: {labels: {a: '', b: c}}}",
		},
		{
			"rules of others", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, aggregationRule: {}, rules: [{}]}",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, aggregationRule: {}}",
		},
		{"rules of the author", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, rules: [{}]}", ""},
	} {
		given := object(t, c.given)
		if c.want == "" {
			c.want = c.given
		}
		Normalize(given)
		if diff := cmp.Diff(object(t, c.want), given); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestTheLastOfSeveralEntriesWins(t *testing.T) {
	is := object(t, "{apiVersion: v1, kind: Pod, spec: {containers: [{name: c, env: [{name: A, value: a}, {name: B}, {name: A, value: b}, "+
		"{name: C}, {name: A, value: c}]}]}}")
	MergeDuplicates(is)
	want := object(t, "{apiVersion: v1, kind: Pod, spec: {containers: [{name: c, env: [{name: A, value: c}, {name: B}, {name: C}]}]}}")
	if diff := cmp.Diff(want, is); diff != "" {
		t.Error(diff)
	}
}

// certificate is the form of an injected certificate.
var certificate = base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\nMTIz\n-----END CERTIFICATE-----\n"))

func TestWhatOthersOwnIsLeftToThem(t *testing.T) {
	webhook := func(bundle, managed string) string {
		return "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a" + managed +
			"}, webhooks: [{name: other}, {name: h, clientConfig: {service: {name: s}" + bundle + "}}]}"
	}
	by := func(manager, fields string) string {
		return ", managedFields: [{manager: " + manager + ", operation: Update, fieldsV1: {" + fields + "}}]"
	}
	bundleOf := `f:webhooks: {'k:{"name":"h"}': {f:clientConfig: {f:caBundle: {}}}}`
	deployment := func(number int, managed string) string {
		return fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: a%s}, spec: {paused: true, replicas: %d}}",
			managed, number)
	}
	const unscaled = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {paused: true}}"
	for _, c := range []struct {
		name, wanted, found, want string
		scaler                    *Bounds
	}{
		{"no autoscaler", deployment(1, ""), deployment(3, ""), deployment(1, ""), nil},
		{"within the bounds", deployment(1, ""), deployment(3, ""), deployment(3, ""), &Bounds{1, 5}},
		{"an autoscaler wrote it", deployment(1, ""), deployment(3, by("hpa", "f:spec: {f:replicas: {}}")), unscaled, &Bounds{1, 5}},
		{"we wrote it", deployment(1, ""), deployment(3, by("me", "f:spec: {f:replicas: {}}")), deployment(3, ""), &Bounds{1, 5}},
		{"beyond the bounds", deployment(1, ""), deployment(6, ""), deployment(1, ""), &Bounds{1, 5}},
		{"turned off", deployment(1, ""), deployment(0, ""), deployment(1, ""), &Bounds{1, 5}},
		{"a placeholder", webhook(`, caBundle: "Cg=="`, ""), webhook(", caBundle: "+certificate, by("ca", bundleOf)), webhook("", ""), nil},
		{
			"an empty placeholder", webhook(`, caBundle: ""`, ""), webhook(", caBundle: "+certificate, by("ca", bundleOf)),
			webhook("", ""), nil,
		},
		{
			"a certificate of nobody", webhook(`, caBundle: "Cg=="`, ""), webhook(", caBundle: "+certificate, ""),
			webhook(", caBundle: "+certificate, ""), nil,
		},
		{
			"nothing injected yet", webhook(`, caBundle: "Cg=="`, ""), webhook(`, caBundle: "Cg=="`, ""),
			webhook(`, caBundle: "Cg=="`, ""), nil,
		},
		{
			"the author's certificate", webhook(", caBundle: "+certificate, ""), webhook(", caBundle: QQ==", by("ca", bundleOf)),
			webhook(", caBundle: "+certificate, ""), nil,
		},
	} {
		wanted := object(t, c.wanted)
		Yield(wanted, object(t, c.found), "me", c.scaler, Ignored{})
		if diff := cmp.Diff(object(t, c.want), wanted); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestTheBoundsAreThoseOfTheAutoscalerOfTheObject(t *testing.T) {
	scaler := func(version, kind, name string) *unstructured.Unstructured {
		return object(t, fmt.Sprintf("{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {maxReplicas: 5, scaleTargetRef: "+
			"{apiVersion: '%s', kind: %s, name: %s}}}", version, kind, name))
	}
	web := object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}")
	for _, c := range []struct {
		version, kind, name string
		want                bool
	}{
		{"apps/v1", "Deployment", "web", true}, {"apps/v1beta2", "Deployment", "web", true}, {"", "Deployment", "web", true},
		{"example.com/v1", "Deployment", "web", false}, {"apps/v1", "StatefulSet", "web", false}, {"apps/v1", "Deployment", "other", false},
	} {
		got := BoundsOf([]*unstructured.Unstructured{scaler("apps/v1", "Deployment", "x"), scaler(c.version, c.kind, c.name)}, web)
		if c.want != (got != nil) || got != nil && *got != (Bounds{1, 5}) {
			t.Errorf("%+v: bounds are %v", c, got)
		}
	}
}

func TestNoMessageQuotesAValue(t *testing.T) {
	for _, text := range []string{
		"{apiVersion: v1, kind: Secret, stringData: {pin: 4711}}", "{apiVersion: v1, kind: Secret, metadata: {annotations: {pin: 4711}}}",
		"{apiVersion: v1, kind: Pod, spec: {containers: [{name: c, env: [{name: A, value: '4711'}, {name: A, value: '4711'}]}]}}",
	} {
		if got := Check(object(t, text)); got == "" || strings.Contains(got, "4711") {
			t.Errorf("%s: %q", text, got)
		}
	}
}
