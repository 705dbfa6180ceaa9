package chartfetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	helm "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// tarball packs what write puts into a tar archive.
func tarball(t *testing.T, write func(files *tar.Writer) error) []byte {
	t.Helper()
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	files := tar.NewWriter(zipped)
	if err := errors.Join(write(files), files.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// packedFiles is an archive of files, by name and text.
func packedFiles(t *testing.T, texts ...[2]string) []byte {
	t.Helper()
	return tarball(t, func(files *tar.Writer) error {
		for _, file := range texts {
			name, text := file[0], file[1]
			if err := files.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
				return err
			}
			if _, err := files.Write([]byte(text)); err != nil {
				return err
			}
		}
		return nil
	})
}

// packed is the archive of a chart.
func packed(t *testing.T, version string) []byte {
	t.Helper()
	return packedFiles(t, [2]string{"web/Chart.yaml", "apiVersion: v2\nname: web\nversion: " + version + "\n"},
		[2]string{"web/templates/a.yaml", "v: " + version})
}

// repository serves charts as chart repositories do.
func repository(t *testing.T) *httptest.Server {
	t.Helper()
	one, two, next := packed(t, "1.0.0"), packed(t, "1.2.0"), packed(t, "2.0.0-rc.1")
	routes := http.NewServeMux()
	serve := func(path string, body []byte) {
		routes.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }) // the client sees it
	}
	serve("/charts/index.yaml", fmt.Appendf(nil, `apiVersion: v1
entries:
  web:
  - {name: web, version: 1.0.0, urls: [web-1.0.0.tgz], digest: %s}
  - {name: web, version: 2.0.0-rc.1, urls: [web-2.tgz]}
  - {name: web, version: 1.2.0, urls: [web-1.2.0.tgz], digest: "sha256:%s"}
  forged:
  - {name: forged, version: 1.0.0, urls: [web-1.0.0.tgz], digest: %s}
  nowhere:
  - {name: nowhere, version: 1.0.0}
`, naming.Digest(one), naming.Digest(two), naming.Digest(two)))
	serve("/charts/web-1.0.0.tgz", one)
	serve("/charts/web-1.2.0.tgz", two)
	serve("/charts/web-2.tgz", next)
	serve("/huge/index.yaml", bytes.Repeat([]byte("# no end\n"), maxAnswer/8))
	serve("/none/index.yaml", []byte("entries: ["))
	server := httptest.NewServer(routes)
	t.Cleanup(server.Close)
	return server
}

func TestAChartComesFromARepository(t *testing.T) {
	server := repository(t)
	fetcher := NewFetcher(nil)
	for name, row := range map[string]struct {
		options fleet.HelmOptions
		version string
		problem string
	}{
		"the newest, if no version is asked for": {fleet.HelmOptions{Chart: "web"}, "1.2.0", ""},
		"a version":                              {fleet.HelmOptions{Chart: "web", Version: "1.0.0"}, "1.0.0", ""},
		"the newest of a range":                  {fleet.HelmOptions{Chart: "web", Version: "^1.0.0"}, "1.2.0", ""},
		"one that is not released":               {fleet.HelmOptions{Chart: "web", Version: "2.0.0-rc.1"}, "2.0.0-rc.1", ""},
		"an archive":                             {fleet.HelmOptions{Repo: "none", Chart: server.URL + "/charts/web-1.0.0.tgz"}, "1.0.0", ""},
		"a version that is not there":            {fleet.HelmOptions{Chart: "web", Version: "3.0.0"}, "", "no chart version found for web-3.0.0"},
		"a chart that is not there":              {fleet.HelmOptions{Chart: "db"}, "", "no chart name found"},
		"one that was tampered with": {
			fleet.HelmOptions{Chart: "forged"}, "", "is not the one that the index of the repository promises",
		},
		"one without an address": {fleet.HelmOptions{Chart: "nowhere"}, "", "names no address for version 1.0.0"},
		"no repository":          {fleet.HelmOptions{Repo: server.URL + "/missing", Chart: "web"}, "", "404 Not Found"},
		"an index that is none": {
			fleet.HelmOptions{Repo: server.URL + "/none", Chart: "web"}, "", "reading the index of the repository",
		},
		"an index without end": {
			fleet.HelmOptions{Repo: server.URL + "/huge", Chart: "web"}, "", "answers with more than 24 MiB",
		},
	} {
		if row.options.Repo == "" {
			row.options.Repo = server.URL + "/charts/"
		}
		made, err := fetch(t.Context(), fetcher, row.options)
		if row.problem != "" {
			if err == nil || !strings.Contains(err.Error(), row.problem) {
				t.Errorf("%s: got %v, want %q", name, err, row.problem)
			}
			continue
		}
		if err != nil || made.Metadata.Version != row.version || len(made.Templates) != 1 {
			t.Errorf("%s: got %+v (%v)", name, made, err)
		}
	}
}

