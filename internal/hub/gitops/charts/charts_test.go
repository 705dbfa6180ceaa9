package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/chartfetch"
)

func TestALargeChartStaysInItsRepository(t *testing.T) {
	small, large := chartOf(t, 10), chartOf(t, chartfetch.MaxEmbedded)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/index.yaml":
			_, _ = w.Write([]byte("entries:\n  small: [{name: small, version: 1.2.0, urls: [small.tgz]}, " +
				"{name: small, version: 2.0.0, urls: [none]}]\n" +
				"  large: [{name: large, version: 1.2.0, urls: [large.tgz]}]\n"))
		case "/small.tgz":
			_, _ = w.Write(small)
		case "/large.tgz":
			_, _ = w.Write(large)
		}
	}))
	t.Cleanup(server.Close)
	fetcher := chartfetch.NewFetcher(server.Client())
	for name, embedded := range map[string]bool{"small": true, "large": false} {
		chart, err := Fetch(t.Context(), fetcher, &fleet.HelmOptions{Repo: server.URL, Chart: name, Version: "^1"}, nil)
		if err != nil || chart.Version != "1.2.0" || (chart.Files["Chart.yaml"] != nil) != embedded {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Fetch(t.Context(), fetcher, &fleet.HelmOptions{Repo: server.URL, Chart: "none"}, nil); err == nil {
		t.Error("a chart that does not exist was fetched")
	}
}

// chartOf is a chart with random bytes.
func chartOf(t *testing.T, size int) []byte {
	t.Helper()
	noise := make([]byte, size)
	for i := range noise {
		noise[i] = byte(rand.IntN(256)) //nolint:gosec // only noise
	}
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	files := tar.NewWriter(zipped)
	for name, data := range map[string][]byte{"web/Chart.yaml": []byte("apiVersion: v2\nname: web\nversion: 1.2.0\n"),
		"web/noise": noise} {
		if err := files.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func TestTheSecretForChartsIsOfTwoTypesAndThreeKeys(t *testing.T) {
	secret := func(kind corev1.SecretType, keys ...string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "charts"}, Type: kind, Data: map[string][]byte{}}
		for _, key := range keys {
			s.Data[key] = []byte("x")
		}
		return s
	}
	for name, row := range map[string]struct {
		secret *corev1.Secret
		want   string
	}{
		"an Opaque one":    {secret(corev1.SecretTypeOpaque, "username", "password"), ""},
		"a basic-auth one": {secret(corev1.SecretTypeBasicAuth, "username", "password"), ""},
		"the token of an agent": {secret(corev1.SecretTypeServiceAccountToken, "username", "password", "token"),
			"is of type kubernetes.io/service-account-token"},
		"only a token": {secret(corev1.SecretTypeOpaque, "token"), "has neither username and password, nor cacerts"},
		"none":         {nil, "not found"},
	} {
		built := fake.NewClientBuilder()
		if row.secret != nil {
			built = built.WithObjects(row.secret)
		}
		credentials, err := Credentials(t.Context(), built.Build(), types.NamespacedName{Namespace: "clusters", Name: "charts"})
		if (credentials != nil) != (row.want == "") || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
