package kubenode

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

// Image is an image to import, and its name in Pods.
type Image struct {
	Path string
	// Archived is the name in the archive, Wanted the name in Pods; both in full, with registry and
	// tag.
	Archived, Wanted string
}

const maxIndex = 1 << 20

// ReadImage finds out the name of the image in an OCI archive. A name without a tag gets the tag in
// the archive.
func ReadImage(name, file string) (Image, error) {
	archived, err := archivedName(file)
	if err != nil {
		return Image{}, fmt.Errorf("--image %s: %s is no OCI archive of one named image, as `make images` writes them: %w", name, file, err)
	}
	image := Image{Path: file, Archived: archived, Wanted: fullName(name)}
	if repository, tag := splitTag(image.Wanted); tag == "" {
		_, tag = splitTag(archived)
		image.Wanted = repository + ":" + tag
	}
	return image, nil
}

func archivedName(file string) (string, error) {
	opened, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer opened.Close()
	reader := tar.NewReader(opened)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return "", errors.New("it has no index.json")
		}
		if err != nil {
			return "", err
		}
		if path.Clean(header.Name) != "index.json" {
			continue
		}
		var index struct {
			Manifests []struct {
				Annotations map[string]string `json:"annotations"`
			} `json:"manifests"`
		}
		if err := json.NewDecoder(io.LimitReader(reader, maxIndex)).Decode(&index); err != nil {
			return "", fmt.Errorf("reading index.json: %w", err)
		}
		if len(index.Manifests) != 1 {
			return "", fmt.Errorf("it has %d images", len(index.Manifests))
		}
		named := index.Manifests[0].Annotations["io.containerd.image.name"]
		if _, tag := splitTag(named); tag == "" {
			return "", errors.New("its image has no name with a tag (annotation io.containerd.image.name)")
		}
		return named, nil
	}
}

// fullName returns a container runtime's form of the name in a Pod.
func fullName(name string) string {
	first, _, found := strings.Cut(name, "/")
	switch {
	case !found:
		return "docker.io/library/" + name
	case !strings.ContainsAny(first, ".:") && first != "localhost":
		return "docker.io/" + name
	}
	return name
}

// splitTag splits a name: a colon after the last slash starts a tag, one before it a port.
func splitTag(name string) (repository, tag string) {
	colon := strings.LastIndexByte(name, ':')
	if colon <= strings.LastIndexByte(name, '/') {
		return name, ""
	}
	return name[:colon], name[colon+1:]
}
