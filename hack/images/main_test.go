package main

import (
	"archive/tar"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/opencontainers/go-digest"
	oci "github.com/opencontainers/image-spec/specs-go/v1"
)

// built is the image of the agent for one platform.
func built(t *testing.T) (options, v1.ImageIndex, v1.Image) {
	t.Helper()
	all := platforms
	platforms = platforms[:1]
	t.Cleanup(func() { platforms = all })
	o := options{source: "../..", version: "v1.2.3", revision: "abc", ldflags: "-s -w", created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	index, _, err := o.build("muster-agent", []string{"muster-agent"})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return o, index, image
}

func TestAgentsImageHasTheProgramThatItStarts(t *testing.T) {
	for _, image := range images {
		if image.name == "muster-agent" && !slices.Contains(image.programs, "muster-deployer") {
			t.Errorf("it has only %v", image.programs)
		}
	}
}

func TestSameSourceGivesTheSameDigest(t *testing.T) {
	_, first, _ := built(t)
	_, second, _ := built(t)
	one, err := first.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if other, err := second.Digest(); err != nil || other != one {
		t.Errorf("built twice: %s and %s (%v)", one, other, err)
	}
}

func TestImageHoldsAProgramThatDoesNotRunAsRootAndLittleElse(t *testing.T) {
	_, _, image := built(t)
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "1000:1000" || !slices.Equal(config.Config.Entrypoint, []string{"/muster-agent"}) ||
		config.Architecture != "amd64" {
		t.Errorf("it runs %v as %s on %s", config.Config.Entrypoint, config.Config.User, config.Architecture)
	}
	if got := config.Config.Labels["org.opencontainers.image.version"]; got != "v1.2.3" {
		t.Errorf("it says it is %q", got)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers (%v)", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	var files []string
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			files = append(files, header.Name)
		}
		if header.Name == certificates && header.Size < 100_000 {
			t.Errorf("there are %d bytes of certificates", header.Size)
		}
		if strings.HasSuffix(header.Name, ".spdx.json") {
			bom, err := io.ReadAll(archive)
			if err != nil || !strings.Contains(string(bom), "pkg:golang/k8s.io/client-go@v") {
				t.Errorf("the bill of materials does not name client-go (%v)", err)
			}
		}
	}
	if want := []string{"etc/passwd", "etc/group", certificates, materials, "muster-agent"}; !slices.Equal(files, want) {
		t.Errorf("files %v, want %v", files, want)
	}
}

func TestArchiveIsAnImageLayoutWithTheImagesName(t *testing.T) {
	o, index, _ := built(t)
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := writeArchive(path, "muster-agent", o.version, index, o.created); err != nil {
		t.Fatal(err)
	}
	got := readArchive(t, path)
	if got["oci-layout"] == "" ||
		!strings.Contains(got["index.json"], `"io.containerd.image.name": "docker.io/library/muster-agent:v1.2.3"`) ||
		!strings.Contains(got["index.json"], string(types.OCIImageIndex)) {
		t.Errorf("index.json: %s", got["index.json"])
	}
}

func readArchive(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	files := map[string]string{}
	for archive := tar.NewReader(file); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(header.Name, "blobs/") {
			text, err := io.ReadAll(archive)
			if err != nil {
				t.Fatal(err)
			}
			files[header.Name] = string(text)
		}
	}
}

// TestACopyOfAnIndexHasItsDigest copies an index like skopeo, which reads and writes it with OCI's
// own types. The signature covers the text before the copy.
func TestACopyOfAnIndexHasItsDigest(t *testing.T) {
	_, index, _ := built(t)
	text, err := index.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	var read oci.Index
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	copied, err := json.Marshal(read)
	if err != nil || string(copied) != string(text) {
		t.Errorf("%s\nbecomes %s (%v)", text, copied, err)
	}
	hash, err := index.Digest()
	if sum := digest.FromBytes(text); err != nil || hash.String() != sum.String() {
		t.Errorf("its digest is %s, not %s (%v)", hash, sum, err)
	}
}