// TestAChartFromHTTPSIsNotTakenFromPlainHTTP plays an attacker on the way: a plain HTTP server that
// serves another chart.
func TestAChartFromHTTPSIsNotTakenFromPlainHTTP(t *testing.T) {
	forged, original := packed(t, "6.6.6"), packed(t, "1.0.0")
	asked := 0
	attacker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		_, _ = w.Write(map[string][]byte{"/original": original, "/forged": forged}[r.URL.Path]) // the client sees it
	}))
	t.Cleanup(attacker.Close)
	routes := http.NewServeMux()
	routes.Handle("/redirected.tgz", http.RedirectHandler(attacker.URL+"/forged", http.StatusFound))
	routes.HandleFunc("/index.yaml", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `apiVersion: v1
entries:
  web:
  - {name: web, version: 6.6.6, urls: ["%[1]s/forged"]}
  - {name: web, version: 1.1.0, urls: [redirected.tgz]}
  - {name: web, version: 1.0.0, urls: ["%[1]s/original"], digest: %[2]s}
`, attacker.URL, naming.Digest(original)) // the client sees it
	})
	server := httptest.NewTLSServer(routes)
	t.Cleanup(server.Close)
	fetcher := NewFetcher(server.Client())
	for name, options := range map[string]fleet.HelmOptions{
		"leads from https to " + attacker.URL + "/forged and has no digest":  {Repo: server.URL, Chart: "web"},
		"redirected from https to " + attacker.URL + "/forged: name":         {Repo: server.URL, Chart: "web", Version: "1.1.0"},
		"redirected from https to " + attacker.URL + "/forged: name an addr": {Chart: server.URL + "/redirected.tgz"},
	} {
		if _, err := fetch(t.Context(), fetcher, options); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
	if asked > 0 {
		t.Errorf("the plain server was asked %d times", asked)
	}
	if made, err := fetch(t.Context(), fetcher, fleet.HelmOptions{Repo: server.URL, Chart: "web", Version: "1.0.0"}); err != nil ||
		made.Metadata.Version != "1.0.0" {
		t.Errorf("with a digest: %+v (%v)", made, err)
	}
}

