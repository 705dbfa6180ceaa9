package main

import (
	"encoding/json"
	"strings"
)

// index is a script that holds what the search looks through: a browser that shows files lets no
// page read another one, but runs its scripts.
func (s *site) index() ([]byte, error) {
	type found struct {
		Page  string `json:"p"`
		Title string `json:"t"`
		Place string `json:"u"`
		Text  string `json:"x"`
	}
	var all []found
	for _, source := range s.sources() {
		p := s.pages[source]
		for _, part := range p.sections {
			all = append(all, found{
				Page: p.title, Title: part.title, Place: place(source, true) + "#" + part.anchor, Text: strings.Join(strings.Fields(part.text), " "),
			})
		}
	}
	data, err := json.Marshal(all)
	return append(append([]byte("window.searchIndex = "), data...), ";\n"...), err
}
