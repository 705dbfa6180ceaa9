package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// store returns a Bundle with a chart that holds data in all the usual ways. It has a
// PersistentVolumeClaim, a CustomResourceDefinition, a Secret from a hook, and a Job that must run
// before the removal.
func (e *env) store(values, helm string) string {
	return `kubectl apply -f - <<'END'
kind: Bundle
apiVersion: fleet.cattle.io/v1alpha1
metadata: {name: store, namespace: clusters}
spec:
  defaultNamespace: store
  helm: {` + helm + `, values: {` + values + `}}
  resources:
  - name: Chart.yaml
    content: "{apiVersion: v2, name: store, version: 1.0.0}"
  - name: values.yaml
    content: "{volume: true, message: none, broken: false}"
  - name: crds/shelves.yaml
    content: |
      apiVersion: apiextensions.k8s.io/v1
      kind: CustomResourceDefinition
      metadata: {name: shelves.example.com}
      spec:
        group: example.com
        scope: Namespaced
        names: {plural: shelves, singular: shelf, kind: Shelf, listKind: ShelfList}
        versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
  - name: templates/pvc.yaml
    content: |
      {{ if .Values.volume }}
` + claimOf("      ") + `      {{ end }}
  - name: templates/password.yaml
    content: |
      apiVersion: v1
      kind: Secret
      metadata: {name: password, annotations: {helm.sh/hook: pre-install}}
      stringData: {p: "{{ randAlphaNum 8 }}"}
  - name: templates/farewell.yaml
    content: |
      apiVersion: batch/v1
      kind: Job
      metadata: {name: farewell, annotations: {helm.sh/hook: pre-delete}}
      spec:
        template:
          spec: {restartPolicy: Never, containers: [{name: farewell, image: "muster-agent:` + e.tag + `", args: [--help]}]}
  - name: templates/web.yaml
    content: |
      {{ if .Values.broken }}{{ fail "this chart is broken" }}{{ end }}
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: web, annotations: {message: "{{ .Values.message }}"}}
      spec:
        selector: {matchLabels: {app: web}}
        template:
          metadata: {labels: {app: web}}
          spec: {terminationGracePeriodSeconds: 1, containers: [{name: web, image: "` + working + `"}]}
  targets:
  - clusterSelector: {matchLabels: {env: dev}}
END
`
}

// claimOf returns the PersistentVolumeClaim with an indent.
func claimOf(indent string) string {
	return strings.NewReplacer("^", indent).Replace(`^apiVersion: v1
^kind: PersistentVolumeClaim
^metadata: {name: data}
^spec: {storageClassName: "", volumeName: store-data, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`)
}

// storeData returns a Bundle that takes over the PersistentVolumeClaim.
func storeData() string {
	return `kubectl apply -f - <<'END'
kind: Bundle
apiVersion: fleet.cattle.io/v1alpha1
metadata: {name: store-data, namespace: clusters}
spec:
  defaultNamespace: store
  helm: {takeOwnership: true}
  resources:
  - name: pvc.yaml
    content: |
` + claimOf("      ") + `  targets:
  - clusterSelector: {matchLabels: {env: dev}}
END
kubectl -n clusters wait bundles.fleet.cattle.io store-data --for=condition=Ready --timeout=90s
`
}

// volume creates the PersistentVolume for the PersistentVolumeClaim.
const volume = `kubectl apply -f - <<'END'
apiVersion: v1
kind: PersistentVolume
metadata: {name: store-data}
spec:
  capacity: {storage: 1Mi}
  accessModes: [ReadWriteOnce]
  hostPath: {path: /var/lib/store-data, type: DirectoryOrCreate}
END
`

// shelf creates an object of the chart's CustomResourceDefinition.
const shelf = `kubectl -n store create -f - > /dev/null <<END
{"apiVersion": "example.com/v1", "kind": "Shelf", "metadata": {"name": "top"}}
END`