// oci serves one chart as registries do.
func oci(t *testing.T, archive []byte) *httptest.Server {
	t.Helper()
	config := []byte(`{"name":"web","version":"1.2.0","apiVersion":"v2"}`)
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": map[string]any{
			"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": "sha256:" + naming.Digest(config), "size": len(config),
		},
		"layers": []any{map[string]any{
			"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "digest": "sha256:" + naming.Digest(archive), "size": len(archive),
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	routes := http.NewServeMux()
	routes.HandleFunc("/v2/charts/web/tags/list", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"name":"charts/web","tags":["1.0.0","1.2.0","latest"]}`)) // the client sees it
	})
	serve := func(path, kind string, body []byte) {
		routes.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Docker-Content-Digest", "sha256:"+naming.Digest(body))
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			_, _ = w.Write(body) // the client sees it
		})
	}
	for _, reference := range []string{"1.2.0", "sha256:" + naming.Digest(manifest)} {
		serve("/v2/charts/web/manifests/"+reference, "application/vnd.oci.image.manifest.v1+json", manifest)
	}
	serve("/v2/charts/web/blobs/sha256:"+naming.Digest(config), "application/octet-stream", config)
	serve("/v2/charts/web/blobs/sha256:"+naming.Digest(archive), "application/octet-stream", archive)
	server := httptest.NewTLSServer(routes)
	t.Cleanup(server.Close)
	return server
}

func TestAChartComesFromARegistry(t *testing.T) {
	server := oci(t, packed(t, "1.2.0"))
	fetcher := NewFetcher(server.Client())
	host := strings.TrimPrefix(server.URL, "https://")
	for _, options := range []fleet.HelmOptions{
		{Chart: "oci://" + host + "/charts/web", Version: "1.2.0"},
		{Chart: "oci://" + host + "/charts/web", Version: "^1"},
		{Chart: "oci://" + host + "/charts/web:1.2.0"},
		{Repo: "oci://" + host + "/charts", Chart: "web"},
		{Repo: "oci://" + host + "/charts/web", Version: "1.x"},
	} {
		if made, err := fetch(context.Background(), fetcher, options); err != nil || made.Metadata.Version != "1.2.0" {
			t.Errorf("%+v: got %+v (%v)", options, made, err)
		}
	}
	if _, err := fetch(context.Background(), fetcher, fleet.HelmOptions{Chart: "oci://" + host + "/charts/web", Version: "9"}); err == nil {
		t.Error("a version that is not there is found")
	}
}

// fetch gets and loads a chart.
func fetch(ctx context.Context, fetcher *Fetcher, options fleet.HelmOptions) (*helm.Chart, error) {
	fetched, err := fetcher.Fetch(ctx, options, nil)
	if err != nil {
		return nil, err
	}
	return loader.LoadArchive(bytes.NewReader(fetched.Data))
}

func TestTheFilesOfAnArchive(t *testing.T) {
	fetched := &Archive{Data: packed(t, "1.2.0"), From: "there"}
	files, version, err := fetched.Files()
	if err != nil || version != "1.2.0" || len(files) != 2 || string(files["templates/a.yaml"]) != "v: 1.2.0" {
		t.Errorf("%v, version %s, %v", files, version, err)
	}
	if _, _, err := (&Archive{Data: []byte("x"), From: "there"}).Files(); err == nil || !strings.Contains(err.Error(), "chart there") {
		t.Errorf("%v", err)
	}
}

func TestTheVersionOfAChartWithoutItsArchive(t *testing.T) {
	server, registry := repository(t), oci(t, packed(t, "1.2.0"))
	web := strings.Replace(registry.URL, "https://", "oci://", 1) + "/charts/web"
	for name, row := range map[string]struct {
		fetcher *Fetcher
		options fleet.HelmOptions
		want    string
	}{
		"the newest":            {NewFetcher(nil), fleet.HelmOptions{Repo: server.URL + "/charts", Chart: "web"}, "1.2.0"},
		"of a range":            {NewFetcher(nil), fleet.HelmOptions{Repo: server.URL + "/charts", Chart: "web", Version: "<1.2"}, "1.0.0"},
		"without an address":    {NewFetcher(nil), fleet.HelmOptions{Repo: server.URL + "/charts", Chart: "nowhere"}, "1.0.0"},
		"none":                  {NewFetcher(nil), fleet.HelmOptions{Repo: server.URL + "/charts", Chart: "web", Version: "^9"}, ""},
		"of a registry":         {NewFetcher(registry.Client()), fleet.HelmOptions{Repo: web, Version: "^1"}, "1.2.0"},
		"none of a registry":    {NewFetcher(registry.Client()), fleet.HelmOptions{Repo: web, Version: "^9"}, ""},
		"an untrusted registry": {NewFetcher(nil), fleet.HelmOptions{Repo: web}, ""},
	} {
		got, err := row.fetcher.Version(t.Context(), row.options, nil)
		if got != row.want || (err == nil) != (row.want != "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	archive := fleet.HelmOptions{Chart: server.URL + "/charts/web-1.0.0.tgz"}
	if got, err := NewFetcher(nil).Version(t.Context(), archive, nil); got != "" || err != nil {
		t.Errorf("an archive: %q, %v", got, err)
	}
	stranger := NewFetcher(&http.Client{Transport: &http.Transport{}})
	if got, err := stranger.Version(t.Context(), fleet.HelmOptions{Repo: web}, AcceptingAnyCertificate(nil)); got != "1.2.0" || err != nil {
		t.Errorf("any certificate: %q, %v", got, err)
	}
}
