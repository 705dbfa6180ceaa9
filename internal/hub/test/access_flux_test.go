package hub_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

var flux = flag.String("flux", "", "directory with Flux's kustomize-controller and the definitions of Flux's kinds")

// withFlux is Flux beside a hub, with one Kustomization for one member.
type withFlux struct {
	importing
	source, kustomization *unstructured.Unstructured
}

// TestFluxDeliversWithTheSecretOfTheHub has Flux's own controller deliver to a member, follow a new
// credential, and end with the consent.
func TestFluxDeliversWithTheSecretOfTheHub(t *testing.T) {
	if *flux == "" {
		t.Skip("it needs Flux; make soak builds it")
	}
	f := newAlone(t, "")
	f.shareWith("*", toolNamespaces)
	i := f.importing(nil)
	i.begin()
	kubeconfig := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "my-cluster-kubeconfig"}}
	f.consentTo(kubeconfig, "flux")
	f.shared("flux", f.workspace, "my-cluster")

	d := i.startFlux()
	d.delivers("first")
	d.publish("second")
	d.delivers("second")

	f.consentTo(kubeconfig, "argocd")
	f.notShared("flux", f.workspace, "my-cluster")
	d.publish("third")
	d.reports("False", naming.AccessSecret("flux", f.workspace, "my-cluster"))
	d.has("second")

	f.consentTo(kubeconfig, "flux")
	d.delivers("third")
	f.check(f.Delete(context.Background(), d.kustomization))
	f.eventually("Flux removes what it delivered", func() error {
		return gone(d.remote.Get(context.Background(), d.delivered(), &corev1.ConfigMap{}))
	})
}

// startFlux runs kustomize-controller, with a Kustomization for the member, until the test ends.
func (i importing) startFlux() withFlux {
	i.t.Helper()
	definitions, err := filepath.Glob(filepath.Join(*flux, "*.yaml"))
	i.check(err)
	for _, path := range definitions {
		text, err := os.ReadFile(path)
		i.check(err)
		i.define(strings.TrimPrefix(string(text), "---\n"))
	}
	namespace := toolNamespaces["flux"]
	d := withFlux{i, fluxObject("source.toolkit.fluxcd.io", "GitRepository", namespace, i.workspace),
		fluxObject("kustomize.toolkit.fluxcd.io", "Kustomization", namespace, i.workspace)}
	d.source.Object["spec"] = map[string]any{"url": "https://git.example.com/web", "interval": "1h"}
	d.kustomization.Object["spec"] = map[string]any{
		"interval": "1s", "retryInterval": "1s", "path": "./", "prune": true, "targetNamespace": i.agentNamespace,
		"sourceRef":  map[string]any{"kind": "GitRepository", "name": i.workspace},
		"kubeConfig": map[string]any{"secretRef": map[string]any{"name": naming.AccessSecret("flux", i.workspace, "my-cluster")}},
	}
	i.eventually("the API server serves repositories of Flux", func() error { return i.Create(context.Background(), d.source) })
	i.eventually("the API server serves Kustomizations", func() error { return i.Create(context.Background(), d.kustomization) })
	d.publish("first")
	testkube.RunWith(i.t, filepath.Join(*flux, "kustomize-controller"),
		[]string{"KUBECONFIG=" + filepath.Join(i.cluster.Dir, "kubeconfig"), "RUNTIME_NAMESPACE=" + namespace},
		"--metrics-addr=0", "--health-addr=127.0.0.1:0", "--watch-all-namespaces=true", "--insecure-kubeconfig-tls=false")
	return d
}

func fluxObject(group, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// publish serves a revision of the repository with one ConfigMap, as source-controller does.
func (d withFlux) publish(revision string) {
	d.t.Helper()
	manifest := fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {revision: %s}}\n", revision)
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	files := tar.NewWriter(zipped)
	d.check(files.WriteHeader(&tar.Header{Name: "web.yaml", Mode: 0o600, Size: int64(len(manifest))}))
	_, err := files.Write([]byte(manifest))
	d.check(err)
	d.check(files.Close())
	d.check(zipped.Close())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive.Bytes()) }))
	d.t.Cleanup(server.Close)
	now := metav1.Now().UTC().Format(time.RFC3339)
	d.check(d.Get(context.Background(), client.ObjectKeyFromObject(d.source), d.source))
	d.source.Object["status"] = map[string]any{
		"observedGeneration": d.source.GetGeneration(),
		"artifact": map[string]any{
			"path": revision, "url": server.URL + "/" + revision + ".tar.gz", "revision": "main@sha1:" + revision, "lastUpdateTime": now,
			"digest": fmt.Sprintf("sha256:%x", sha256.Sum256(archive.Bytes())), "size": int64(archive.Len()),
		},
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored", "lastTransitionTime": now,
		}},
	}
	d.check(d.Status().Update(context.Background(), d.source))
}

// delivered is the key of the ConfigMap on the member.
func (d withFlux) delivered() client.ObjectKey {
	return client.ObjectKey{Namespace: d.agentNamespace, Name: "web"}
}

func (d withFlux) delivers(revision string) {
	d.t.Helper()
	d.reports("True", revision)
	d.has(revision)
}

// has checks the revision of the ConfigMap on the member.
func (d withFlux) has(revision string) {
	d.t.Helper()
	var web corev1.ConfigMap
	d.check(d.remote.Get(context.Background(), d.delivered(), &web))
	if web.Data["revision"] != revision {
		d.t.Errorf("the member has the revision %s, want %s", web.Data["revision"], revision)
	}
}

// reports waits for the condition Ready of the Kustomization.
func (d withFlux) reports(status, says string) {
	d.t.Helper()
	d.eventually(fmt.Sprintf("Flux reports Ready=%s with %q", status, says), func() error {
		if err := d.Get(context.Background(), client.ObjectKeyFromObject(d.kustomization), d.kustomization); err != nil {
			return err
		}
		conditions, _, err := unstructured.NestedSlice(d.kustomization.Object, "status", "conditions")
		for _, condition := range conditions {
			c, _ := condition.(map[string]any)
			if c["type"] == "Ready" && c["status"] == status && strings.Contains(fmt.Sprint(c["message"]), says) {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %v: %v", conditions, err)
	})
}
