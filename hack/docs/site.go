package main

import (
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const contents = "docs/README.md"

//go:embed assets
var assets embed.FS

// site is the result: the contents and everything linked from there.
type site struct {
	root  string
	order order
	pages map[string]*page // by source
	files []string         // files to copy unchanged
}

// build makes the site, with the documentation of some releases, and returns the number of its
// pages.
func build(root, out string, tags ...string) (int, error) {
	s, err := load(root)
	if err != nil {
		return 0, err
	}
	if err := s.check(); err != nil {
		return 0, err
	}
	if err := os.RemoveAll(out); err != nil {
		return 0, err
	}
	return len(s.pages), s.withReleases(out, tags)
}

// load reads the contents and, transitively, everything linked from there.
func load(root string) (*site, error) {
	s := &site{root: root, pages: map[string]*page{}}
	if err := s.read(contents); err != nil {
		return nil, err
	}
	s.order = orderOf(s.pages[contents])
	return s, nil
}

func (s *site) read(source string) error {
	if s.pages[source] != nil || slices.Contains(s.files, source) {
		return nil
	}
	info, err := os.Stat(filepath.Join(s.root, source))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // check names the page with the link
	}
	if err != nil {
		return err
	}
	if !info.IsDir() && path.Ext(source) != ".md" {
		s.files = append(s.files, source)
		return nil
	}
	var text []byte
	if info.IsDir() {
		text, err = s.listing(source)
	} else {
		text, err = os.ReadFile(filepath.Join(s.root, source))
	}
	if err != nil {
		return err
	}
	p, err := parse(source, text, info.IsDir())
	if err != nil {
		return err
	}
	s.pages[source] = p
	for _, link := range p.links {
		if err := s.read(link.source); err != nil {
			return err
		}
	}
	return nil
}

// listing returns a page for a linked directory: its pages by their titles.
func (s *site) listing(dir string) ([]byte, error) {
	entries, err := os.ReadDir(filepath.Join(s.root, dir))
	if err != nil {
		return nil, err
	}
	text := "# " + path.Base(dir) + "\n\n"
	for _, entry := range entries {
		if path.Ext(entry.Name()) != ".md" {
			continue
		}
		source, err := os.ReadFile(filepath.Join(s.root, dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(string(source), "# "), "\n")
		text += fmt.Sprintf("- [%s](%s)\n", title, entry.Name())
	}
	return []byte(text), nil
}

// check finds broken links.
func (s *site) check() error {
	var wrong []error
	for _, source := range s.sources() {
		for _, link := range s.pages[source].links {
			target := s.pages[link.source]
			switch {
			case target == nil && !slices.Contains(s.files, link.source):
				wrong = append(wrong, fmt.Errorf("%s: link to %s, which does not exist", source, link.text))
			case link.anchor != "" && (target == nil || !target.anchors[link.anchor]):
				wrong = append(wrong, fmt.Errorf("%s: link to %s, where there is no such heading", source, link.text))
			}
		}
	}
	return errors.Join(wrong...)
}

func (s *site) sources() []string {
	var all []string
	for source := range s.pages {
		all = append(all, source)
	}
	slices.Sort(all)
	return all
}

// place returns the path of a file of the source in the site: docs/ is its root.
func place(source string, isPage bool) string {
	out, within := strings.CutPrefix(source, "docs/")
	if !within {
		out = path.Join("project", source)
	}
	switch {
	case source == contents:
		return "index.html"
	case isPage && path.Ext(source) == ".md":
		return strings.TrimSuffix(out, ".md") + ".html"
	case isPage:
		return path.Join(out, "index.html")
	}
	return out
}

// view is the data for the template.
type view struct {
	Title, Here, Base string
	Body              template.HTML
	Order             order
	Previous, Next    *entry
	Versions          []choice
}

// write writes the pages. versions returns the versions of a page.
func (s *site) write(out string, versions func(here string) []choice) error {
	layout, err := template.New("page.html").Funcs(template.FuncMap{"relative": relative}).ParseFS(assets, "assets/page.html")
	if err != nil {
		return err
	}
	for _, source := range s.sources() {
		p := s.pages[source]
		here := place(source, true)
		body, err := p.render(func(l link) string { return relative(here, place(l.source, s.pages[l.source] != nil)) })
		if err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		v := view{Title: p.title, Here: here, Base: strings.Repeat("../", strings.Count(here, "/")), Body: body, Order: s.order}
		v.Versions = versions(here)
		v.Previous, v.Next = s.order.around(here)
		var text strings.Builder
		if err := layout.Execute(&text, v); err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		if err := save(out, here, []byte(text.String())); err != nil {
			return err
		}
	}
	index, err := s.index()
	if err != nil {
		return err
	}
	return errors.Join(save(out, "search-index.js", index), s.copy(out))
}

// copy copies the assets, and the files that pages show or link to.
func (s *site) copy(out string) error {
	for _, name := range []string{"style.css", "site.js"} {
		data, err := fs.ReadFile(assets, "assets/"+name)
		if err != nil {
			return err
		}
		if err := save(out, name, data); err != nil {
			return err
		}
	}
	for _, source := range s.files {
		data, err := os.ReadFile(filepath.Join(s.root, source))
		if err != nil {
			return err
		}
		if err := save(out, place(source, false), data); err != nil {
			return err
		}
	}
	return nil
}

func save(out, name string, data []byte) error {
	file := filepath.Join(out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// relative returns the path from one page of the site to another.
func relative(from, to string) string {
	way, err := filepath.Rel(path.Dir(from), to)
	if err != nil {
		return to // both are within the site
	}
	return filepath.ToSlash(way)
}
