package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/muster-fleet/muster/internal/version"
)

// platform is an operating system and an architecture with Go's names.
type platform struct{ os, arch string }

// platforms are the platforms of the command line.
var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

// release is the release of a commit.
type release struct {
	source, out string
	// described is the version from git describe, as reported by the programs. version is its semantic
	// form, for the charts and the images.
	described, version, revision string
	// url is the future URL of the charts; empty for a place beside the index.
	url string
	// key is the file of the private key for signatures; empty for no signature.
	key     string
	created time.Time
}

func (r *release) make() error {
	if err := r.observe(); err != nil {
		return err
	}
	for _, p := range platforms {
		if err := r.buildCommand(p); err != nil {
			return err
		}
	}
	if err := r.buildImages(); err != nil {
		return err
	}
	if err := r.signImages(); err != nil {
		return err
	}
	if err := r.packCharts(); err != nil {
		return err
	}
	return r.vouch()
}

// makeImages makes the images alone, with their tag in a release.
func (r *release) makeImages() error {
	if err := r.observe(); err != nil {
		return err
	}
	return r.buildImages()
}

// observe reads the revision and its time from git.
func (r *release) observe() error {
	if r.described == "" {
		return errors.New("-version is required: the version that everything is of")
	}
	r.version = version.Semantic(r.described)
	out, err := filepath.Abs(r.out)
	if err != nil {
		return err
	}
	r.out = out
	if r.revision, err = r.git("rev-parse", "HEAD"); err != nil {
		return err
	}
	committed, err := r.git("show", "-s", "--format=%cI", "HEAD")
	if err != nil {
		return err
	}
	if r.created, err = time.Parse(time.RFC3339, committed); err != nil {
		return fmt.Errorf("reading the time of commit %s: %w", r.revision, err)
	}
	r.created = r.created.UTC()
	return os.MkdirAll(r.out, 0o755)
}

func (r *release) git(args ...string) (string, error) {
	command := exec.Command("git", args...)
	command.Dir = r.source
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("asking git for %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

func (r *release) ldflags() string {
	return "-s -w -X github.com/muster-fleet/muster/internal/version.Version=" + r.described
}

// buildImages builds the images of hub and agent with the module hack/images.
func (r *release) buildImages() error {
	source, err := filepath.Abs(r.source)
	if err != nil {
		return err
	}
	command := exec.Command("go", "run", ".", "-source", source, "-out", filepath.Join(r.out, "images"), "-version", r.version,
		"-ldflags", r.ldflags())
	command.Dir, command.Stdout, command.Stderr = filepath.Join(source, "hack", "images"), os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("building the images: %w", err)
	}
	return nil
}

// buildCommand builds the command line for a platform, as an archive with the license.
func (r *release) buildCommand(p platform) error {
	name := "muster"
	if p.os == "windows" {
		name += ".exe"
	}
	dir, err := os.MkdirTemp("", "muster-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	program := filepath.Join(dir, name)
	command := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", r.ldflags(), "-o", program, "./cmd/muster")
	command.Dir, command.Env = r.source, append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building the command line for %s/%s: %w\n%s", p.os, p.arch, err, output)
	}
	archive := filepath.Join(r.out, fmt.Sprintf("muster_%s_%s_%s.tar.gz", r.version, p.os, p.arch))
	if err := pack(archive, r.created, map[string]string{name: program, "LICENSE": filepath.Join(r.source, "LICENSE")}); err != nil {
		return fmt.Errorf("writing %s: %w", archive, err)
	}
	fmt.Println(archive)
	return nil
}
