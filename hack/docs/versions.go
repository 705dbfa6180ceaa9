package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

const (
	// unreleased is the name of the version at the root of the site: the checkout itself.
	unreleased = "main"
	// mostVersions limits the released versions in the site, the newest ones.
	mostVersions = 10
	// mostFile limits the bytes of a file of a release.
	mostFile = 16 << 20
)

// version is a version of the documentation.
type version struct {
	name string
	// dir is the directory in the site; empty for its root.
	dir string
	*site
}

// choice is a version in the list of a page.
type choice struct {
	Name, Href string
	Here       bool
}

// releases returns the tags of releases, the newest first. A tag of a candidate has a hyphen.
func releases(root string) ([]string, error) {
	text, err := exec.Command("git", "-C", root, "tag", "--list", "v*", "--sort=-version:refname").Output()
	if err != nil {
		return nil, fmt.Errorf("listing the tags of %s: %w", root, err)
	}
	var tags []string
	for _, tag := range strings.Fields(string(text)) {
		if !strings.Contains(tag, "-") && len(tags) < mostVersions {
			tags = append(tags, tag)
		}
	}
	return tags, nil
}

// released loads the documentation of a tag, without a check of its links: a release does not
// change any more. The caller removes the directory.
func released(root, tag, dir string) (version, error) {
	archive, err := exec.Command("git", "-C", root, "archive", "--format=tar", tag).Output()
	if err != nil {
		return version{}, fmt.Errorf("reading %s: %w", tag, err)
	}
	if err := unpack(archive, dir); err != nil {
		return version{}, fmt.Errorf("unpacking %s: %w", tag, err)
	}
	s, err := load(dir)
	if err != nil {
		return version{}, fmt.Errorf("loading %s: %w", tag, err)
	}
	return version{tag, tag, s}, nil
}

// unpack writes the regular files of an archive of git.
func unpack(archive []byte, dir string) error {
	files := tar.NewReader(bytes.NewReader(archive))
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg || !filepath.IsLocal(header.Name) || header.Size > mostFile {
			continue
		}
		data, err := io.ReadAll(files)
		if err != nil {
			return err
		}
		if err := save(dir, header.Name, data); err != nil {
			return err
		}
	}
}

// withReleases writes the site of the checkout, and below it a site for each release.
func (s *site) withReleases(out string, tags []string) error {
	versions := []version{{unreleased, "", s}}
	for _, tag := range tags {
		dir, err := os.MkdirTemp("", "muster-docs-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }() // a temporary directory
		v, err := released(s.root, tag, dir)
		if err != nil {
			return err
		}
		versions = append(versions, v)
	}
	for _, v := range versions {
		if err := v.write(filepath.Join(out, v.dir), func(here string) []choice { return choices(versions, v, here) }); err != nil {
			return fmt.Errorf("writing %s: %w", v.name, err)
		}
	}
	return nil
}

// choices returns the links from a page to the other versions: to the same page, or else to the
// first one. A site without releases has no choice.
func choices(versions []version, from version, here string) []choice {
	if len(versions) == 1 {
		return nil
	}
	var list []choice
	for _, v := range versions {
		target := "index.html"
		if v.has(here) {
			target = here
		}
		list = append(list, choice{v.name, relative(path.Join(from.dir, here), path.Join(v.dir, target)), v.name == from.name})
	}
	return list
}

// has reports whether the site has a page at a place.
func (s *site) has(here string) bool {
	for source := range s.pages {
		if place(source, true) == here {
			return true
		}
	}
	return false
}
