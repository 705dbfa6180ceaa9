package cli

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/api/limits"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/redaction"
)

// unpacked returns the files of an archive by name.
func unpacked(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	found, archive := map[string]string{}, tar.NewReader(packed)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		text, unread := io.ReadAll(archive)
		if err := errors.Join(err, unread); err != nil {
			t.Fatal(err)
		}
		found[header.Name] = string(text)
	}
}

func TestWhatDiffersOnMembersIsNotShown(t *testing.T) {
	const planted = "pl4nted"
	o := &unstructured.Unstructured{Object: map[string]any{"kind": "BundleDeployment", "status": map[string]any{
		"modifiedStatus": []any{map[string]any{"kind": "ConfigMap", "name": "web", "patch": `{"data":{"password":"` + planted + `"}}`}},
		"failedPlacements": []any{map[string]any{
			"observedDiffs": []any{map[string]any{"path": "/spec/env", "valueInHub": planted, "valueInMember": planted}},
		}},
		"conditions": []any{map[string]any{
			"type": "Ready", "message": `configmap.v1 shop/web modified {"data":{"password":"` + planted + `"}}; secret.v1 shop/a missing`,
		}},
	}}}
	redaction.Object(o)
	text, err := json.Marshal(o)
	if err != nil || strings.Contains(string(text), planted) {
		t.Errorf("it has a secret (%v): %s", err, text)
	}
	for _, part := range []string{`"name":"web"`, `"path":"/spec/env"`, "configmap.v1 shop/web modified REDACTED"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("it lacks %s: %s", part, text)
		}
	}
}

// TestASupportBundleHasNoSecrets plants secrets wherever users and agents may have put some.
func TestASupportBundleHasNoSecrets(t *testing.T) {
	cluster := fleetOn(t, "cli-support")
	c, ctx := cluster.Client(t), context.Background()
	const planted = "pl4nted"
	inURL := "https://" + planted + "@github.com/x and redis://:" + planted + "@cache:6379"
	const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJwbDRudGVkIn0.pl4nted"
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{
			corev1.LastAppliedConfigAnnotation: `{"stringData":{"a":"` + planted + `"}}`, "objectset.rio.cattle.io/applied": planted, "urls": inURL,
			"note": "see https://admin:" + planted + "@git.example.com/x with Bearer " + planted + "12345"}}
	}
	labels := map[string]string{"app": "hub"}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: naming.SystemNamespace}},
		&corev1.Secret{ObjectMeta: meta(naming.SystemNamespace, "planted"), StringData: map[string]string{"token": planted}},
		&corev1.ConfigMap{ObjectMeta: meta(naming.SystemNamespace, "settings"),
			Data: map[string]string{"config": "proxy: http://me:" + planted + "@proxy\ntoken: " + jwt,
				"key": "-----BEGIN EC PRIVATE KEY-----\n" + planted + "\n-----END EC PRIVATE KEY-----\n"}},
		&appsv1.Deployment{ObjectMeta: meta(naming.SystemNamespace, "hub"),
			Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "hub", Image: "hub", Args: []string{"--password=" + planted}, Env: []corev1.EnvVar{{Name: "FOO", Value: planted}}}}}}}},
		&fleet.Bundle{ObjectMeta: meta("team-a", "planted"), Spec: fleet.BundleSpec{
			Resources: []fleet.BundleResource{{Name: "secret.yaml", Content: "password: " + planted}},
			Targets: []fleet.BundleTarget{{
				ClusterSelector: &metav1.LabelSelector{
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "In", Values: []string{"prod"}}},
				},
			}}}},
		&fleet.Bundle{ObjectMeta: meta("team-a", "templated"), Spec: fleet.BundleSpec{BundleDeploymentOptions: fleet.BundleDeploymentOptions{
			Helm: &fleet.HelmOptions{TemplateValues: map[string]limits.Value{"password": planted}}}}},
		&fleet.Cluster{
			ObjectMeta: meta("team-a", "planted"), Spec: fleet.ClusterSpec{
				TemplateValues: &runtime.RawExtension{Raw: []byte(`{"password":"` + planted + `"}`)},
			},
		},
		&fleet.ClusterRegistration{
			ObjectMeta: meta("team-a", "planted"), Spec: fleet.ClusterRegistrationSpec{ClientID: "visible-id", ClientRandom: planted},
		},
		&placement.Work{ObjectMeta: meta("team-a", "planted"),
			Spec: placement.WorkSpec{Workload: placement.WorkloadTemplate{Manifests: []placement.Manifest{
				{
					RawExtension: runtime.RawExtension{
						Raw: []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"},"stringData":{"a":"` + planted + `"}}`),
					},
				}}}}},
	} {
		if err := client.IgnoreAlreadyExists(c.Create(ctx, o)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "support.tar.gz")
	admin := of(t, cluster, cluster.Account(t, "cli-admin", "cluster-admin"))
	if out, said, err := admin.run("support-bundle", "--file", path); err != nil || !strings.HasPrefix(out, path+" has ") {
		t.Fatalf("%v\n%s%s", err, out, said)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != readableByUser {
		t.Errorf("the file can be read by others: %v, %v", info.Mode(), err)
	}
	files := unpacked(t, path)
	for name, text := range files {
		if strings.Contains(text, planted) || strings.Contains(text, "eyJ") {
			t.Errorf("%s has a secret:\n%s", name, text)
		}
	}
	for name, says := range map[string]string{
		"secret/cattle-fleet-system/planted.yaml":                 "token: REDACTED",
		"deployment.apps/cattle-fleet-system/hub.yaml":            "image: hub",
		"bundle.fleet.cattle.io/team-a/planted.yaml":              "- prod",
		"clusterregistration.fleet.cattle.io/team-a/planted.yaml": "clientID: visible-id",
		"configmap/cattle-fleet-system/settings.yaml":             "http://REDACTED@proxy",
		"work.placement.kubernetes-fleet.io/team-a/planted.yaml":  "kind: Work",
		"cluster.fleet.cattle.io/team-a/web.yaml":                 "name: web",
		"membercluster.cluster.kubernetes-fleet.io/edge.yaml":     "name: edge",
		"version.txt": "Kubernetes v", "explain.txt": "member", "errors.txt": "",
	} {
		if text, ok := files["muster-support/"+name]; !ok || !strings.Contains(text, says) {
			t.Errorf("%s, without %q:\n%s", name, says, text)
		}
	}
	admin.refused("support-bundle --file "+path, "file exists")

	nobody := of(t, cluster, cluster.Account(t, "nobody", ""))
	less := filepath.Join(t.TempDir(), "less.tar.gz")
	nobody.runs("support-bundle --file " + less)
	if text := unpacked(t, less)["muster-support/errors.txt"]; !strings.Contains(text, "Cluster: clusters.fleet.cattle.io is forbidden") ||
		!strings.Contains(text, "Secret: secrets is forbidden") {
		t.Errorf("what may not be read is not said:\n%s", text)
	}
}
