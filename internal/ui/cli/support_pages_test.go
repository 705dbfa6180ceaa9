package cli

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestNamesOfFilesAreNamesOnWindows(t *testing.T) {
	for name, want := range map[string]string{
		"hub": "hub", "arn:aws:eks:eu-west-1:123:cluster/web": "arn-aws-eks-eu-west-1-123-cluster-web",
		"default/api-crc-testing:6443/kubeadmin": "default-api-crc-testing-6443-kubeadmin",
		`a\b"c<d>e|f?g*h`:                        "a-b-c-d-e-f-g-h", "a\tb\nc": "a-b-c", "web.": "web-", "web ": "web-", "con": "_con",
		"NUL":       "_NUL",
		"com1.yaml": "_com1.yaml", "lpt": "lpt", "": "-", "console": "console",
		"größe": "größe", strings.Repeat("x", 300): strings.Repeat("x", 240) + "---",
	} {
		if got := fileName(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}

// TestASupportBundleAsksForLargeObjectsFewAtATime checks the requests to an API server with an
// EKS context.
func TestASupportBundleAsksForLargeObjectsFewAtATime(t *testing.T) {
	cluster := fleetOn(t, "cli-support")
	if err := client.IgnoreAlreadyExists(cluster.Client(t).Create(context.Background(),
		&fleet.Content{ObjectMeta: metav1.ObjectMeta{Name: "s-large"}, Content: []byte("x")})); err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(cluster.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	calls, err := rest.HTTPClientFor(rest.AnonymousClientConfig(cluster.Config))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	asked := map[string]*http.Request{}
	proxy := &httputil.ReverseProxy{Transport: calls.Transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[path.Base(r.URL.Path)] = r.Clone(context.Background())
		mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	const name = "arn:aws:eks:eu-west-1:123:cluster/web"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: cluster.Account(t, "cli-admin", "cluster-admin")}
	config.Contexts[name], config.CurrentContext = &clientcmdapi.Context{Cluster: name, AuthInfo: name}, name
	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	u := user{t: t, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), cacheDir: t.TempDir()}
	if err := os.WriteFile(u.kubeconfig, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if out, said, err := u.run("support-bundle"); err != nil {
		t.Fatalf("%v\n%s%s", err, out, said)
	}
	written, err := filepath.Glob("*")
	if err != nil || len(written) != 1 || !strings.HasPrefix(written[0], "muster-support-arn-aws-eks-eu-west-1-123-cluster-web-") {
		t.Fatalf("it writes %v, %v", written, err)
	}
	if got := unpacked(t, written[0])["muster-support/content.fleet.cattle.io/s-large.yaml"]; !strings.Contains(got, "kind: Content\n") ||
		!strings.Contains(got, "name: s-large") || strings.Contains(got, "\ncontent:") {
		t.Errorf("of a Content it has\n%s", got)
	}
	const few = "20"
	for resource, limit := range map[string]string{"works": few, "bundles": few, "bundledeployments": few, "secrets": few, "configmaps": few,
		"resourceenvelopes": few, "clusterresourceenvelopes": few,
		"contents": "500", "clusters": "500", "memberclusters": "500"} {
		r := asked[resource]
		if r == nil || r.URL.Query().Get("limit") != limit {
			t.Errorf("of %s it asks for another number at once than %s: %v", resource, limit, r)
			continue
		}
		if metadata := strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList"); metadata != (resource == "contents") {
			t.Errorf("of %s it asks for metadata only: %t", resource, metadata)
		}
	}
	u.run("get", "bundles")
	if got := asked["bundles"].URL.Query().Get("limit"); got != few {
		t.Errorf("muster get bundles asks for %s at once", got)
	}
}
