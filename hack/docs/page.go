package main

import (
	"bytes"
	"fmt"
	"html/template"
	"path"
	"regexp"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

var markdown = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Linkify, extension.Strikethrough),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()), goldmark.WithRendererOptions(html.WithUnsafe()))

// page is one file of the source.
type page struct {
	source, title string
	text          []byte
	tree          ast.Node
	anchors       map[string]bool
	links         []link
	sections      []section
}

// link is a link to a file of the source.
type link struct {
	text, title, source, anchor string
	within                      ast.Node // the list item of the link
	set                         func(destination string)
}

// section is a heading and the text below it, for the search.
type section struct{ title, anchor, text string }

// comments are invisible; they define how the page's commands are run.
var comments = regexp.MustCompile(`(?s)<!--.*?-->`)

func parse(source string, data []byte, directory bool) (*page, error) {
	p := &page{source: source, text: data, anchors: map[string]bool{}}
	ids := &githubIDs{seen: map[string]int{}}
	p.tree = markdown.Parser().Parse(text.NewReader(data), parser.WithContext(parser.NewContext(parser.WithIDs(ids))))
	base := path.Dir(source)
	if directory {
		base = source
	}
	err := ast.Walk(p.tree, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.Heading:
			p.heading(node)
		case *ast.Link:
			p.link(base, node, string(node.Destination), func(to string) { node.Destination = []byte(to) })
		case *ast.Image:
			p.link(base, node, string(node.Destination), func(to string) { node.Destination = []byte(to) })
		case *ast.RawHTML:
			if raw := string(node.Segments.Value(data)); comments.ReplaceAllString(raw, "") != "" {
				return ast.WalkStop, fmt.Errorf("%s: %s would be HTML; put it between backquotes", source, raw)
			}
		case *ast.HTMLBlock:
			if raw := string(node.Lines().Value(data)); !strings.HasPrefix(raw, "<!--") {
				return ast.WalkStop, fmt.Errorf("%s: %s would be HTML; put it between backquotes", source, raw)
			}
		default:
			p.collect(node)
		}
		return ast.WalkContinue, nil
	})
	if p.title == "" && err == nil {
		err = fmt.Errorf("%s has no title", source)
	}
	return p, err
}

func (p *page) heading(node *ast.Heading) {
	id, _ := node.AttributeString("id")
	anchor, _ := id.([]byte)
	title := plain(node, p.text)
	p.anchors[string(anchor)] = true
	if p.title == "" {
		p.title = title
	}
	p.sections = append(p.sections, section{title: title, anchor: string(anchor)})
}

// collect adds the text of a node to its section.
func (p *page) collect(node ast.Node) {
	if len(p.sections) == 0 {
		return
	}
	last := &p.sections[len(p.sections)-1]
	switch node := node.(type) {
	case *ast.Text:
		last.text += string(node.Segment.Value(p.text))
		if node.SoftLineBreak() {
			last.text += " "
		}
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		last.text += " " + string(node.Lines().Value(p.text))
	default:
		if node.Type() == ast.TypeBlock {
			last.text += " "
		}
	}
}

func (p *page) link(base string, node ast.Node, destination string, set func(string)) {
	if strings.Contains(destination, ":") {
		return // to another host
	}
	file, anchor, _ := strings.Cut(destination, "#")
	l := link{text: destination, title: plain(node, p.text), source: p.source, anchor: anchor, set: set}
	if file != "" {
		l.source = path.Join(base, file)
	}
	for around := node.Parent(); around != nil; around = around.Parent() {
		if around.Kind() == ast.KindListItem {
			l.within = around
		}
	}
	p.links = append(p.links, l)
}

// render returns the page as HTML, with its links pointing into the site.
func (p *page) render(to func(link) string) (template.HTML, error) {
	for _, l := range p.links {
		destination := to(l)
		if l.anchor != "" {
			destination += "#" + l.anchor
		}
		l.set(destination)
	}
	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, p.text, p.tree); err != nil {
		return "", err
	}
	wide := strings.NewReplacer("<table>", `<div class="wide"><table>`, "</table>", "</table></div>")
	// The source is this repository's, and parse refuses HTML in it.
	return template.HTML(wide.Replace(comments.ReplaceAllString(out.String(), ""))), nil
}

// plain returns the text of a node without its marks.
func plain(node ast.Node, source []byte) string {
	var out strings.Builder
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		if t, is := child.(*ast.Text); is {
			out.Write(t.Segment.Value(source))
		} else {
			out.WriteString(plain(child, source))
		}
	}
	return out.String()
}

// githubIDs makes the anchors of headings as GitHub does, so that the same links work there.
type githubIDs struct{ seen map[string]int }

// Generate implements parser.IDs.
func (g *githubIDs) Generate(value []byte, _ ast.NodeKind) []byte {
	value = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`).ReplaceAll(value, []byte("$1"))
	id := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(string(value)))
	times := g.seen[id]
	g.seen[id]++
	if times > 0 {
		id = fmt.Sprintf("%s-%d", id, times)
	}
	return []byte(id)
}

// Put implements parser.IDs.
func (g *githubIDs) Put(value []byte) { g.seen[string(value)]++ }
