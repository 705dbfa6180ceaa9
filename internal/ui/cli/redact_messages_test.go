package cli

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"text/template"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-fleet/muster/internal/redaction"
)

func TestValuesThatMessagesQuoteAreLeftOut(t *testing.T) {
	_, parsing := strconv.ParseInt(planted, 10, 64)
	range0 := template.Must(template.New("a.yaml").Parse(`{{range .}}{{end}}`)).Execute(&strings.Builder{}, planted)
	for message, want := range map[string]string{
		`spec.ports[0].name: Invalid value: "pl4nted \"x\" pl4nted": must be lower ` +
			`case`: `spec.ports[0].name: Invalid value: REDACTED: must be lower case`,
		`a: Invalid value: "pl4nted": no, b: Unsupported value: "pl4nted": supported values: ` +
			`"x"`: `a: Invalid value: REDACTED: no, b: Unsupported value: REDACTED: supported values: "x"`,
		`spec: Invalid value: {"a":{"b":"pl4nted"}}: no`:                `spec: Invalid value: REDACTED: no`,
		`spec: Invalid value: v1.EnvVar{Name:"A", Value:"pl4nted"}: no`: `spec: Invalid value: REDACTED: no`,
		`spec: Duplicate value: map[string]interface {}{"a":"pl4nted"}`: `spec: Duplicate value: REDACTED`,
		`.spec.replicas: expected numeric, got ` +
			`&value.valueUnstructured{Value:"pl4nted"}`: `.spec.replicas: expected numeric, got REDACTED`,
		parsing.Error(): `strconv.ParseInt: parsing REDACTED: invalid syntax`,
		`execution error at (shop/templates/a.yaml:3:4): password pl4nted is too ` +
			`short`: `execution error at (shop/templates/a.yaml:3:4): REDACTED`,
		`at '/mail': 'pl4nted' does not match pattern '^a'`: `at '/mail': REDACTED does not match pattern '^a'`,
		`fetching https://charts.example.com/a?x=1&token=pl4nted: ` +
			`403`: `fetching https://charts.example.com/a?x=1&token=REDACTED 403`,
		`configmap.v1 shop/web modified {"data":{"a":"pl4nted"}}`: `configmap.v1 shop/web modified REDACTED`,
		`Bundle shop/web: 3 of 4 Pods are ready`:                  `Bundle shop/web: 3 of 4 Pods are ready`,
		`namespaces "web" not found`:                              `namespaces "web" not found`,
	} {
		if got := redaction.Scrub(message); got != want {
			t.Errorf("%s becomes %s, want %s", message, got, want)
		}
		logged, err := json.Marshal(map[string]string{"error": message, "level": "info"})
		if err != nil {
			t.Fatal(err)
		}
		if got := redaction.Scrub(string(logged)); strings.Contains(got, planted) {
			t.Errorf("the line of a log becomes %s", got)
		}
	}
	if range0 != nil && strings.Contains(redaction.Scrub(range0.Error()), planted) {
		t.Errorf("a template: %s", redaction.Scrub(range0.Error()))
	}
}

// TestWhatAnAPIServerSaysOfInvalidObjectsGivesAwayNoValues sends invalid objects to a real API
// server. Hubs and agents write such errors into conditions.
func TestWhatAnAPIServerSaysOfInvalidObjectsGivesAwayNoValues(t *testing.T) {
	cluster := fleetOn(t, "cli-support")
	c, ctx, asked := cluster.Client(t), context.Background(), 0
	for name, text := range map[string]string{
		"an environment": `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: a, env: [{name: ` +
			`"pl4nted=x", value: a}]}]}}`,
		"labels":       `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {a: "pl4nted pl4nted"}}}`,
		"one of a few": `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: pl4nted, ports: [{port: 80}]}}`,
		"an address":   `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: "pl4nted\" x", ports: [{port: 80}]}}`,
		"data of a Secret": `{apiVersion: v1, kind: Secret, type: kubernetes.io/dockerconfigjson, metadata: {name: a}, data: ` +
			`{.dockerconfigjson: cGw0bnRlZA==}}`,
		"what a CRD refuses": `{apiVersion: fleet.cattle.io/v1alpha1, kind: ClusterRegistrationToken, metadata: {name: a, namespace: ` +
			`team-a}, spec: {approval: pl4nted}}`,
		"a type that differs": `{apiVersion: fleet.cattle.io/v1alpha1, kind: ClusterRegistrationToken, metadata: {name: a, namespace: ` +
			`team-a}, spec: {maxRegistrations: pl4nted}}`,
		"a kind": `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: pl4nted}}`,
		"a quantity": `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: a, resources: {limits: ` +
			`{cpu: pl4nted}}}]}}`,
		"a selector": `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {a: pl4nted}}, ` +
			`template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}`,
	} {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		if o.GetNamespace() == "" {
			o.SetNamespace(corev1.NamespaceDefault)
		}
		for way, try := range map[string]func() error{
			"created": func() error { return c.Create(ctx, o.DeepCopy()) },
			"applied": func() error {
				body, err := json.Marshal(o)
				if err != nil {
					return err
				}
				return c.Patch(ctx, o.DeepCopy(), client.RawPatch(types.ApplyPatchType, body), client.FieldOwner("test"), client.ForceOwnership)
			},
		} {
			err := try()
			if err == nil {
				t.Errorf("%s, %s, are accepted", name, way)
				continue
			}
			if strings.Contains(err.Error(), planted) {
				asked++
			}
			if said := redaction.Scrub(err.Error()); strings.Contains(said, planted) {
				t.Errorf("%s, %s: %s", name, way, said)
			}
			logged, err := json.Marshal(map[string]string{"error": err.Error()})
			if err != nil || strings.Contains(redaction.Scrub(string(logged)), planted) {
				t.Errorf("%s, %s, in a log: %s", name, way, redaction.Scrub(string(logged)))
			}
		}
	}
	if asked < 8 {
		t.Errorf("only %d answers quote a value, so this tests little", asked)
	}
}
