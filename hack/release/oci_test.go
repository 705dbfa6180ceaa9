package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/testkube"
)

// registry is as much of an OCI registry (https://github.com/opencontainers/distribution-spec) as
// pushing and pulling charts takes.
type registry struct {
	mu    sync.Mutex
	blobs map[string][]byte    // by digest
	tags  map[string]reference // by repository and tag or digest
}

type reference struct{ mediaType, digest string }

func newRegistry(t *testing.T) string {
	t.Helper()
	r := &registry{blobs: map[string][]byte{}, tags: map[string]reference{}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func (r *registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	path := strings.TrimPrefix(request.URL.Path, "/v2/")
	reading := request.Method == http.MethodGet || request.Method == http.MethodHead
	repository, digest, isBlob := strings.Cut(path, "/blobs/")
	manifests, tag, isManifest := strings.Cut(path, "/manifests/")
	switch {
	case path == "":
		w.WriteHeader(http.StatusOK)
	case isBlob && request.Method == http.MethodPost:
		w.Header().Set("Location", "/v2/"+repository+"/blobs/uploads/one")
		w.WriteHeader(http.StatusAccepted)
	case isBlob && request.Method == http.MethodPut:
		r.store(w, request, request.URL.Query().Get("digest"))
	case isBlob && reading:
		r.send(w, request, reference{"application/octet-stream", digest})
	case isManifest && request.Method == http.MethodPut:
		stored := reference{request.Header.Get("Content-Type"), r.store(w, request, "")}
		r.tags[manifests+"/"+tag], r.tags[manifests+"/"+stored.digest] = stored, stored
	case isManifest && reading:
		r.send(w, request, r.tags[manifests+"/"+tag])
	default:
		http.NotFound(w, request)
	}
}

// store keeps the body of a request if it has the digest, where one is given, and
// returns its digest.
func (r *registry) store(w http.ResponseWriter, request *http.Request, want string) string {
	data, err := io.ReadAll(request.Body)
	sum := sha256.Sum256(data)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	if err != nil || want != "" && want != digest {
		http.Error(w, "another digest", http.StatusBadRequest)
		return ""
	}
	r.blobs[digest] = data
	w.Header().Set("Docker-Content-Digest", digest)
	w.Header().Set("Location", request.URL.Path)
	w.WriteHeader(http.StatusCreated)
	return digest
}

func (r *registry) send(w http.ResponseWriter, request *http.Request, of reference) {
	data, found := r.blobs[of.digest]
	if !found {
		http.NotFound(w, request)
		return
	}
	w.Header().Set("Content-Type", of.mediaType)
	w.Header().Set("Docker-Content-Digest", of.digest)
	http.ServeContent(w, request, "", time.Time{}, bytes.NewReader(data))
}

// pushed pushes the charts of a release to a registry and returns where.
func pushed(t *testing.T, settings string) string {
	t.Helper()
	r := newRelease(t)
	if err := r.packCharts(); err != nil {
		t.Fatal(err)
	}
	host := newRegistry(t)
	packed, err := filepath.Glob(filepath.Join(r.out, "charts", "*.tgz"))
	if err != nil || len(packed) != 4 {
		t.Fatalf("packed are %v (%v)", packed, err)
	}
	for _, chart := range packed {
		helm(t, settings, "", "push --plain-http "+chart+" oci://"+host+"/charts")
	}
	return "oci://" + host + "/charts/"
}

func TestTheChartsArePushedToARegistryAndRenderedFromIt(t *testing.T) {
	settings := t.TempDir()
	url := pushed(t, settings)
	for chart, want := range map[string]string{
		"fleet": "image: \"muster-hub:1.2.3\"", "fleet-crd": "name: clusters.fleet.cattle.io",
		"fleet-agent":  "image: \"muster-agent:1.2.3\"",
		"member-agent": "image: \"muster-agent:1.2.3\"",
	} {
		set := " --set apiServerURL=https://hub:6443 --set token=a.b.c --set clusterNamespace=clusters"
		if chart == "member-agent" {
			set = " --set config.hubURL=https://hub:6443 --set config.memberClusterName=web"
		}
		if chart == "fleet" || chart == "fleet-crd" {
			set = ""
		}
		out := helm(t, settings, "",
			"template --plain-http --kube-version 1.36.0 -n cattle-fleet-system --version 1.2.3 "+chart+" "+url+chart+set)
		if !strings.Contains(out, want) {
			t.Errorf("chart %s renders nothing with %q", chart, want)
		}
	}
}

func TestTheHubInstallsFromARegistry(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	settings := t.TempDir()
	url := pushed(t, settings)
	hub := testkube.Start(t, "release-oci")
	kubeconfig := filepath.Join(hub.Dir, "kubeconfig")
	for _, chart := range []string{"fleet-crd", "fleet"} {
		helm(t, settings, kubeconfig, "-n cattle-fleet-system install --create-namespace --plain-http "+chart+" "+url+chart+" --version 1.2.3")
	}
	c, ctx := hub.Client(t), context.Background()
	var deployment appsv1.Deployment
	if err := c.Get(ctx, client.ObjectKey{Namespace: "cattle-fleet-system", Name: "fleet-controller"}, &deployment); err != nil ||
		deployment.Spec.Template.Spec.Containers[0].Image != "muster-hub:1.2.3" {
		t.Errorf("the hub is %+v (%v)", deployment.Spec.Template.Spec, err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := apiextensionsv1.AddToScheme(c.Scheme()); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(ctx, client.ObjectKey{Name: "clusters.fleet.cattle.io"}, &definition); err != nil {
		t.Error(err)
	}
}
