package main

import "github.com/yuin/goldmark/ast"

// order is the pages in the order of the contents.
type order []chapter

type chapter struct {
	Title   string
	Entries []entry
}

type entry struct{ Title, Place string }

// orderOf reads the contents: each heading is a chapter, and each link of a list one page.
func orderOf(p *page) order {
	chapters := order{{Entries: []entry{{Title: "Contents", Place: place(contents, true)}}}}
	next := 0
	for node := p.tree.FirstChild(); node != nil; node = node.NextSibling() {
		switch node := node.(type) {
		case *ast.Heading:
			if node.Level == 2 {
				chapters = append(chapters, chapter{Title: plain(node, p.text)})
			}
		case *ast.List:
			for item := node.FirstChild(); item != nil; item = item.NextSibling() {
				for ; next < len(p.links); next++ {
					if p.links[next].within == item {
						last := &chapters[len(chapters)-1]
						last.Entries = append(last.Entries, entry{Title: p.links[next].title, Place: place(p.links[next].source, true)})
						next++
						break
					}
				}
			}
		}
	}
	return chapters
}

// around returns the page before and the page after one.
func (o order) around(here string) (previous, next *entry) {
	var entries []entry
	for _, c := range o {
		entries = append(entries, c.Entries...)
	}
	for i := range entries {
		if entries[i].Place == here {
			if i > 0 {
				previous = &entries[i-1]
			}
			if i+1 < len(entries) {
				next = &entries[i+1]
			}
		}
	}
	return previous, next
}