// held lists the objects with data on the member, with UIDs.
const held = `kubectl -n store get persistentvolumeclaim/data secret/password shelf/top --no-headers -o ` + columns + `
kubectl get customresourcedefinition shelves.example.com --no-headers -o ` + columns

const columns = "custom-columns=KIND:.kind,NAME:.metadata.name,UID:.metadata.uid"

// dataSurvives installs a chart that holds data, and makes all the changes known to have cost a
// user data.
func dataSurvives(ctx context.Context, e *env) (string, error) {
	began := time.Now()
	const (
		one, two = "message: one", "message: two"
		running  = "kubectl -n store get deployment web -o 'jsonpath={.metadata.annotations.message} {.status.readyReplicas}'"
		ready    = `kubectl -n clusters get bundles.fleet.cattle.io store -o 'jsonpath={range ` +
			`.status.conditions[?(@.type=="Ready")]}{.status} {.message}{end}'`
	)
	deployed := func(message string) error {
		return errors.Join(e.expect(ctx, e.one, running, message+" 1"), e.expect(ctx, e.hub, ready, "True"))
	}
	if _, err := e.sh(ctx, e.one, volume); err != nil {
		return "", err
	}
	if _, err := e.sh(ctx, e.hub, e.store(one, "releaseName: store")); err != nil {
		return "", err
	}
	if err := deployed("one"); err != nil {
		return "", err
	}
	before, err := e.sh(ctx, e.one, shelf+"\n"+held)
	if err != nil {
		return "", err
	}
	for _, step := range []struct {
		name, script string
		on           *cluster
		until        func() error
	}{
		{"it is changed", e.store(two, "releaseName: store"), e.hub, func() error { return deployed("two") }},
		{"its release gets another name in a version that cannot be rendered", e.store("broken: true", "releaseName: shop"), e.hub, func() error {
			return errors.Join(e.expect(ctx, e.hub, ready, "False", "this chart is broken"), e.expect(ctx, e.one, running, "two 1"))
		}},
		{"its release gets another name", e.store(one, "releaseName: shop"), e.hub, func() error { return deployed("one") }},
		{"another Bundle takes the volume over", storeData(), e.hub, nil},
		{"the volume leaves it", e.store(two+", volume: false", "releaseName: shop"), e.hub, func() error { return deployed("two") }},
		{"a user keeps the volume", "kubectl -n store annotate persistentvolumeclaim data helm.sh/resource-policy=keep", e.one, nil},
		{"the other Bundle is deleted", "kubectl -n clusters delete bundles.fleet.cattle.io store-data --timeout=60s", e.hub, func() error {
			return e.gone(ctx, e.one, "helm -n store list --short | grep data || true")
		}},
		{"it is rolled back", e.store(one, "releaseName: shop, takeOwnership: true"), e.hub, func() error { return deployed("one") }},
		{"it is deleted", "kubectl -n clusters delete bundles.fleet.cattle.io store --timeout=60s", e.hub, func() error {
			return errors.Join(e.gone(ctx, e.one, "kubectl -n store get deployment web -o name --ignore-not-found"),
				e.expect(ctx, e.one, "kubectl -n store get events --field-selector reason=Completed", "job/farewell"))
		}},
	} {
		_, err := e.sh(ctx, step.on, step.script)
		if err == nil && step.until != nil {
			err = step.until()
		}
		if err == nil {
			err = e.holds(ctx, before)
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", step.name, err)
		}
	}
	_, err = e.sh(ctx, e.one, "kubectl delete customresourcedefinition shelves.example.com && kubectl delete namespace store --timeout=60s "+
		"&& kubectl delete persistentvolume store-data")
	return "nine changes in " + seconds(began), err
}

// holds returns an error unless the member holds exactly the same objects as before.
func (e *env) holds(ctx context.Context, before string) error {
	now, err := e.sh(ctx, e.one, held)
	if err == nil && now != before {
		err = fmt.Errorf("of\n%s\nthere is\n%s", before, now)
	}
	return err
}
