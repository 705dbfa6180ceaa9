package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// images are the images by name, with the programs in each. An image runs its first program.
var images = []struct {
	name     string
	programs []string
}{
	{"muster-hub", []string{"muster-hub"}},
	{"muster-agent", []string{"muster-agent", "muster-deployer"}},
}

var platforms = []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}

// options are the labels of an image and its destination.
type options struct {
	source, out, version, revision, ldflags string
	created                                 time.Time
}

func run() error {
	o := options{}
	flag.StringVar(&o.source, "source", ".", "directory of the module that the programs are of")
	flag.StringVar(&o.out, "out", "images", "directory that the archives go to")
	flag.StringVar(&o.version, "version", "", "version, also the tag of the images")
	flag.StringVar(&o.ldflags, "ldflags", "", "flags of the linker")
	flag.Parse()
	if o.version == "" {
		return errors.New("-version is required: the version that the programs say they are")
	}
	var err error
	if o.revision, err = git(o.source, "rev-parse", "HEAD"); err != nil {
		return err
	}
	committed, err := git(o.source, "show", "-s", "--format=%cI", "HEAD")
	if err != nil {
		return err
	}
	if o.created, err = time.Parse(time.RFC3339, committed); err != nil {
		return fmt.Errorf("reading the time of commit %s: %w", o.revision, err)
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	for _, image := range images {
		index, boms, err := o.build(image.name, image.programs)
		if err != nil {
			return fmt.Errorf("building image %s: %w", image.name, err)
		}
		archive := filepath.Join(o.out, image.name+".tar")
		if err := writeArchive(archive, image.name, o.version, index, o.created); err != nil {
			return fmt.Errorf("writing %s: %w", archive, err)
		}
		for platform, bom := range boms {
			if err := os.WriteFile(filepath.Join(o.out, image.name+"-"+platform+".spdx.json"), bom, 0o644); err != nil {
				return err
			}
		}
		digest, err := index.Digest()
		if err != nil {
			return err
		}
		fmt.Printf("%s  %s:%s  %s\n", archive, image.name, o.version, digest)
	}
	return nil
}

func git(dir string, args ...string) (string, error) {
	command := exec.Command("git", args...)
	command.Dir = dir
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("asking git for %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// build returns an image for all platforms, and its bill of materials by architecture.
func (o options) build(name string, programs []string) (v1.ImageIndex, map[string][]byte, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	boms := map[string][]byte{}
	for _, platform := range platforms {
		image, bom, err := o.buildFor(platform, name, programs)
		if err != nil {
			return nil, nil, fmt.Errorf("for %s: %w", platform.Architecture, err)
		}
		boms[platform.Architecture] = bom
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	plain, err := plainly(index)
	return plain, boms, err
}

func (o options) buildFor(platform v1.Platform, name string, programs []string) (v1.Image, []byte, error) {
	work, err := os.MkdirTemp("", "images")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = os.RemoveAll(work) }() // a directory of temporary files
	for _, program := range programs {
		command := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", o.ldflags, "-o", work, "./cmd/"+program)
		command.Dir, command.Stderr = o.source, os.Stderr
		command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+platform.OS, "GOARCH="+platform.Architecture)
		if err := command.Run(); err != nil {
			return nil, nil, fmt.Errorf("building %s: %w", program, err)
		}
	}
	bom, err := billOfMaterials(name, o.version, work, programs, o.created)
	if err != nil {
		return nil, nil, err
	}
	layer, err := rootFilesystem(work, programs, bom, o.created)
	if err != nil {
		return nil, nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.Append(image,
		mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: o.created}, CreatedBy: "hack/images"}}); err != nil {
		return nil, nil, err
	}
	image, err = mutate.ConfigFile(image, o.config(image, platform, name, programs[0]))
	return image, bom, err
}

// config returns the configuration of the image, with the labels of the OCI image specification.
func (o options) config(image v1.Image, platform v1.Platform, name, program string) *v1.ConfigFile {
	file, err := image.ConfigFile()
	if err != nil {
		panic(err) // an image that was just made in memory
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = platform.OS, platform.Architecture, v1.Time{Time: o.created}
	file.Config = v1.Config{
		Entrypoint: []string{"/" + program},
		Env:        []string{"PATH=/", "SSL_CERT_FILE=/" + certificates},
		User:       "1000:1000",
		WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":    name,
			"org.opencontainers.image.version":  o.version,
			"org.opencontainers.image.revision": o.revision,
			"org.opencontainers.image.created":  o.created.UTC().Format(time.RFC3339),
			"org.opencontainers.image.source":   "https://github.com/muster-fleet/muster",
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return file
}
